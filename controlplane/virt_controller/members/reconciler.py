# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reconciler that replica sets and pools share: reads members, writes actions and status."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypedDict, TypeVar, Unpack, assert_never

import msgspec
from kubevirt_api.condition_types import REPLICA_PAUSED

from controlplane.api.admission.validate.selector import check_selector
from controlplane.api.objects import conditions
from controlplane.api.objects.decode import DecodeError, decode, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import AlreadyExists, Conflict, NotFound, Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import RefusedStep
from controlplane.engine.ports import Api, Clock, Json
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.members.cache import MemberCache
from controlplane.virt_controller.members.controller_state import ControllerState
from controlplane.virt_controller.members.member import MemberView
from controlplane.virt_controller.members.status import derive_status, explain, status_of_batch
from controlplane.virt_controller.members.world import (
    AdoptMember,
    BeginBatch,
    ConfirmMember,
    ConfirmSet,
    CreateMember,
    DeleteMember,
    MemberAction,
    MemberT,
    ReasonAndMessage,
    ReleaseMember,
    SetT,
    SetWorld,
)
from controlplane.virt_controller.reporting.events import Events, Regarding

log = logging.getLogger(__name__)
WorldT = TypeVar("WorldT", bound=SetWorld[Any, Any])


class Parts(TypedDict):
    """The dependencies of both reconcilers, besides their caches."""

    api: Api
    clock: Clock
    events: Events
    configuration: Callable[[], KubeVirtConfiguration]


