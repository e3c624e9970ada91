# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set controller: reads the caches into a World, writes actions and status. It chooses nothing.

Writes for a set that is scaled up by n: the status twice (begun, and how many there are), n creates and n Events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, assert_never

import msgspec
from kubevirt_api.condition_types import REPLICA_PAUSED

from controlplane.api.admission.defaults import default_instance
from controlplane.api.admission.validate.selector import check_selector
from controlplane.api.objects import conditions
from controlplane.api.objects.decode import DecodeError, decode, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import controller_of, owner_reference
from controlplane.api.objects.replica_set import (
    VirtualMachineInstanceReplicaSet,
    VirtualMachineInstanceReplicaSetStatus,
)
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, Key
from controlplane.engine.errors import AlreadyExists, Conflict, NotFound, Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.replicaset.decide import decide
from controlplane.virt_controller.replicaset.failures import Failures
from controlplane.virt_controller.replicaset.instance import build_vmi, names_of_batch
from controlplane.virt_controller.replicaset.member import UNCONTROLLED, Member, Members, read_member
from controlplane.virt_controller.replicaset.memory import Memories
from controlplane.virt_controller.replicaset.status import begun, derive_status, refusal
from controlplane.virt_controller.replicaset.world import (
    Action,
    AdoptVmi,
    BeginBatch,
    CreateVmi,
    DeleteVmi,
    LookAtSet,
    LookForVmi,
    ReleaseVmi,
    World,
)
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vm.template import stored_template

log = logging.getLogger(__name__)


