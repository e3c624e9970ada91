# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the pool controller knows when it decides, and what it can do. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.selector import matcher
from controlplane.virt_controller.pool.member import Member, Run

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class World:
    """Without slots: who counts is asked several times, and is worked out once of thousands."""

    pool: VirtualMachinePool
    template: Json = field(default_factory=dict)
    """spec.virtualMachineTemplate as the API server has it."""
    revision: str = ""
    """Of this template."""
    members: tuple[Member, ...] = ()
    """Machines that it controls, by name."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """Instances of them, by the machine's UID."""
    free: tuple[int, ...] = ()
    """The lowest numbers under which there is no machine: as many as are missing, but for a burst."""
    unmade: tuple[int, ...] = ()
    """Those that were begun, under which nothing exists as far as is known."""
    absent: frozenset[int] = frozenset()
    """Those of them of which the API server has said so, since this process last tried to make one."""
    unsure: tuple[int, ...] = ()
    """Numbers of the batch under which another machine than the one that is shown may have been made, unseen."""
    now: float
    """Seconds since the epoch."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of machines and instances whose deletion was accepted and is not seen yet."""
    problems: tuple[str, ...] = ()
    """What is wrong with the selector; admission would have refused it."""
    is_current: bool = True
    """The API server itself said that the pool is as it is here."""
    is_past_known: bool = True
    """Every machine of the batches before, as far as it still exists, is seen."""

    @property
    def is_deleting(self) -> bool:
        return self.pool.metadata.deletion_timestamp is not None

    @property
    def counted(self) -> tuple[Member, ...]:
        """Members that are selected: those that are going, too, whose names are not free yet."""
        return self._groups[0]

    @property
    def strangers(self) -> tuple[Member, ...]:
        """Members that are not selected any more."""
        return self._groups[1]

    @cached_property
    def staying(self) -> tuple[Member, ...]:
        """Those that count and are not going."""
        return tuple(one for one in self.counted if not self.is_going(one))

    @property
    def missing(self) -> int:
        """How many are missing; below zero: too many."""
        return self.pool.spec.replicas - len(self.counted)

    def is_going(self, one: Member) -> bool:
        """Tell whether a machine is being deleted."""
        return one.is_deleting or one.metadata.uid in self.deletes_sent

    def run_of(self, one: Member) -> Run | None:
        """Return what a machine runs as, if that is not going."""
        run = self.runs.get(one.metadata.uid)
        return None if run is None or run.is_going or run.metadata.uid in self.deletes_sent else run

    @cached_property
    def _groups(self) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        selects = matcher(self.pool.spec.selector)
        counted: list[Member] = []
        strangers: list[Member] = []
        for one in self.members:
            is_selected = selects(one.metadata.labels)
            (counted if is_selected or self.is_going(one) else strangers).append(one)
        return tuple(counted), tuple(strangers)


@dataclass(frozen=True, slots=True)
class BeginBatch:
    """Write down which machines are about to be made."""

    numbers: tuple[int, ...]
    because: str


@dataclass(frozen=True, slots=True)
class LookAtPool:
    """Ask the API server, not the cache, whether the pool is what is decided on."""

    because: str


@dataclass(frozen=True, slots=True)
class LookForVm:
    """Ask the API server, not the cache, whether a machine of this number exists."""

    number: int
    because: str


@dataclass(frozen=True, slots=True)
class CreateVm:
    number: int
    because: str


@dataclass(frozen=True, slots=True)
class DeleteVm:
    member: Member
    because: str
    is_update: bool = False
    """It is made anew, because its DataVolumes are to be others."""


@dataclass(frozen=True, slots=True)
class UpdateVm:
    """Give a machine the template that the pool has."""

    member: Member
    number: int
    because: str


@dataclass(frozen=True, slots=True)
class RestartVm:
    """Delete what a machine runs as: its controller makes it anew."""

    member: Member
    run: Run
    because: str


@dataclass(frozen=True, slots=True)
class ReleaseVm:
    """Take our owner reference off a machine, which is to live on."""

    member: Member
    because: str


Action = BeginBatch | LookAtPool | LookForVm | CreateVm | DeleteVm | UpdateVm | RestartVm | ReleaseVm
