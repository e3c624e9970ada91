# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the replica set controller's decisions. Its actions are those of members.world."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kubevirt_api import condition_types

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.virt_controller.members.world import Reasons, SetWorld
from controlplane.virt_controller.replicaset.member import Member

HELD_BACK = (
    "instances ended before they ran; replacements wait for a growing back-off of at most 300 s;"
    " Events of the instances name the cause"
)


@dataclass(frozen=True, kw_only=True)
class World(SetWorld[VirtualMachineInstanceReplicaSet, Member]):
    reasons = Reasons(
        create=condition_types.FAILED_CREATE,
        delete=condition_types.FAILED_DELETE,
        paused=("Paused", "Controller got paused"),
    )
    batch_field = "batch_size"

    template: bytes = b"{}"
    """spec.template.spec as stored, JSON."""
    orphans: tuple[Member, ...] = ()
    """VMIs of the namespace without a controller."""
    held_back: int = 0
    """How many members are not replaced yet, because VMIs ended before they ran."""
    held_for: float = 0.0
    """For how many seconds they wait."""

    @cached_property
    def counted(self) -> tuple[Member, ...]:
        """Members that are selected, not being deleted, not final, and not losing their Pod; surplus ones first."""
        return tuple(member for member in self.selected if not member.is_spent)

    @property
    def alive(self) -> tuple[Member, ...]:
        return self.counted

    @property
    def spent(self) -> tuple[Member, ...]:
        """Members to replace: they are final or lose their Pod."""
        return tuple(member for member in self.selected if member.is_spent)

    @property
    def adoptable(self) -> tuple[Member, ...]:
        """Orphans that the selector matches."""
        return tuple(orphan for orphan in self.orphans if not orphan.is_deleting and self.selects(orphan))

    @property
    def warning(self) -> str:
        return HELD_BACK if self.held_back else ""