class ReplicaSetReconciler:
    def __init__(
        self,
        *,
        replica_sets: ReadYourWritesCache,
        vmis: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
    ) -> None:
        self._replica_sets = replica_sets
        self._vmis = vmis
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._memories = Memories()
        self._members = Members(vmis, read_member)
        self._failures = Failures()

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable while they are not complete: then absence means nothing."""
        if not (self._replica_sets.synced and self._vmis.synced):
            raise Unavailable(f"cannot judge VirtualMachineInstanceReplicaSet {key}: not everything is known yet")
        raw = self._replica_sets.get(key)
        if raw is None:
            self._memories.forget(key)
            self._failures.forget(key)
            return None
        try:
            return self._world(key, raw)
        except (DecodeError, msgspec.DecodeError) as error:
            log.warning(
                "set left alone: something does not fit its schema", extra={"key": str(key), "error": str(error)}
            )
            return None

    def _world(self, key: Key, raw: bytes) -> World:
        replica_set = decode(raw, VirtualMachineInstanceReplicaSet)
        uid, spec = replica_set.metadata.uid, replica_set.spec
        owned = self._members.read(self._vmis.indexed("owner", uid))
        orphans = self._members.read(self._vmis.indexed(UNCONTROLLED, key.namespace))
        members = tuple(one for one in owned if _is_controlled(one, uid))
        labels = spec.template.metadata.labels
        problems = check_selector(spec.selector, labels, "spec.selector", "spec.template.metadata.labels")
        names = names_of_batch(replica_set)
        held_back, held_for = self._failures.note(key, replica_set, members, self._clock.monotonic())
        return World(
            replica_set=replica_set,
            template=stored_template(raw),
            members=members,
            orphans=tuple(one for one in orphans if controller_of(one.metadata) is None),
            unmade=tuple(name for name in names if self._vmis.get(Key(key.namespace, name)) is None),
            absent=self._memories.absent(key, replica_set),
            shown=tuple(
                (one.metadata.name, self._memories.is_found(key, replica_set, one.metadata.name, one.metadata.uid))
                for one in self._members.read(Key(key.namespace, name) for name in names)
            ),
            doubted=self._memories.doubted(key, replica_set),
            now=self._clock.now(),
            deletes_sent=frozenset(one.metadata.uid for one in members if self._is_delete_sent(one)),
            problems=tuple(str(one) for one in problems),
            held_back=held_back,
            held_for=held_for,
            is_current=self._memories.is_current(key, replica_set),
            is_past_known=self._memories.is_past_known(key, replica_set, self._vmis.resource_version),
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(
        self, world: World, problem: RefusedStep[Action] | None
    ) -> VirtualMachineInstanceReplicaSetStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        match action:
            case BeginBatch():
                await self.write_status(world, begun(world, action))
            case LookAtSet():
                await self._look(world.replica_set)
            case LookForVmi():
                await self._look_for(_key(world.replica_set), action.name)
            case CreateVmi():
                await self._create(world, action)
            case DeleteVmi():
                await self._delete(world, action)
            case AdoptVmi():
                await self._set_owners(world, action.member, owner_reference(world.replica_set))
            case ReleaseVmi():
                await self._set_owners(world, action.member)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: VirtualMachineInstanceReplicaSetStatus) -> None:
        old = world.replica_set
        self._memories.note_writing(_key(old))
        stored = await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
            _key(old),
            {"status": merge_patch(encode(old.status), encode(status))},
            subresource="status",
            resource_version=old.metadata.resource_version,
            uid=old.metadata.uid,
        )
        self._memories.note_written(_key(old), decode(stored, VirtualMachineInstanceReplicaSet))
        before, after = (conditions.is_true(one.conditions, REPLICA_PAUSED) for one in (old.status, status))
        if before != after:
            reason, text = ("SuccessfulPaused", "Paused") if after else ("SuccessfulResumed", "Resumed")
            version = old.metadata.resource_version
            self._events.record(_regarding(old), "Normal", reason, text, occurrence=version)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        reason, message = refusal(problem)
        self._events.record(_regarding(world.replica_set), "Warning", reason, message)

    def _is_delete_sent(self, one: Member) -> bool:
        return self._vmis.is_delete_sent(_key(one), one.metadata.uid)

    async def _look(self, seen: VirtualMachineInstanceReplicaSet) -> None:
        """Ask; an answer that differs is in the overlay afterwards, and is decided on next."""
        fresh = (await self._api.get(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, _key(seen)))["metadata"]
        if (fresh["uid"], fresh["resourceVersion"]) != (seen.metadata.uid, seen.metadata.resource_version):
            raise Conflict(f"cannot act on VirtualMachineInstanceReplicaSet {_key(seen)}: it has changed meanwhile")
        self._memories.note_told(_key(seen), seen, fresh["resourceVersion"])

    async def _look_for(self, key: Key, name: str) -> None:
        """Ask; what is found is in the overlay afterwards."""
        try:
            found = await self._api.get(VIRTUAL_MACHINE_INSTANCE, Key(key.namespace, name))
        except NotFound:
            self._memories.note_absent(key, name)
        else:
            self._memories.note_found(key, name, found["metadata"]["uid"])

    async def _create(self, world: World, action: CreateVmi) -> None:
        replica_set = world.replica_set
        seed = f"{replica_set.metadata.uid}/{action.name}"
        body = default_instance(build_vmi(replica_set, world.template, action.name), self._configuration(), seed)
        key = Key(replica_set.metadata.namespace, action.name)
        self._memories.note_attempt(_key(replica_set), action.name)
        try:
            made = await self._api.create(VIRTUAL_MACHINE_INSTANCE, key.namespace, body)
        except AlreadyExists as error:
            # Ours from a write whose answer was lost, or somebody else's: look at it, then decide again.
            await self._api.get(VIRTUAL_MACHINE_INSTANCE, key)
            raise Conflict(str(error)) from error
        text = f"Started the virtual machine by creating the new virtual machine instance {action.name}"
        uid = made["metadata"]["uid"]
        self._memories.note_found(_key(replica_set), action.name, uid)
        self._events.record(_regarding(replica_set), "Normal", "SuccessfulCreate", text, occurrence=uid)

    async def _delete(self, world: World, action: DeleteVmi) -> None:
        """Delete exactly the state that was decided on: a version that changed meanwhile (an owner removed) is kept."""
        meta = action.member.metadata
        key, version = _key(action.member), meta.resource_version
        try:
            await self._api.delete(VIRTUAL_MACHINE_INSTANCE, key, uid=meta.uid, resource_version=version)
        except NotFound:
            return
        text = f"Stopped the virtual machine by deleting the virtual machine instance {meta.name}: {action.because}"
        self._events.record(_regarding(world.replica_set), "Normal", "SuccessfulDelete", text, occurrence=meta.uid)

    async def _set_owners(self, world: World, member: Member, *ours: dict[str, Any]) -> None:
        """Put our reference among an instance's owners, or take it from them; whoever else owns it stays."""
        meta = member.metadata
        kept = [encode(one) for one in meta.owner_references if one.uid != world.replica_set.metadata.uid]
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            _key(member),
            {"metadata": {"ownerReferences": [*kept, *ours] or None}},
            resource_version=meta.resource_version,
            uid=meta.uid,
        )


def _is_controlled(member: Member, uid: str) -> bool:
    owner = controller_of(member.metadata)
    kind = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET.kind
    return owner is not None and (owner.kind, owner.uid) == (kind, uid)


def _key(obj: Member | VirtualMachineInstanceReplicaSet) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)


def _regarding(replica_set: VirtualMachineInstanceReplicaSet) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, _key(replica_set), replica_set.metadata.uid)
