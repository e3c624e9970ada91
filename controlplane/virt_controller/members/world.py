# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the decisions about a set, and the actions on its members. Values only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.virt_controller.members.member import MemberView

SetT = TypeVar("SetT", VirtualMachineInstanceReplicaSet, VirtualMachinePool)
MemberT = TypeVar("MemberT", bound=MemberView)


@dataclass(frozen=True, kw_only=True)
class SetWorld(Generic[SetT, MemberT]):
    """It has no slots, because subclasses cache values that are derived from thousands of members."""

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
    """UIDs of objects whose deletion was accepted and is not in the cache yet."""
    problems: tuple[str, ...] = ()
    """Errors of the selector. Admission rejects such a set."""
    is_current: bool = True
    """The API server, not only the cache, returned this version of the set."""
    has_read_earlier_batches: bool = True
    """The cache has every member of the earlier batches that still exists."""

    @property
    def is_deleting(self) -> bool:
        return self.owner.metadata.deletion_timestamp is not None

    def is_going(self, member: MemberT) -> bool:
        """Tell whether a member is being deleted."""
        return member.is_deleting or member.metadata.uid in self.deletes_sent

    @property
    def seen(self) -> Iterable[MemberT]:
        """Members that prove that their name was created: the cache shows them alive."""
        raise NotImplementedError

    @property
    def unsure(self) -> tuple[str, ...]:
        """Names of the batch under which the cache may have an outdated object: a former member of the name.

        A member that is alive is the current one, unless this process tried to create its name again.
        """
        alive = {member.metadata.name for member in self.seen} - self.unconfirmed
        return tuple(name for name, is_confirmed in self.shown if not is_confirmed and name not in alive)


@dataclass(frozen=True, slots=True)
class BeginBatch:
    """Record in the status that members are about to be created."""

    size: int
    because: str
    numbers: tuple[int, ...] = ()
    """Numbers of the members, in a pool."""


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