class SetReconciler(ABC, Generic[SetT, MemberT, WorldT]):
    """Subclasses read their own part of the world, decide, and define the member kind and the texts of Events."""

    member_kind: ClassVar[Resource]
    template: ClassVar[str]
    """Path of the member's template in the set, for messages."""
    pause_events: ClassVar[tuple[ReasonAndMessage, ReasonAndMessage]]
    """Reason and message of the Events when the set is resumed, and when it is paused."""

    def __init__(
        self,
        set_type: type[SetT],
        *,
        sets: ReadYourWritesCache,
        objects: ReadYourWritesCache,
        read_member: Callable[[bytes], MemberT],
        **parts: Unpack[Parts],
    ) -> None:
        """objects: the cache of members."""
        self._set_type: type[SetT] = set_type
        self._set_kind = set_type.resource
        self._sets = sets
        self._objects = objects
        self._api = parts["api"]
        self._clock = parts["clock"]
        self._events = parts["events"]
        self._configuration = parts["configuration"]
        self._state = ControllerState()
        self._members = MemberCache(objects, read_member)

    @abstractmethod
    def read_world(self, key: Key, owner: SetT, raw: bytes) -> WorldT:
        """Read the world of a set. Raises DecodeError and msgspec.DecodeError."""

    @abstractmethod
    def build_member(self, world: WorldT, name: str) -> Json:
        """Build the manifest of a member, with defaults."""

    @abstractmethod
    def created_text(self, key: Key) -> str: ...

    @abstractmethod
    def deleted_text(self, member: MemberT, because: str) -> str: ...

    def _is_synced(self) -> bool:
        return self._sets.synced and self._objects.synced

    def observe(self, key: Key) -> WorldT | None:
        """Read the caches. Raises Unavailable while one of them is not synced: before that, absence proves nothing."""
        if not self._is_synced():
            raise Unavailable(f"cannot judge {self._set_kind.kind} {key}: the caches are not synced yet")
        raw = self._sets.get(key)
        if raw is None:
            self._forget(key)
            return None
        try:
            return self.read_world(key, decode(raw, self._set_type), raw)
        except (DecodeError, msgspec.DecodeError) as error:
            extra = {"kind": self._set_kind.kind, "key": str(key), "error": str(error)}
            log.warning("set skipped: it or a member does not fit its schema", extra=extra)
            return None

    def _forget(self, key: Key) -> None:
        self._state.forget(key)

    def _controlled(self, owner: SetT) -> tuple[MemberT, ...]:
        uid, kind = owner.metadata.uid, self._set_kind.kind
        members = self._members.read(self._objects.indexed("owner", uid))
        return tuple(member for member in members if member.is_controlled_by(kind, uid))

    def _common(
        self, owner: SetT, members: tuple[MemberT, ...], names: tuple[str, ...], labels: Mapping[str, str]
    ) -> Json:
        """Return the fields of SetWorld. names: of the open batch; labels: of the template."""
        key = key_of(owner)
        state = self._state.observe(key, owner)
        uids = {name: self._objects.uid(Key(key.namespace, name)) for name in names}
        problems = check_selector(owner.spec.selector, labels, "spec.selector", f"{self.template}.metadata.labels")
        return {
            "owner": owner,
            "members": members,
            "unmade": tuple(name for name, uid in uids.items() if uid is None),
            "absent": frozenset(state.absent),
            "shown": tuple((name, state.confirmed.get(name) == uid) for name, uid in uids.items() if uid is not None),
            "unconfirmed": frozenset(state.unconfirmed),
            "now": self._clock.now(),
            "deletes_sent": frozenset(deletes_sent(self._objects, members)),
            "problems": tuple(map(str, problems)),
            "is_current": state.current == owner.metadata.resource_version,
            "has_read_earlier_batches": self._objects.resource_version >= state.version,
        }

    def derive_status(self, world: WorldT, problem: RefusedStep[Any] | None) -> Any:
        return derive_status(world, problem)

    async def apply(self, world: WorldT, action: MemberAction) -> None:
        """Write one action. Raises ApiError."""
        match action:
            case BeginBatch():
                await self.write_status(world, status_of_batch(world, action))
            case ConfirmSet():
                await self._confirm_set(world.owner)
            case ConfirmMember():
                await self._confirm_member(world.owner, action.name)
            case CreateMember():
                await self._create(world, action.name)
            case DeleteMember():
                await self._delete(world.owner, action)
            case AdoptMember():
                await self._set_owners(world.owner, action.member, owner_reference(world.owner))
            case ReleaseMember():
                await self._set_owners(world.owner, action.member)
            case _:
                assert_never(action)

    async def write_status(self, world: WorldT, status: Any) -> None:
        owner = world.owner
        key, version = key_of(owner), owner.metadata.resource_version
        self._state.of(key).current = ""  # if the response is lost, the set's version is unknown
        stored = await self._api.patch(
            self._set_kind,
            key,
            {"status": merge_patch(encode(owner.status), encode(status))},
            subresource="status",
            resource_version=version,
            uid=owner.metadata.uid,
        )
        self._state.of(key).note_written(decode(stored, self._set_type))
        was_paused, is_paused = (
            conditions.is_true(state.conditions, REPLICA_PAUSED) for state in (owner.status, status)
        )
        if was_paused != is_paused:
            reason, text = self.pause_events[is_paused]
            self._record(owner, reason, text, occurrence=version)

    def report_refusal(self, world: WorldT, problem: RefusedStep[Any]) -> None:
        reason, message = explain(world.reasons, problem)
        self._events.record(self._regarding(world.owner), "Warning", reason, message)

    async def _confirm_set(self, owner: Any) -> None:
        """Read the set. The read-your-writes cache stores the response. Raises Conflict if the set has changed."""
        key, meta = key_of(owner), owner.metadata
        fresh = (await self._api.get(self._set_kind, key))["metadata"]
        if (fresh["uid"], fresh["resourceVersion"]) != (meta.uid, meta.resource_version):
            raise Conflict(f"cannot act on {self._set_kind.kind} {key}: it has changed meanwhile")
        self._state.of(key).current = fresh["resourceVersion"]

    async def _confirm_member(self, owner: Any, name: str) -> None:
        """Read a member. The read-your-writes cache stores the response."""
        key = key_of(owner)
        try:
            member = await self._api.get(self.member_kind, Key(key.namespace, name))
        except NotFound:
            self._state.of(key).note_absent(name)
        else:
            self._state.of(key).note_confirmed(name, member["metadata"]["uid"])

    async def _create(self, world: WorldT, name: str) -> None:
        owner_key = key_of(world.owner)
        key, body = Key(owner_key.namespace, name), self.build_member(world, name)
        self._state.of(owner_key).note_attempt(name)
        try:
            member = await self._api.create(self.member_kind, key.namespace, body)
        except AlreadyExists as error:
            # The member is ours, from a create whose response was lost, or a foreign object: read it, then decide
            # again.
            await self._api.get(self.member_kind, key)
            raise Conflict(str(error)) from error
        uid = member["metadata"]["uid"]
        self._state.of(owner_key).note_confirmed(name, uid)
        self._record(world.owner, "SuccessfulCreate", self.created_text(key), occurrence=uid)

    async def _delete(self, owner: Any, action: DeleteMember) -> None:
        """Delete only the observed version: a member that has changed (e.g. lost its owner) stays."""
        meta = action.member.metadata
        if await self._delete_version(self.member_kind, action.member):
            message = self.deleted_text(action.member, action.because)
            self._record(owner, "SuccessfulDelete", message, occurrence=meta.uid)

    async def _delete_version(self, resource: Resource, member: MemberView) -> bool:
        """Delete this version of an object; return False if it is gone. Raises Conflict if it has changed."""
        meta = member.metadata
        try:
            await self._api.delete(resource, member.key, uid=meta.uid, resource_version=meta.resource_version)
        except NotFound:
            return False
        return True

    async def _set_owners(self, owner: Any, member: MemberT, *ours: Json) -> None:
        """Add or remove our owner reference. Other owners stay."""
        meta = member.metadata
        others: list[Any] = [
            encode(reference) for reference in meta.owner_references if reference.uid != owner.metadata.uid
        ]
        await self._api.patch(
            self.member_kind,
            member.key,
            {"metadata": {"ownerReferences": [*others, *ours] or None}},
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    def _record(self, owner: Any, reason: str, text: str, *, occurrence: str) -> None:
        self._events.record(self._regarding(owner), "Normal", reason, text, occurrence=occurrence)

    def _regarding(self, owner: Any) -> Regarding:
        return Regarding(self._set_kind, key_of(owner), owner.metadata.uid)


def deletes_sent(cache: ReadYourWritesCache, members: Iterable[MemberView]) -> Iterator[str]:
    """Yield the UIDs of members whose deletion was accepted and is not in the cache yet."""
    return (member.metadata.uid for member in members if cache.is_delete_sent(member.key, member.metadata.uid))


def key_of(owner: Any) -> Key:
    return Key(owner.metadata.namespace, owner.metadata.name)
