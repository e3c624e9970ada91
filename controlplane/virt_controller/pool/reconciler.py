# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pool controller: reads the caches into a World, writes actions and status. It chooses nothing.

Writes for a pool that is scaled up by n: the status twice (begun, and how many there are), n creates and n Events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import assert_never

import msgspec
from kubevirt_api.condition_types import REPLICA_PAUSED

from controlplane.api.admission.defaults import default_vm
from controlplane.api.admission.identity import keep_identity
from controlplane.api.admission.validate.selector import check_selector
from controlplane.api.objects import conditions
from controlplane.api.objects.decode import DecodeError, decode, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.pool import BURST, VirtualMachinePool, VirtualMachinePoolStatus
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_POOL, Key
from controlplane.engine.errors import AlreadyExists, Conflict, NotFound, Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.pool.decide import decide
from controlplane.virt_controller.pool.machine import build_vm, change, name_of
from controlplane.virt_controller.pool.member import Member, Run, read_member, read_run
from controlplane.virt_controller.pool.revision import revision, stored_template
from controlplane.virt_controller.pool.status import begun, derive_status, refusal
from controlplane.virt_controller.pool.world import (
    Action,
    BeginBatch,
    CreateVm,
    DeleteVm,
    LookAtPool,
    LookForVm,
    ReleaseVm,
    RestartVm,
    UpdateVm,
    World,
)
from controlplane.virt_controller.replicaset.member import Members
from controlplane.virt_controller.replicaset.memory import Memories
from controlplane.virt_controller.reporting.events import Events, Regarding

log = logging.getLogger(__name__)


