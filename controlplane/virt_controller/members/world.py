# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the decisions about a set's members, and the actions on them. Pure.

A set is a replica set or a pool: its controller adds what only its kind has.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.selector import matcher
from controlplane.virt_controller.members.member import MemberView

SetT = TypeVar("SetT", VirtualMachineInstanceReplicaSet, VirtualMachinePool)
MemberT = TypeVar("MemberT", bound=MemberView)
ReasonAndMessage = tuple[str, str]


class Reasons(NamedTuple):
    """Reasons that differ between replica sets and pools, as in KubeVirt."""

    create: str
    delete: str
    paused: ReasonAndMessage


class _Groups(NamedTuple):
    going: tuple[Any, ...]
    selected: tuple[Any, ...]
    unselected: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class SetWorld(Generic[SetT, MemberT]):
    """It has no slots, because properties cache values that are derived from thousands of members."""

    reasons: ClassVar[Reasons]
    batch_field: ClassVar[str]
    """The field of the status that holds the open batch: a number, or the numbers of the members."""

    owner: SetT
    """The replica set or pool."""
    members: tuple[MemberT, ...] = ()
    """Objects that it controls, by name."""
    unmade: tuple[str, ...] = ()
    """Names of the batch that the cache does not have."""
    absent: frozenset[str] = frozenset()
    """Names of unmade for which the API server returned 404, since this process last tried to create them."""
    shown: tuple[tuple[str, bool], ...] = ()
    """The other names of the batch, and whether the API server confirmed the object that the cache has."""
    unconfirmed: frozenset[str] = frozenset()
    """Names of the batch that this process tried to create without a response."""
    now: float
    """Seconds since the epoch."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of members whose deletion was accepted and is not in the cache yet."""
    problems: tuple[str, ...] = ()
    """Errors of the selector. Admission rejects such a set."""
    is_current: bool = True
    """The API server, not only the cache, returned this version of the set."""
    has_read_earlier_batches: bool = True
    """The cache has every member of the earlier batches that still exists."""

    @property
    @abstractmethod
    def counted(self) -> tuple[MemberT, ...]:
        """Members that count as replicas."""

    @property
    @abstractmethod
    def alive(self) -> Iterable[MemberT]:
        """Members that prove that their name was created: the cache shows them alive."""

    @property
    def warning(self) -> str:
        """A failure without a refused action; "" if there is none."""
        return ""

    @property
    def is_deleting(self) -> bool:
        return self.owner.metadata.deletion_timestamp is not None

    @property
    def missing(self) -> int:
        """How many members are missing; negative if there are too many."""
        return self.owner.spec.replicas - len(self.counted)

    @property
    def going(self) -> tuple[MemberT, ...]:
        """Members that are being deleted."""
        return self._groups.going

    @property
    def selected(self) -> tuple[MemberT, ...]:
        """Members that stay and that the selector matches, in order."""
        return self._groups.selected

    @property
    def unselected(self) -> tuple[MemberT, ...]:
        """Members that stay and that the selector does not match any more."""
        return self._groups.unselected

    @property
    def unsure(self) -> tuple[str, ...]:
        """Names of the batch under which the cache may have an outdated object: a former member of the name.

        A member that is alive is the current one, unless this process tried to create its name again.
        """
        alive = {member.metadata.name for member in self.alive} - self.unconfirmed
        return tuple(name for name, is_confirmed in self.shown if not is_confirmed and name not in alive)

    def selects(self, member: MemberT) -> bool:
        return self._matches(member.metadata.labels)

    @cached_property
    def _matches(self) -> Callable[[Mapping[str, str]], bool]:
        return matcher(self.owner.spec.selector)

    @cached_property
    def _groups(self) -> _Groups:
        going: list[MemberT] = []
        selected: list[MemberT] = []
        unselected: list[MemberT] = []
        for member in self.members:
            if member.is_deleting or member.metadata.uid in self.deletes_sent:
                going.append(member)
            else:
                (selected if self.selects(member) else unselected).append(member)
        return _Groups(tuple(going), tuple(selected), tuple(unselected))


@dataclass(frozen=True, slots=True)
class BeginBatch:
    """Record in the status that members are about to be created."""

    batch: int | tuple[int, ...]
    """How many; in a pool, their numbers."""
    because: str


@dataclass(frozen=True, slots=True)
class ConfirmSet:
    """Confirm with the API server that the set is the version that the decision is based on."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmMember:
    """Confirm with the API server whether an object of this name exists."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class CreateMember:
    name: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteMember:
    member: Any
    because: str
    is_update: bool = False
    """The member is created again from a changed template."""


@dataclass(frozen=True, slots=True)
class AdoptMember:
    """Add our owner reference."""

    member: Any
    because: str


@dataclass(frozen=True, slots=True)
class ReleaseMember:
    """Remove our owner reference. The object stays."""

    member: Any
    because: str


MemberAction = BeginBatch | ConfirmSet | ConfirmMember | CreateMember | DeleteMember | AdoptMember | ReleaseMember
