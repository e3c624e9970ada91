# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the evacuation controller's decisions, and its action. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.condition_types import LIVE_MIGRATABLE
from kubevirt_api.names import EVACUATION_MIGRATION

from controlplane.api.objects import conditions
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration import (
    FINAL,
    SYSTEM_CRITICAL,
    SYSTEM_MAINTENANCE,
    VirtualMachineInstanceMigration,
)
from controlplane.api.objects.node import Node
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.generated_migrations import GeneratedMigrations
from controlplane.virt_controller.migration.world import can_move

DEFAULTS = KubeVirtConfiguration()
MIGRATES = ("LiveMigrate", "LiveMigrateIfPossible")
EVICTION_SOURCE, DESCHEDULER = "kubevirt.io/eviction-source", "descheduler"
"""Annotation of a VMI, and its value if a descheduler requested the eviction. Such an eviction can wait."""
PREFIX = "kubevirt-evacuation-"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    vmi: VirtualMachineInstance
    node: Node | None = None
    """The VMI's node."""
    migrations: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Migrations of this VMI."""
    now: float
    """Seconds since the epoch."""
    configuration: KubeVirtConfiguration = DEFAULTS
    announced: str = ""
    """UID of the failed migration whose back-off was reported."""

    @property
    def is_to_leave(self) -> bool:
        """Tell whether the VMI has to leave its node."""
        node = self.vmi.status.node_name
        if not node:
            return False
        is_drained = self.node is not None and self.node.is_drained(self.configuration.migrations.node_drain_taint_key)
        return self.vmi.status.evacuation_node_name == node or is_drained

    @property
    def can_leave(self) -> bool:
        """Tell whether the VMI runs in one Pod, is to keep running, and may and can be migrated."""
        vmi, status = self.vmi, self.vmi.status
        strategy = vmi.spec.eviction_strategy or self.configuration.eviction_strategy
        is_running = can_move(vmi) and len(status.active_pods) == 1
        return is_running and strategy in MIGRATES and conditions.is_true(status.conditions, LIVE_MIGRATABLE)

    @property
    def is_moving(self) -> bool:
        """Tell whether any migration of the VMI is unfinished."""
        state = self.vmi.status.migration_state
        is_unfinished = any(migration.status.phase not in FINAL for migration in self.migrations)
        return is_unfinished or (state is not None and state.is_under_way)

    @property
    def failures(self) -> list[VirtualMachineInstanceMigration]:
        """List the failed evacuations in a row up to the newest one, newest first."""
        return self._series.failures(self.migrations)

    @property
    def waits_for(self) -> float:
        """Return the remaining back-off in seconds."""
        return self._series.waits_for(self.migrations, self.now)

    @property
    def next_name(self) -> str:
        return self._series.next_name(self.migrations)

    @property
    def _series(self) -> GeneratedMigrations:
        return GeneratedMigrations(PREFIX, EVACUATION_MIGRATION, self.vmi.metadata.uid)

    @property
    def priority(self) -> str:
        is_descheduled = self.vmi.metadata.annotations.get(EVICTION_SOURCE) == DESCHEDULER
        return SYSTEM_MAINTENANCE if is_descheduled else SYSTEM_CRITICAL


@dataclass(frozen=True, slots=True)
class CreateMigration:
    name: str
    because: str


Action = CreateMigration


@dataclass(frozen=True, slots=True)
class BackOff:
    """A back-off to report: the next migration waits because this one failed."""

    after: str
    failures: int