class PoolReconciler:
    def __init__(
        self,
        *,
        pools: ReadYourWritesCache,
        vms: ReadYourWritesCache,
        vmis: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
    ) -> None:
        self._pools = pools
        self._vms = vms
        self._vmis = vmis
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._memories = Memories()
        self._members = Members(vms, read_member)
        self._runs = Members(vmis, read_run)

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable while they are not complete: then absence means nothing."""
        if not (self._pools.synced and self._vms.synced and self._vmis.synced):
            raise Unavailable(f"cannot judge VirtualMachinePool {key}: not everything is known yet")
        raw = self._pools.get(key)
        if raw is None:
            self._memories.forget(key)
            return None
        try:
            return self._world(key, raw)
        except (DecodeError, msgspec.DecodeError) as error:
            log.warning(
                "pool left alone: something does not fit its schema", extra={"key": str(key), "error": str(error)}
            )
            return None

    def _world(self, key: Key, raw: bytes) -> World:
        pool = decode(raw, VirtualMachinePool)
        uid, spec = pool.metadata.uid, pool.spec
        owned = self._members.read(self._vms.indexed("owner", uid))
        members = tuple(one for one in owned if _is_controlled(one, VIRTUAL_MACHINE_POOL.kind, uid))
        runs = {one.metadata.uid: run for one in members for run in self._runs_of(one)}
        template = stored_template(raw)
        labels = spec.virtual_machine_template.metadata.labels
        at = "spec.virtualMachineTemplate.metadata.labels"
        unmade = [one for one in pool.status.begun if self._vms.get(_numbered(pool, one)) is None]
        absent = self._memories.absent(key, pool)
        return World(
            pool=pool,
            template=template,
            revision=revision(pool.metadata.name, template),
            members=members,
            runs=runs,
            free=tuple(islice(self._free(pool), min(BURST, max(0, spec.replicas - len(members))))),
            unmade=tuple(unmade),
            absent=frozenset(one for one in unmade if _name(pool, one) in absent),
            unsure=tuple(self._unsure(pool, members)),
            now=self._clock.now(),
            deletes_sent=frozenset((*_sent(self._vms, members), *_sent(self._vmis, runs.values()))),
            problems=tuple(str(one) for one in check_selector(spec.selector, labels, "spec.selector", at)),
            is_current=self._memories.is_current(key, pool),
            is_past_known=self._memories.is_past_known(key, pool, self._vms.resource_version),
        )

    def _runs_of(self, one: Member) -> Iterator[Run]:
        for run in self._runs.read([_key(one)]):
            if _is_controlled(run, VIRTUAL_MACHINE.kind, one.metadata.uid):
                yield run

    def _free(self, pool: VirtualMachinePool) -> Iterator[int]:
        return (number for number in count() if self._vms.get(_numbered(pool, number)) is None)

    def _unsure(self, pool: VirtualMachinePool, members: Iterable[Member]) -> Iterator[int]:
        """Yield numbers of the batch whose machine, as it is shown, is neither known from the API server nor counts."""
        key = _key(pool)
        counting = {one.metadata.name for one in members if not one.is_deleting} - self._memories.doubted(key, pool)
        for number in pool.status.begun:
            uid = self._vms.uid(_numbered(pool, number))
            name = _name(pool, number)
            if uid is not None and name not in counting and not self._memories.is_found(key, pool, name, uid):
                yield number

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> VirtualMachinePoolStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        match action:
            case BeginBatch():
                await self.write_status(world, begun(world, action))
            case LookAtPool():
                await self._look(world.pool)
            case LookForVm():
                await self._look_for(world.pool, action.number)
            case CreateVm():
                await self._create(world, action)
            case DeleteVm():
                await self._delete(world.pool, action)
            case UpdateVm():
                await self._update(world, action)
            case RestartVm():
                await self._restart(world.pool, action)
            case ReleaseVm():
                await self._release(world.pool, action.member)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: VirtualMachinePoolStatus) -> None:
        old = world.pool
        self._memories.note_writing(_key(old))
        stored = await self._api.patch(
            VIRTUAL_MACHINE_POOL,
            _key(old),
            {"status": merge_patch(encode(old.status), encode(status))},
            subresource="status",
            resource_version=old.metadata.resource_version,
            uid=old.metadata.uid,
        )
        self._memories.note_written(_key(old), decode(stored, VirtualMachinePool))
        before, after = (conditions.is_true(one.conditions, REPLICA_PAUSED) for one in (old.status, status))
        if before != after:
            reason, text = ("SuccessfulPaused", "Pool is paused") if after else ("SuccessfulResume", "Pool is unpaused")
            self._tell(old, reason, text, occurrence=old.metadata.resource_version)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        reason, message = refusal(problem)
        self._events.record(_regarding(world.pool), "Warning", reason, message)

    def _tell(self, pool: VirtualMachinePool, reason: str, text: str, *, occurrence: str) -> None:
        self._events.record(_regarding(pool), "Normal", reason, text, occurrence=occurrence)

    async def _look(self, seen: VirtualMachinePool) -> None:
        """Ask; an answer that differs is in the overlay afterwards, and is decided on next."""
        fresh = (await self._api.get(VIRTUAL_MACHINE_POOL, _key(seen)))["metadata"]
        if (fresh["uid"], fresh["resourceVersion"]) != (seen.metadata.uid, seen.metadata.resource_version):
            raise Conflict(f"cannot act on VirtualMachinePool {_key(seen)}: it has changed meanwhile")
        self._memories.note_told(_key(seen), seen, fresh["resourceVersion"])

    async def _look_for(self, pool: VirtualMachinePool, number: int) -> None:
        """Ask; what is found is in the overlay afterwards."""
        try:
            found = await self._api.get(VIRTUAL_MACHINE, _numbered(pool, number))
        except NotFound:
            self._memories.note_absent(_key(pool), _name(pool, number))
        else:
            self._memories.note_found(_key(pool), _name(pool, number), found["metadata"]["uid"])

    async def _create(self, world: World, action: CreateVm) -> None:
        pool = world.pool
        key = _numbered(pool, action.number)
        seed = f"{pool.metadata.uid}/{pool.status.batches}/{key.name}"
        body = default_vm(build_vm(pool, world.template, action.number), self._configuration(), seed)
        self._memories.note_attempt(_key(pool), key.name)
        try:
            made = await self._api.create(VIRTUAL_MACHINE, key.namespace, body)
        except AlreadyExists as error:
            # Ours from a write whose answer was lost, or somebody else's: look at it, then decide again.
            await self._api.get(VIRTUAL_MACHINE, key)
            raise Conflict(str(error)) from error
        uid = made["metadata"]["uid"]
        self._memories.note_found(_key(pool), key.name, uid)
        self._tell(pool, "SuccessfulCreate", f"Created VM {key}", occurrence=uid)

    async def _delete(self, pool: VirtualMachinePool, action: DeleteVm) -> None:
        """Delete exactly the state that was decided on: a version that changed meanwhile (an owner removed) is kept."""
        meta, key = action.member.metadata, _key(action.member)
        try:
            await self._api.delete(VIRTUAL_MACHINE, key, uid=meta.uid, resource_version=meta.resource_version)
        except NotFound:
            return
        text = f"Deleted VM {key} with uid {meta.uid} from pool: {action.because}"
        self._tell(pool, "SuccessfulDelete", text, occurrence=meta.uid)

    async def _update(self, world: World, action: UpdateVm) -> None:
        """Change exactly the state that was decided on."""
        pool, meta, key = world.pool, action.member.metadata, _key(action.member)
        raw = self._vms.get(key)
        if raw is None:
            return
        old = msgspec.json.decode(raw)
        wanted = keep_identity(build_vm(pool, world.template, action.number), old)
        patch = change(old, default_vm(wanted, self._configuration(), None))
        stored = await self._api.patch(
            VIRTUAL_MACHINE, key, patch, resource_version=meta.resource_version, uid=meta.uid
        )
        version = stored["metadata"]["resourceVersion"]
        self._tell(pool, "SuccessfulUpdate", f"Updated VM {key}: {action.because}", occurrence=version)

    async def _restart(self, pool: VirtualMachinePool, action: RestartVm) -> None:
        """Delete exactly the run that was decided on: one that has changed meanwhile is looked at again."""
        meta, key = action.run.metadata, _key(action.run)
        try:
            version = meta.resource_version
            await self._api.delete(VIRTUAL_MACHINE_INSTANCE, key, uid=meta.uid, resource_version=version)
        except NotFound:
            return
        text = f"Updated VM {key} by deleting its instance, which is made anew: {action.because}"
        self._tell(pool, "SuccessfulUpdate", text, occurrence=meta.uid)

    async def _release(self, pool: VirtualMachinePool, member: Member) -> None:
        """Take our reference off a machine's owners; whoever else owns it stays."""
        meta = member.metadata
        kept = [encode(one) for one in meta.owner_references if one.uid != pool.metadata.uid]
        patch = {"metadata": {"ownerReferences": kept or None}}
        await self._api.patch(
            VIRTUAL_MACHINE, _key(member), patch, resource_version=meta.resource_version, uid=meta.uid
        )


def _sent(overlay: ReadYourWritesCache, known: Iterable[Member | Run]) -> Iterator[str]:
    return (one.metadata.uid for one in known if overlay.is_delete_sent(_key(one), one.metadata.uid))


def _is_controlled(one: Member | Run, kind: str, uid: str) -> bool:
    owner = controller_of(one.metadata)
    return owner is not None and (owner.kind, owner.uid) == (kind, uid)


def _name(pool: VirtualMachinePool, number: int) -> str:
    return name_of(pool.metadata.name, number)


def _numbered(pool: VirtualMachinePool, number: int) -> Key:
    return Key(pool.metadata.namespace, _name(pool, number))


def _key(obj: Member | Run | VirtualMachinePool) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)


def _regarding(pool: VirtualMachinePool) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_POOL, _key(pool), pool.metadata.uid)
