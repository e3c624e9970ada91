# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the replica set controller's decisions. Its actions are those of members.world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.selector import matcher
from controlplane.virt_controller.members.world import SetWorld
from controlplane.virt_controller.replicaset.member import Member


class _Groups(NamedTuple):
    active: tuple[Member, ...]
    spent: tuple[Member, ...]
    unselected: tuple[Member, ...]


@dataclass(frozen=True, kw_only=True)
class World(SetWorld[VirtualMachineInstanceReplicaSet, Member]):
    """members is in the order in which surplus members are deleted."""

    template: bytes = b"{}"
    """spec.template.spec as stored, JSON."""
    orphans: tuple[Member, ...] = ()
    """VMIs of the namespace without a controller."""
    held_back: int = 0
    """How many members are not replaced yet, because VMIs ended before they ran."""
    held_for: float = 0.0
    """For how many seconds they wait."""

    @property
    def active(self) -> tuple[Member, ...]:
        """Members that count: selected, not final, not being deleted, and not losing their Pod."""
        return self._groups.active

    @property
    def seen(self) -> Iterable[Member]:
        return self.active

    @property
    def spent(self) -> tuple[Member, ...]:
        """Members to replace: they are final or lose their Pod."""
        return self._groups.spent

    @property
    def unselected(self) -> tuple[Member, ...]:
        """Members that the selector does not match any more."""
        return self._groups.unselected

    @property
    def adoptable(self) -> tuple[Member, ...]:
        """Orphans that the selector matches."""
        return tuple(orphan for orphan in self.orphans if not orphan.is_deleting and self._is_selected(orphan))

    @cached_property
    def _groups(self) -> _Groups:
        active, spent, unselected = [], [], []
        for member in self.members:
            if self.is_going(member):
                continue
            if not self._is_selected(member):
                unselected.append(member)
            elif member.is_final or member.is_losing_its_pod:
                spent.append(member)
            else:
                active.append(member)
        return _Groups(tuple(active), tuple(spent), tuple(unselected))

    def _is_selected(self, member: Member) -> bool:
        return self._selects(member.metadata.labels)

    @cached_property
    def _selects(self) -> Callable[[Mapping[str, str]], bool]:
        return matcher(self.owner.spec.selector)
