# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the replica set controller knows when it decides, and what it can do. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.selector import matcher
from controlplane.virt_controller.replicaset.member import Member


class _Groups(NamedTuple):
    active: tuple[Member, ...]
    spent: tuple[Member, ...]
    strangers: tuple[Member, ...]


@dataclass(frozen=True, kw_only=True)
class World:
    """Without slots: who counts is asked several times, and is worked out once of thousands."""

    replica_set: VirtualMachineInstanceReplicaSet
    template: bytes = b"{}"
    """spec.template.spec as the API server has it, JSON."""
    members: tuple[Member, ...] = ()
    """Instances that it controls, by UID; by name. This order says who goes first."""
    orphans: tuple[Member, ...] = ()
    """Instances of its namespace that nobody controls."""
    unmade: tuple[str, ...] = ()
    """Names of the batch that was begun, under which nothing exists as far as is known."""
    absent: frozenset[str] = frozenset()
    """Those of them of which the API server has said so, since this process last tried to make one."""
    shown: tuple[tuple[str, bool], ...] = ()
    """The other names of the batch, and whether the API server itself has said that it is this instance's."""
    doubted: frozenset[str] = frozenset()
    """Names of the batch under which this process may have made an instance, unseen: of none it has had an answer."""
    now: float
    """Seconds since the epoch."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of members whose deletion was accepted and is not seen yet."""
    problems: tuple[str, ...] = ()
    """What is wrong with the selector; admission would have refused it."""
    held_back: int = 0
    """How many are not replaced yet, because instances ended before they ran."""
    held_for: float = 0.0
    """For how many seconds."""
    is_current: bool = True
    """The API server itself said that the set is as it is here."""
    is_past_known: bool = True
    """Every instance of the batches before, as far as it still exists, is seen."""

    @property
    def is_deleting(self) -> bool:
        return self.replica_set.metadata.deletion_timestamp is not None

    @property
    def active(self) -> tuple[Member, ...]:
        """Members that count: selected, neither over nor going nor about to."""
        return self._groups.active

    @property
    def unsure(self) -> tuple[str, ...]:
        """Names of the batch under which another instance than the one that is shown may have been made, unseen.

        Which is nothing to ask about one that counts, unless this process tried to make another after it.
        """
        counting = {one.metadata.name for one in self.active} - self.doubted
        return tuple(name for name, is_found in self.shown if not is_found and name not in counting)

    @property
    def spent(self) -> tuple[Member, ...]:
        """Members that are to be replaced: they are over, or lose their Pod."""
        return self._groups.spent

    @property
    def strangers(self) -> tuple[Member, ...]:
        """Members that are not selected any more."""
        return self._groups.strangers

    @property
    def recruits(self) -> tuple[Member, ...]:
        """Instances that are selected and belong to nobody."""
        return tuple(one for one in self.orphans if not one.is_deleting and self._is_selected(one))

    @cached_property
    def _groups(self) -> _Groups:
        active, spent, strangers = [], [], []
        for one in self.members:
            if one.is_deleting or one.metadata.uid in self.deletes_sent:
                continue
            if not self._is_selected(one):
                strangers.append(one)
            elif one.is_over or one.is_losing_its_pod:
                spent.append(one)
            else:
                active.append(one)
        return _Groups(tuple(active), tuple(spent), tuple(strangers))

    def _is_selected(self, one: Member) -> bool:
        return self._selects(one.metadata.labels)

    @cached_property
    def _selects(self) -> Callable[[Mapping[str, str]], bool]:
        return matcher(self.replica_set.spec.selector)


@dataclass(frozen=True, slots=True)
class BeginBatch:
    """Write down that so many instances are about to be made."""

    size: int
    because: str


@dataclass(frozen=True, slots=True)
class LookAtSet:
    """Ask the API server, not the cache, whether the set is what is decided on."""

    because: str


@dataclass(frozen=True, slots=True)
class LookForVmi:
    """Ask the API server, not the cache, whether an instance of this name exists."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class CreateVmi:
    name: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteVmi:
    member: Member
    because: str


@dataclass(frozen=True, slots=True)
class AdoptVmi:
    member: Member
    because: str


@dataclass(frozen=True, slots=True)
class ReleaseVmi:
    """Take our owner reference off an instance, which is to live on."""

    member: Member
    because: str


Action = BeginBatch | LookAtSet | LookForVmi | CreateVmi | DeleteVmi | AdoptVmi | ReleaseVmi
