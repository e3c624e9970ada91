# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The migration controller: reads the caches into a World, writes actions and status. It chooses nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, assert_never

import msgspec
from kubevirt_api.names import MIGRATION_FINALIZER, MIGRATION_TARGET_NODE

from controlplane.api.objects.decode import DecodeError, decode, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.meta import Node as Struct
from controlplane.api.objects.migration import FAILED, SUCCEEDED, VirtualMachineInstanceMigration
from controlplane.api.objects.migration import VirtualMachineInstanceMigrationStatus as Status
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
    Resource,
)
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable
from controlplane.engine.overlay import Overlay
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, Problem
from controlplane.engine.ports import Api, Clock
from controlplane.kube.cache import Peek
from controlplane.virt_controller.claims import ReadClaims, no_claims
from controlplane.virt_controller.migration.decide import decide
from controlplane.virt_controller.migration.status import derive_status, why_failed
from controlplane.virt_controller.migration.turn import Entry, is_over, is_turn
from controlplane.virt_controller.migration.world import (
    Action,
    AddFinalizer,
    CreateTarget,
    DeleteMigration,
    DeletePod,
    EndState,
    HandOver,
    RemoveFinalizer,
    RequestAbort,
    Unlabel,
    World,
    target_name,
)
from controlplane.virt_controller.stamps import render_stamp
from controlplane.virt_controller.tell import Events, Regarding
from controlplane.virt_controller.vmi.launcher_pod import Target, build_launcher_pod
from controlplane.virt_controller.vmi.world import is_controlled

log = logging.getLogger(__name__)

BY_VMI = "vmi"
"""Index of migrations by namespace/name of the instance that they move."""


class _Spec(Struct, frozen=True, kw_only=True):
    vmi_name: str = ""


class _Named(Struct, frozen=True, kw_only=True):
    spec: _Spec = _Spec()


_named_decoder = msgspec.json.Decoder(_Named)


def by_vmi(seen: Peek) -> Iterable[str]:
    """File a migration under the instance that it moves."""
    return (f"{seen.metadata.namespace}/{_named_decoder.decode(seen.raw).spec.vmi_name}",)


