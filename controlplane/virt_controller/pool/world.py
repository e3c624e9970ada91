# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the pool controller's decisions, and its own actions. Its other actions are those of members.world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubevirt_api import condition_types

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.virt_controller.members.world import MemberAction, Reasons, SetWorld
from controlplane.virt_controller.pool.member import Member, Run

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class World(SetWorld[VirtualMachinePool, Member]):
    reasons = Reasons(
        create=condition_types.FAILED_SCALE_OUT,
        delete=condition_types.FAILED_SCALE_IN,
        paused=("SuccessfulPaused", "Pool controller is paused"),
    )
    batch_field = "begun"

    template: Json = field(default_factory=dict)
    """spec.virtualMachineTemplate as stored."""
    revision: str = ""
    """Revision of this template."""
    runs: Mapping[str, Run] = field(default_factory=dict)
    """VMIs of the members, by the VM's UID."""
    restarts_sent: frozenset[str] = frozenset()
    """UIDs of VMIs whose deletion was accepted and is not in the cache yet."""
    free: tuple[int, ...] = ()
    """The lowest numbers without a VM, one for each missing member, at most BURST."""

    @property
    def counted(self) -> tuple[Member, ...]:
        """Members that the selector matches, and those being deleted: their names are not free yet."""
        return (*self.going, *self.selected)

    @property
    def alive(self) -> Iterable[Member]:
        return (member for member in self.members if not member.is_deleting)

    def run_of(self, member: Member) -> Run | None:
        """Return the VMI of a member, unless it is ending."""
        run = self.runs.get(member.metadata.uid)
        return None if run is None or run.is_ending or run.metadata.uid in self.restarts_sent else run


@dataclass(frozen=True, slots=True)
class UpdateVm:
    """Write the pool's template into a VM."""

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
