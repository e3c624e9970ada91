# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a decision about workload updates is based on, and what it can come to. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from kubevirt_api.names import WORKLOAD_UPDATE_MIGRATION

from controlplane.api.go_duration import seconds
from controlplane.api.objects.kubevirt import KubeVirt, WorkloadUpdateStrategy
from controlplane.api.objects.migration import FAILED, FINAL, PENDING, UNSET, VirtualMachineInstanceMigration
from controlplane.virt_controller.evacuation.world import FIRST_SECONDS, MOST_DOUBLINGS, ended_at, left_of
from controlplane.virt_controller.stamps import read_stamp
from controlplane.virt_controller.workload_update.machine import Machine

PREFIX = "kubevirt-workload-update-"
SHORTEST_INTERVAL = 5.0
"""Seconds from one batch of evictions to the next, whatever the strategy says."""
USUAL_INTERVAL = 60.0
"""Where what it says is no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An instance that may have something done about it."""

    machine: Machine
    migrations: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Of it."""
    refusals: int = 0
    """How often in a row something about it was refused."""
    held_for: float = 0.0
    """For how many seconds more nothing is tried, because of that."""
    is_served: bool = True
    """The virt-handler of its node is this control plane's."""
    is_evicted: bool = False
    """The eviction of the Pod that has it was granted: it ends."""

    @property
    def is_moving(self) -> bool:
        """Tell whether a migration of it is not over, whoever made it, or it leaves its node for another's sake."""
        return self.machine.is_on_its_way or any(one.status.phase not in FINAL for one in self.migrations)

    @property
    def unbegun(self) -> tuple[VirtualMachineInstanceMigration, ...]:
        """Its migrations that were made here and have not begun."""
        waiting = (one for one in self._ours if one.status.phase in (UNSET, PENDING))
        return tuple(one for one in waiting if one.metadata.deletion_timestamp is None)

    @property
    def failures(self) -> list[VirtualMachineInstanceMigration]:
        """List those that were made here and failed, the last one first, back to one that did not fail."""
        ours = sorted(self._ours, key=lambda one: number_of(self.machine, one.metadata.name), reverse=True)
        return list(takewhile(lambda one: one.status.phase == FAILED, ours))

    def waits_for(self, now: float) -> float:
        """Return for how many seconds more it is not tried to move, because of failures."""
        failures = self.failures
        if not failures:
            return self.held_for
        return max(self.held_for, left_of(back_off(len(failures)), now - max(map(ended_at, failures))))

    @property
    def next_name(self) -> str:
        """Name the next migration: the same for everybody who knows of the same ones."""
        last = max((number_of(self.machine, one.metadata.name) for one in self.migrations), default=0)
        return f"{_stem(self.machine)}{last + 1}"

    @property
    def order(self) -> tuple[int, str, str, str]:
        """Who has failed less comes first, then who is older."""
        one = self.machine
        return self.refusals + len(self.failures), one.created, one.key.namespace, one.key.name

    @property
    def _ours(self) -> list[VirtualMachineInstanceMigration]:
        return [one for one in self.migrations if WORKLOAD_UPDATE_MIGRATION in one.metadata.annotations]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    kubevirt: KubeVirt
    candidates: tuple[Candidate, ...] = ()
    under_way: int = 0
    """Migrations of anybody that are not over, but for those that cannot begin."""
    leaving: Mapping[str, int] = field(default_factory=dict)
    """Those by the node that is left."""
    now: float
    """Seconds since the epoch."""
    awaited: tuple[str, ...] = ()
    """Nodes that take machines and have another control plane's virt-handler: it is being rolled out."""
    told: frozenset[str] = frozenset()
    """Failed migrations after which it was told that the next one waits."""

    @property
    def strategy(self) -> WorkloadUpdateStrategy:
        return self.kubevirt.spec.workload_update_strategy

    @property
    def next_batch_in(self) -> float:
        """Return for how many seconds more nobody is evicted. See left_of for a wrong clock."""
        last = read_stamp(self.kubevirt.status.last_workload_eviction)
        if last is None:
            return 0.0
        found = seconds(self.strategy.batch_eviction_interval)
        interval = max(SHORTEST_INTERVAL, USUAL_INTERVAL if found is None else found)
        return left_of(interval, self.now - last)


def back_off(failures: int) -> float:
    """Return how many seconds there are to the next try after some that failed."""
    return FIRST_SECONDS * 2.0 ** min(failures - 1, MOST_DOUBLINGS)


def number_of(machine: Machine, name: str) -> int:
    """Return which of its migrations for an update has a name; 0 for what is none."""
    number = name.removeprefix(_stem(machine))
    return int(number) if number != name and number.isascii() and number.isdecimal() and len(number) < 10 else 0


def _stem(machine: Machine) -> str:
    return f"{PREFIX}{machine.uid.replace('-', '')[:8]}-"


@dataclass(frozen=True, slots=True)
class Label:
    """Say on an instance that its launcher is outdated, or no longer."""

    machine: Machine
    because: str


@dataclass(frozen=True, slots=True)
class CreateMigration:
    machine: Machine
    name: str
    priority: str
    because: str


@dataclass(frozen=True, slots=True)
class DropMigration:
    """Delete a migration that has not begun."""

    machine: Machine
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
    machine: Machine
    because: str


Action = Label | CreateMigration | DropMigration | BeginBatch | Evict
