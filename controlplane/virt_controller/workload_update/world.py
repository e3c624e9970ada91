# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of decisions about workload updates, and the actions. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubevirt_api.names import WORKLOAD_UPDATE_MIGRATION, WORKLOAD_UPDATE_REASON

from controlplane.api.go_duration import seconds
from controlplane.api.objects.kubevirt import KubeVirt, WorkloadUpdateStrategy
from controlplane.api.objects.migration import FINAL, PENDING, SCHEDULING, UNSET, VirtualMachineInstanceMigration
from controlplane.api.timestamps import read_timestamp
from controlplane.virt_controller.migration.generated_migrations import GeneratedMigrations, remaining_seconds
from controlplane.virt_controller.workload_update.instance_view import InstanceView

PREFIX = "kubevirt-workload-update-"
OUTDATED = "its launcher is not the one that is deployed"
_NOT_BEGUN = (UNSET, PENDING, SCHEDULING)
SHORTEST_INTERVAL = 5.0
"""Shortest interval between two batches of evictions, in seconds."""
USUAL_INTERVAL = 60.0
"""Interval if the strategy's is not a duration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A VMI that may be updated."""

    instance: InstanceView
    migrations: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Its migrations."""
    refusals: int = 0
    """Refusals in a row."""
    backs_off_for: float = 0.0
    """Rest of the back-off after a refusal, in seconds."""
    is_served: bool = True
    """The virt-handler of its node is updated."""
    is_evicted: bool = False
    """The eviction of its Pod was granted: the guest shuts down."""

    @property
    def is_moving(self) -> bool:
        """Tell whether the VMI has an unfinished migration or is being evacuated."""
        return self.instance.is_leaving or any(migration.status.phase not in FINAL for migration in self.migrations)

    @property
    def reason(self) -> str:
        """Return why the VMI has to be migrated; "" if it has not."""
        return OUTDATED if self.instance.is_outdated else self.instance.reason

    @property
    def obsolete(self) -> tuple[VirtualMachineInstanceMigration, ...]:
        """Migrations that were created here for a reason that no longer applies, and whose launcher is not up yet.

        A Pod that no node fits would block the next migration until its timeout.
        """
        waiting = (
            migration for migration in self._series.ours(self.migrations) if migration.status.phase in _NOT_BEGUN
        )
        return tuple(
            migration
            for migration in waiting
            if migration.metadata.deletion_timestamp is None
            and (
                not self.reason
                or migration.metadata.annotations.get(WORKLOAD_UPDATE_REASON, self.reason) != self.reason
            )
        )

    @property
    def failures(self) -> list[VirtualMachineInstanceMigration]:
        """List the latest failures in a row, newest first."""
        return self._series.failures(self.migrations)

    def waits_for(self, now: float) -> float:
        """Return the remaining back-off of a migration in seconds."""
        return max(self.backs_off_for, self._series.waits_for(self.migrations, now))

    @property
    def next_name(self) -> str:
        return self._series.next_name(self.migrations)

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Sort key: fewer failures first, then the older VMI."""
        instance = self.instance
        return self.refusals + len(self.failures), instance.created, instance.key.namespace, instance.key.name

    @property
    def _series(self) -> GeneratedMigrations:
        return GeneratedMigrations(PREFIX, WORKLOAD_UPDATE_MIGRATION, self.instance.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    kubevirt: KubeVirt
    candidates: tuple[Candidate, ...] = ()
    under_way: int = 0
    """Unfinished migrations that were created here, except those that cannot begin."""
    leaving: Mapping[str, int] = field(default_factory=dict)
    """How many of them leave each node."""
    now: float
    """Seconds since the epoch."""
    outdated_nodes: tuple[str, ...] = ()
    """Nodes that take machines and whose virt-handler is not updated: the rollout is not finished."""
    announced: frozenset[str] = frozenset()
    """UIDs of failed migrations whose back-off was reported."""

    @property
    def strategy(self) -> WorkloadUpdateStrategy:
        return self.kubevirt.spec.workload_update_strategy

    @property
    def next_batch_in(self) -> float:
        """Return in how many seconds the next batch of evictions may begin."""
        last = read_timestamp(self.kubevirt.status.last_workload_eviction)
        if last is None:
            return 0.0
        configured = seconds(self.strategy.batch_eviction_interval)
        interval = max(SHORTEST_INTERVAL, USUAL_INTERVAL if configured is None else configured)
        return remaining_seconds(interval, self.now - last)


@dataclass(frozen=True, slots=True)
class Label:
    """Set or remove the label that the launcher is outdated."""

    instance: InstanceView
    because: str


@dataclass(frozen=True, slots=True)
class CreateMigration:
    instance: InstanceView
    name: str
    priority: str
    because: str


@dataclass(frozen=True, slots=True)
class DropMigration:
    """Delete a migration that has not begun."""

    instance: InstanceView
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class BeginBatch:
    """Record the start of a batch of evictions before the first one: the next leader counts from it."""

    size: int
    because: str


@dataclass(frozen=True, slots=True)
class Evict:
    instance: InstanceView
    because: str


Action = Label | CreateMigration | DropMigration | BeginBatch | Evict
