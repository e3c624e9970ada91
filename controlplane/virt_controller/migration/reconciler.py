# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The migration controller: reads the caches into a World, writes actions and status. It chooses nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, assert_never

from kubevirt_api.names import MIGRATION_FINALIZER, MIGRATION_TARGET_NODE

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.migration import PENDING, VirtualMachineInstanceMigration
from controlplane.api.objects.migration import VirtualMachineInstanceMigrationStatus as Status
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
    Resource,
)
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.volumes.registry import NO_CLAIMS
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable
from controlplane.engine.overlay import Overlay
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, Problem
from controlplane.engine.ports import Api, Clock
from controlplane.virt_controller.claims import ReadClaims, no_claims
from controlplane.virt_controller.migration.decide import decide
from controlplane.virt_controller.migration.filed import BY_VMI
from controlplane.virt_controller.migration.hand_over import begin, replace_state
from controlplane.virt_controller.migration.memory import Memories, name_version
from controlplane.virt_controller.migration.policy import Policies
from controlplane.virt_controller.migration.status import derive_status
from controlplane.virt_controller.migration.target_pod import NO_LABELS, build_target_pod
from controlplane.virt_controller.migration.telling import explain_end, explain_refusal
from controlplane.virt_controller.migration.turn import is_turn, keeps_waiting, next_ones
from controlplane.virt_controller.migration.unfinished import Unfinished
from controlplane.virt_controller.migration.world import (
    Action,
    AddFinalizer,
    CreateTarget,
    DeleteMigration,
    DeleteSource,
    DeleteTarget,
    EndState,
    HandOver,
    LabelTarget,
    LookForPod,
    LookForVmi,
    RemoveFinalizer,
    RequestAbort,
    Unlabel,
    World,
)
from controlplane.virt_controller.stamps import render_stamp
from controlplane.virt_controller.tell import Events, Regarding
from controlplane.virt_controller.vmi.world import is_controlled

log = logging.getLogger(__name__)


