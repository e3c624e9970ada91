# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the pool controller's decisions, and its own actions. Its other actions are those of members.world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.selector import matcher
from controlplane.virt_controller.members.world import MemberAction, SetWorld
from controlplane.virt_controller.pool.member import Member, Run

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class World(SetWorld[VirtualMachinePool, Member]):
    """deletes_sent has the UIDs of VMs and VMIs."""

    template: Json = field(default_factory=dict)
    """spec.virtualMachineTemplate as stored."""
    revision: str = ""
    """Revision of this template."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """VMIs of the members, by the VM's UID."""
    free: tuple[int, ...] = ()
    """The lowest numbers without a VM, one for each missing member, at most BURST."""

    @property
    def counted(self) -> tuple[Member, ...]:
        """Members that the selector matches, and those being deleted: their names are not free yet."""
        return self._groups[0]

    @property
    def seen(self) -> Iterable[Member]:
        return (member for member in self.members if not member.is_deleting)

    @property
    def unselected(self) -> tuple[Member, ...]:
        """Members that the selector does not match any more."""
        return self._groups[1]

    @cached_property
    def staying(self) -> tuple[Member, ...]:
        """Counted members that are not being deleted."""
        return tuple(member for member in self.counted if not self.is_going(member))

    @property
    def missing(self) -> int:
        """How many members are missing; negative if there are too many."""
        return self.owner.spec.replicas - len(self.counted)

    def run_of(self, member: Member) -> Run | None:
        """Return the VMI of a member, unless it is ending."""
        run = self.runs.get(member.metadata.uid)
        return None if run is None or run.is_ending or run.metadata.uid in self.deletes_sent else run

    @cached_property
    def _groups(self) -> tuple[tuple[Member, ...], tuple[Member, ...]]:
        selects = matcher(self.owner.spec.selector)
        counted: list[Member] = []
        unselected: list[Member] = []
        for member in self.members:
            is_selected = selects(member.metadata.labels)
            (counted if is_selected or self.is_going(member) else unselected).append(member)
        return tuple(counted), tuple(unselected)


@dataclass(frozen=True, slots=True)
class UpdateVm:
    """Give a VM the pool's template."""

    member: Member
    number: int
    because: str


@dataclass(frozen=True, slots=True)
class RestartVm:
    """Delete the VMI of a VM: the VM controller creates it again."""

    member: Member
    run: Run
    because: str


Action = MemberAction | UpdateVm | RestartVm
