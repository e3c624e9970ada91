# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a decision about workload updates is based on, and what it can come to. Values only."""

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
"""Seconds from one batch of evictions to the next, whatever the strategy says."""
USUAL_INTERVAL = 60.0
"""Where what it says is no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An instance that may have something done about it."""

    instance: InstanceView
    migrations: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Of it."""
    refusals: int = 0
    """How often in a row something about it was refused."""
    backs_off_for: float = 0.0
    """For how many seconds more nothing is tried, because of that."""
    is_served: bool = True
    """The virt-handler of its node is this control plane's."""
    is_evicted: bool = False
    """The eviction of the Pod that has it was granted: it ends."""

    @property
    def is_moving(self) -> bool:
        """Tell whether a migration of it is not over, whoever made it, or it leaves its node for another's sake."""
        return self.instance.is_leaving or any(migration.status.phase not in FINAL for migration in self.migrations)

    @property
    def reason(self) -> str:
        """Say why it is to move; "" when it is not."""
        return OUTDATED if self.instance.is_outdated else self.instance.reason

    @property
    def obsolete(self) -> tuple[VirtualMachineInstanceMigration, ...]:
        """Its migrations that were made here for what is no reason any more, while no launcher is up for them yet.

        One whose Pod no node has room for would keep the next one waiting until its time is over.
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
        """List those that were made here and failed, the last one first, back to one that did not fail."""
        return self._series.failures(self.migrations)

    def waits_for(self, now: float) -> float:
        """Return for how many seconds more it is not tried to move, because of failures."""
        return max(self.backs_off_for, self._series.waits_for(self.migrations, now))

    @property
    def next_name(self) -> str:
        return self._series.next_name(self.migrations)

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Who has failed less comes first, then who is older."""
        one = self.instance
        return self.refusals + len(self.failures), one.created, one.key.namespace, one.key.name

    @property
    def _series(self) -> GeneratedMigrations:
        return GeneratedMigrations(PREFIX, WORKLOAD_UPDATE_MIGRATION, self.instance.uid)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    kubevirt: KubeVirt
    candidates: tuple[Candidate, ...] = ()
    under_way: int = 0
    """Migrations that were made here and are not over, but for those that cannot begin."""
    leaving: Mapping[str, int] = field(default_factory=dict)
    """Those by the node that is left."""
    now: float
    """Seconds since the epoch."""
    outdated_nodes: tuple[str, ...] = ()
    """Nodes that take instances and have another control plane's virt-handler: it is being rolled out."""
    announced: frozenset[str] = frozenset()
    """Failed migrations after which it was told that the next one waits."""

    @property
    def strategy(self) -> WorkloadUpdateStrategy:
        return self.kubevirt.spec.workload_update_strategy

    @property
    def next_batch_in(self) -> float:
        """Return for how many seconds more nobody is evicted. See remaining_seconds for a wrong clock."""
        last = read_timestamp(self.kubevirt.status.last_workload_eviction)
        if last is None:
            return 0.0
        found = seconds(self.strategy.batch_eviction_interval)
        interval = max(SHORTEST_INTERVAL, USUAL_INTERVAL if found is None else found)
        return remaining_seconds(interval, self.now - last)


@dataclass(frozen=True, slots=True)
class Label:
    """Say on an instance that its launcher is outdated, or no longer."""

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
    """Write down that a batch of evictions begins now, before the first of it: who leads next counts from it."""

    size: int
    because: str


@dataclass(frozen=True, slots=True)
class Evict:
    instance: InstanceView
    because: str


Action = Label | CreateMigration | DropMigration | BeginBatch | Evict