class MigrationReconciler:
    def __init__(
        self,
        *,
        migrations: Overlay,
        vmis: Overlay,
        pods: Overlay,
        policies: Overlay,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        launcher_image: str,
        image_pull_secrets: tuple[str, ...] = (),
        claims: ReadClaims = no_claims,
        kept_from: Callable[[], frozenset[str]] = frozenset,
        node_labels: Callable[[str], Mapping[str, str]] = lambda _name: NO_LABELS,
    ) -> None:
        """migrations has the index BY_VMI. kept_from: says to which nodes no machines are sent now. node_labels: says
        which labels a node has.
        """
        self._migrations = migrations
        self._vmis = vmis
        self._pods = pods
        self._policies = Policies(policies, api)
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._launcher_image = launcher_image
        self._image_pull_secrets = image_pull_secrets
        self._read_claims = claims
        self._kept_from = kept_from
        self._node_labels = node_labels
        self._wake: Callable[[Key], None] = lambda _key: None
        self._memories = Memories()
        self._unfinished = Unfinished(migrations, vmis, lambda key: pods.get(key) is not None)

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable while one of them is not complete: then absence means nothing."""
        if not all(one.synced for one in (self._migrations, self._vmis, self._pods, self._policies)):
            raise Unavailable(f"cannot judge VirtualMachineInstanceMigration {key}: not everything is known yet")
        migration = self._read(key)
        if migration is None:
            self._memories.forget(key)
            return None
        uid, configuration, memory = migration.metadata.uid, self._configuration(), self._memories.of(migration)
        vmi = self._read_vmi(Key(key.namespace, migration.spec.vmi_name))
        world = World(
            migration=migration,
            vmi=vmi,
            launchers=() if vmi is None else self._launchers(vmi),
            is_turn=migration.status.phase == PENDING
            and is_turn(uid, self._unfinished.entries(), configuration.migrations),
            others=tuple(
                one
                for one in self._of(key.namespace, migration.spec.vmi_name)
                if one.metadata.uid != uid and not self._migrations.is_delete_sent(_key(one), one.metadata.uid)
            ),
            now=self._clock.now(),
            configuration=configuration,
            has_made=self._memories.has_made(migration),
            is_vmi_told=self._memories.is_told(migration, vmi),
            absent=frozenset(memory.absent),
        )
        return self._with_pods(world)

    def _with_pods(self, world: World) -> World:
        """Add the two Pods: the target's by its name, the source's by the name and UID that the hand-over gave."""
        left = world.left
        namespace = world.migration.metadata.namespace
        target = self._pod(Key(namespace, world.target_pod)) if world.target_pod else None
        if target is not None and (world.vmi is None or not is_controlled(target, world.vmi)):
            target = None
        source = None if left is None else self._pod(Key(namespace, left.source_pod))
        if source is not None and (left is None or source.uid != left.source_pod_uid):
            source = None
        pods = [one for one in (target, source) if one is not None]
        sent = {one.uid for one in pods if self._pods.is_delete_sent(_pod_key(one), one.uid)}
        if self._migrations.is_delete_sent(_key(world.migration), world.uid):
            sent.add(world.uid)
        found = replace(world, target=target, source=source, deletes_sent=frozenset(sent))
        if not found.is_unschedulable:
            return found
        settings = found.configuration.migrations
        return replace(found, keeps_waiting=keeps_waiting(found.uid, self._unfinished.entries(), settings))

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: Problem[Action] | None) -> Status | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        meta = world.migration.metadata
        match action:
            case AddFinalizer():
                await self._patch(world, {"metadata": {"finalizers": [*meta.finalizers, MIGRATION_FINALIZER]}})
            case RemoveFinalizer():
                kept = [one for one in meta.finalizers if one != MIGRATION_FINALIZER]
                await self._patch(world, {"metadata": {"finalizers": kept or None}})
            case CreateTarget():
                await self._create(world)
            case DeleteTarget():
                await self._delete_target(world, action)
            case DeleteSource():
                await self._delete_pod(world, action)
            case DeleteMigration():
                await self._delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key(meta.namespace, action.name), action.uid)
            case LookForVmi():
                self._memories.of(world.migration).vmi = name_version(await self._ask_for_vmi(world))
            case LookForPod():
                await self._look_for_pod(world, action.name)
            case _:
                await self._write_instance(world, action)

    async def _write_instance(
        self, world: World, action: HandOver | RequestAbort | EndState | LabelTarget | Unlabel
    ) -> None:
        """Write what the instance tells of migrations, for the version of it that was decided on."""
        match action:
            case HandOver():
                await self._hand_over(world, action.pod)
            case RequestAbort():
                await self._patch_vmi(world, {"status": {"migrationState": {"abortRequested": True}}}, is_status=True)
            case EndState():
                ended = {
                    "failed": True,
                    "completed": True,
                    "failureReason": action.why,
                    "endTimestamp": render_stamp(self._clock.now()),
                }
                await self._patch_vmi(world, {"status": {"migrationState": ended}}, is_status=True)
            case LabelTarget():
                await self._patch_vmi(world, {"metadata": {"labels": {MIGRATION_TARGET_NODE: action.node}}})
            case Unlabel():
                await self._patch_vmi(world, {"metadata": {"labels": {MIGRATION_TARGET_NODE: None}}})
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: Status) -> None:
        old = world.migration
        await self._patch(world, {"status": merge_patch(encode(old.status), encode(status))}, is_status=True)
        for told in explain_end(world, status):
            self._events.record(_regarding(world), told.kind, told.reason, told.message, occurrence=world.uid)

    def tell_refusal(self, world: World, problem: Problem[Action]) -> None:
        if isinstance(problem.step, CreateTarget):
            self._unfinished.note_refused(_key(world.migration))
            for key in self.next_in_turn():
                self._wake(key)
        self._events.record(_regarding(world), "Warning", explain_refusal(problem), str(problem.error))

    def wake_by(self, wake: Callable[[Key], None]) -> None:
        """Have those woken whose turn it is because another one's Pod was refused."""
        self._wake = wake

    def next_in_turn(self) -> list[Key]:
        """Return the migrations that wait and may begin now."""
        found = next_ones(self._unfinished.entries(), self._configuration().migrations)
        return [_key(one.migration) for one in found]

    async def _create(self, world: World) -> None:
        migration, vmi = world.migration, world.vmi
        key = _key(migration)
        await self._confirm(world)
        try:
            body = build_target_pod(
                world,
                image=self._launcher_image,
                image_pull_secrets=self._image_pull_secrets,
                claims=NO_CLAIMS if vmi is None else self._read_claims(key.namespace, vmi.spec.volumes),
                kept_from=self._kept_from(),
                source_labels=NO_LABELS if vmi is None else self._node_labels(vmi.status.node_name),
            )
        except ValueError as error:
            raise Invalid(f"cannot build the target Pod of {key}: {error}") from error
        name = body["metadata"]["name"]
        try:
            await self._api.create(POD, key.namespace, body)
        except AlreadyExists as error:
            # Ours from a write whose answer was lost, or somebody else's: look at it.
            found = decode(await self._api.get(POD, Key(key.namespace, name)), Pod)
            if vmi is None or not is_controlled(found, vmi):
                raise Invalid(f"cannot create Pod {name}: one of this name exists, not ours; delete it") from error
            self._note_made(world)
            raise Conflict(str(error)) from error
        self._note_made(world)
        self._tell(world, "SuccessfulCreate", f"Created the migration's target pod {name}")

    def _note_made(self, world: World) -> None:
        self._memories.note_made(world.migration)
        self._unfinished.note_made(_key(world.migration))

    async def _hand_over(self, world: World, pod: Pod) -> None:
        """Replace what the instance tells of migrations. The label for other people's clients comes after it."""
        key = Key(world.migration.metadata.namespace, world.migration.spec.vmi_name)
        policy = None if world.vmi is None else await self._policies.of(world.vmi)
        new, raw = begin(world, pod, policy), self._vmis.get(key)
        if new is None or raw is None:
            raise Conflict(f"cannot hand over {key}: the Pod that has the guest is not known yet")
        await self._confirm(world)
        await self._patch_vmi(world, {"status": replace_state(raw, new)}, is_status=True)
        self._tell(world, "SuccessfulHandOver", f"The guest is to move to pod {pod.metadata.name} on {new.target_node}")

    async def _confirm(self, world: World) -> None:
        """Ask whether the migration is still as it was decided on: another leader may have ended it."""
        seen = world.migration.metadata
        found = (await self._api.get(VIRTUAL_MACHINE_INSTANCE_MIGRATION, _key(world.migration)))["metadata"]
        if (found["uid"], found["resourceVersion"]) != (seen.uid, seen.resource_version):
            raise Conflict(f"cannot go on with VirtualMachineInstanceMigration {_key(world.migration)}: it has changed")

    async def _delete_target(self, world: World, action: DeleteTarget) -> None:
        """Delete it, unless the API server says that the guest may be there: a cache may be of before the hand-over."""
        vmi = await self._ask_for_vmi(world)
        moving = None if vmi is None else vmi.status.migration_state
        is_mine = moving is not None and moving.migration_uid == world.uid
        if vmi is not None and (action.uid in vmi.status.active_pods or (is_mine and not (moving and moving.failed))):
            raise Conflict(f"cannot delete Pod {action.name}: the guest may be there")
        await self._delete_pod(world, action)

    async def _ask_for_vmi(self, world: World) -> VirtualMachineInstance | None:
        """Ask; what is found is in the overlay afterwards."""
        key = Key(world.migration.metadata.namespace, world.migration.spec.vmi_name)
        try:
            return decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, key))
        except NotFound:
            return None

    async def _look_for_pod(self, world: World, name: str) -> None:
        try:
            await self._api.get(POD, Key(world.migration.metadata.namespace, name))
        except NotFound:
            self._memories.of(world.migration).absent.add(name)

    async def _delete_pod(self, world: World, action: DeleteTarget | DeleteSource) -> None:
        await self._delete(POD, Key(world.migration.metadata.namespace, action.name), action.uid)
        self._tell(world, "SuccessfulDelete", f"Deleted pod {action.name}: {action.because}", occurrence=action.uid)

    async def _delete(self, resource: Resource, key: Key, uid: str) -> None:
        try:
            await self._api.delete(resource, key, uid=uid)
        except NotFound:
            log.debug("gone already", extra={"key": str(key), "kind": resource.kind})

    async def _patch(self, world: World, patch: dict[str, Any], *, is_status: bool = False) -> None:
        await self._write(VIRTUAL_MACHINE_INSTANCE_MIGRATION, world.migration.metadata, patch, is_status=is_status)

    async def _patch_vmi(self, world: World, patch: dict[str, Any], *, is_status: bool = False) -> None:
        if world.vmi is not None:
            await self._write(VIRTUAL_MACHINE_INSTANCE, world.vmi.metadata, patch, is_status=is_status)

    async def _write(self, resource: Resource, meta: ObjectMeta, patch: dict[str, Any], *, is_status: bool) -> None:
        await self._api.patch(
            resource,
            Key(meta.namespace, meta.name),
            patch,
            subresource="status" if is_status else "",
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    def _tell(self, world: World, reason: str, message: str, *, occurrence: str = "") -> None:
        self._events.record(_regarding(world), "Normal", reason, message, occurrence=occurrence or world.uid)

    def _launchers(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        keys = self._pods.indexed("owner", vmi.metadata.uid)
        return tuple(decode(raw, Pod) for raw in map(self._pods.get, sorted(keys)) if raw is not None)

    def _of(self, namespace: str, vmi_name: str) -> list[VirtualMachineInstanceMigration]:
        keys = self._migrations.indexed(BY_VMI, f"{namespace}/{vmi_name}")
        return [one for one in map(self._read, sorted(keys)) if one is not None]

    def _pod(self, key: Key) -> Pod | None:
        raw = self._pods.get(key)
        return None if raw is None else decode(raw, Pod)

    def _read(self, key: Key) -> VirtualMachineInstanceMigration | None:
        raw = self._migrations.get(key)
        try:
            return None if raw is None else decode(raw, VirtualMachineInstanceMigration)
        except DecodeError as error:
            log.warning("object left alone: it does not fit its schema", extra={"key": str(key), "error": str(error)})
            return None

    def _read_vmi(self, key: Key) -> VirtualMachineInstance | None:
        raw = self._vmis.get(key)
        try:
            return None if raw is None else decode_vmi(raw)
        except DecodeError as error:
            raise Unavailable(f"cannot judge the migrations of {key}: {error}") from error


def _key(migration: VirtualMachineInstanceMigration) -> Key:
    return Key(migration.metadata.namespace, migration.metadata.name)


def _pod_key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def _regarding(world: World) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE_MIGRATION, _key(world.migration), world.uid)