class MigrationReconciler:
    def __init__(
        self,
        *,
        migrations: Overlay,
        vmis: Overlay,
        pods: Overlay,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        launcher_image: str,
        image_pull_secrets: tuple[str, ...] = (),
        claims: ReadClaims = no_claims,
        kept_from: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """migrations has the index BY_VMI. kept_from: says to which nodes no machines are sent now."""
        self._migrations = migrations
        self._vmis = vmis
        self._pods = pods
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._launcher_image = launcher_image
        self._image_pull_secrets = image_pull_secrets
        self._read_claims = claims
        self._kept_from = kept_from
        self._made: dict[Key, str] = {}
        """UID of the migration whose Pod is known to have been made, by its key: it may not be seen yet."""

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable while one of them is not complete: then absence means nothing."""
        if not (self._migrations.synced and self._vmis.synced and self._pods.synced):
            raise Unavailable(f"cannot judge VirtualMachineInstanceMigration {key}: not everything is known yet")
        migration = self._read(key)
        if migration is None:
            self._made.pop(key, None)
            return None
        uid, configuration = migration.metadata.uid, self._configuration()
        vmi = self._read_vmi(Key(key.namespace, migration.spec.vmi_name))
        moving = None if vmi is None else vmi.status.migration_state
        is_mine = moving is not None and moving.migration_uid == uid
        target = None if vmi is None else self._pod(Key(key.namespace, _target_name(migration, vmi)))
        source = self._pod(Key(key.namespace, moving.source_pod)) if moving is not None and is_mine else None
        if source is not None and (moving is None or source.uid != moving.source_pod_uid):
            source = None
        pods = [one for one in (target, source) if one is not None]
        return World(
            migration=migration,
            vmi=vmi,
            target=target,
            source=source,
            is_turn=is_turn(uid, self._entries(), configuration.migrations),
            others=tuple(one for one in self._of(key.namespace, migration.spec.vmi_name) if one.metadata.uid != uid),
            now=self._clock.now(),
            configuration=configuration,
            has_made=self._made.get(key) == uid,
            deletes_sent=frozenset(one.uid for one in pods if self._pods.is_delete_sent(_pod_key(one), one.uid)),
        )

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
            case DeletePod():
                await self._delete(POD, Key(meta.namespace, action.name), action.uid)
            case DeleteMigration():
                await self._delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key(meta.namespace, action.name), action.uid)
            case _:
                await self._write_instance(world, action)

    async def _write_instance(self, world: World, action: HandOver | RequestAbort | EndState | Unlabel) -> None:
        """Write what the instance tells of migrations, for the version of it that was decided on."""
        vmi = world.vmi
        if vmi is None:
            return
        match action:
            case HandOver():
                await self._hand_over(world, vmi, action.pod)
            case RequestAbort():
                await self._patch_vmi(vmi, {"status": {"migrationState": {"abortRequested": True}}}, is_status=True)
            case EndState():
                ended = {
                    "failed": True,
                    "completed": True,
                    "failureReason": action.why,
                    "endTimestamp": render_stamp(self._clock.now()),
                }
                await self._patch_vmi(vmi, {"status": {"migrationState": ended}}, is_status=True)
            case Unlabel():
                await self._patch_vmi(vmi, {"metadata": {"labels": {MIGRATION_TARGET_NODE: None}}})
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: Status) -> None:
        old = world.migration
        await self._patch(world, {"status": merge_patch(encode(old.status), encode(status))}, is_status=True)
        if status.phase == old.status.phase:
            return
        if status.phase == SUCCEEDED:
            self._tell(world, "Normal", "SuccessfulMigration", "Source node reported migration succeeded")
        elif status.phase == FAILED:
            self._tell(world, "Warning", "FailedMigration", f"Migration failed: {why_failed(world)}")

    def tell_refusal(self, world: World, problem: Problem[Action]) -> None:
        reason = "FailedCreate" if isinstance(problem.step, CreateTarget) else "FailedUpdate"
        self._events.record(_regarding(world), "Warning", reason, str(problem.error))

    def waiting(self) -> list[Key]:
        """Return the migrations that wait for their turn."""
        return [_key(one.migration) for one in self._entries() if one.is_waiting]

    async def _create(self, world: World) -> None:
        vmi, migration = world.vmi, world.migration
        if vmi is None:
            return
        key = _key(migration)
        try:
            body = build_launcher_pod(
                vmi,
                attempt=max(vmi.status.attempt, 1),
                image=self._launcher_image,
                image_pull_secrets=self._image_pull_secrets,
                configuration=world.configuration,
                claims=self._read_claims(vmi.metadata.namespace, vmi.spec.volumes),
                kept_from=self._kept_from(),
                target=Target(
                    pod_name=_target_name(migration, vmi),
                    migration=migration.metadata.name,
                    migration_uid=world.uid,
                    node_selector=migration.spec.added_node_selector,
                ),
            )
        except ValueError as error:
            raise Invalid(f"cannot build the target Pod of {key}: {error}") from error
        try:
            await self._api.create(POD, key.namespace, body)
        except AlreadyExists as error:
            found = decode(await self._api.get(POD, Key(key.namespace, body["metadata"]["name"])), Pod)
            if not is_controlled(found, vmi):
                name = body["metadata"]["name"]
                raise Invalid(
                    f"cannot create Pod {name}: one of this name exists and is not ours; delete it"
                ) from error
            self._made[key] = world.uid
            raise Conflict(str(error)) from error
        self._made[key] = world.uid
        self._tell(world, "Normal", "SuccessfulCreate", f"Created migration target pod {body['metadata']['name']}")

    async def _hand_over(self, world: World, vmi: VirtualMachineInstance, pod: Pod) -> None:
        """Replace what the instance tells of migrations: nothing of a former one stays."""
        ((source_uid, source_node),) = vmi.status.active_pods.items()
        source = next((one for one in self._launchers(vmi) if one.uid == source_uid), None)
        moving = MigrationState(
            migration_uid=world.uid,
            source_node=source_node,
            target_node=pod.spec.node_name,
            source_pod="" if source is None else source.metadata.name,
            target_pod=pod.metadata.name,
            source_pod_uid=source_uid,
            target_pod_uid=pod.uid,
            migration_configuration=world.configuration.migrations,
        )
        old = vmi.status.migration_state
        before = {} if old is None else encode(old)
        patch = merge_patch({"migrationState": before}, {"migrationState": encode(moving)})
        await self._patch_vmi(vmi, {"status": patch}, is_status=True)
        node = pod.spec.node_name
        self._tell(world, "Normal", "SuccessfulHandOver", f"Migration target pod is ready for preparation on {node}")

    def _launchers(self, vmi: VirtualMachineInstance) -> list[Pod]:
        keys = self._pods.indexed("owner", vmi.metadata.uid)
        return [decode(raw, Pod) for raw in map(self._pods.get, keys) if raw is not None]

    async def _delete(self, resource: Resource, key: Key, uid: str) -> None:
        try:
            await self._api.delete(resource, key, uid=uid)
        except NotFound:
            log.debug("gone already", extra={"key": str(key), "kind": resource.kind})

    async def _patch(self, world: World, patch: dict[str, Any], *, is_status: bool = False) -> None:
        meta = world.migration.metadata
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE_MIGRATION,
            _key(world.migration),
            patch,
            subresource="status" if is_status else "",
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    async def _patch_vmi(self, vmi: VirtualMachineInstance, patch: dict[str, Any], *, is_status: bool = False) -> None:
        meta = vmi.metadata
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            Key(meta.namespace, meta.name),
            patch,
            subresource="status" if is_status else "",
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    def _tell(self, world: World, kind: Any, reason: str, message: str) -> None:
        self._events.record(_regarding(world), kind, reason, message, occurrence=world.uid)

    def _entries(self) -> list[Entry]:
        """List the migrations that are not over, each with the node that its instance is on."""
        found = []
        for key in self._migrations.keys():  # noqa: SIM118 - a cache is no dict
            migration = self._read(key)
            if migration is None or is_over(migration):
                continue
            vmi = self._read_vmi(Key(key.namespace, migration.spec.vmi_name))
            found.append(Entry(migration, "" if vmi is None else vmi.status.node_name))
        return found

    def _of(self, namespace: str, vmi_name: str) -> list[VirtualMachineInstanceMigration]:
        keys = self._migrations.indexed(BY_VMI, f"{namespace}/{vmi_name}")
        return [one for one in map(self._read, keys) if one is not None]

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


def _target_name(migration: VirtualMachineInstanceMigration, vmi: VirtualMachineInstance) -> str:
    return target_name(vmi.metadata.name, vmi.metadata.uid, migration.metadata.uid)


def _key(migration: VirtualMachineInstanceMigration) -> Key:
    return Key(migration.metadata.namespace, migration.metadata.name)


def _pod_key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def _regarding(world: World) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE_MIGRATION, _key(world.migration), world.uid)
