# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the actions of a migration, one at a time, with the observed resourceVersion as precondition.

Before an action that cannot be undone, the API server has to confirm the state that the cache has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, assert_never

from kubevirt_api.names import MIGRATION_FINALIZER, MIGRATION_TARGET_NODE

from controlplane.api.objects.decode import decode, decode_vmi
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
    Resource,
)
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.migration.controller_state import ControllerState, version_of
from controlplane.virt_controller.migration.events import host_cpu_event, unschedulable_event
from controlplane.virt_controller.migration.hand_over import failed_state_patch, hand_over_state, replace_state_patch
from controlplane.virt_controller.migration.policy import Policies
from controlplane.virt_controller.migration.unfinished_migrations import UnfinishedMigrations
from controlplane.virt_controller.migration.world import (
    Action,
    AddFinalizer,
    ConfirmPodAbsent,
    ConfirmVmi,
    CreateTarget,
    DeleteMigration,
    DeleteSource,
    DeleteTarget,
    FailMigration,
    HandOver,
    LabelTarget,
    RemoveFinalizer,
    RemoveTargetLabel,
    ReportUnschedulable,
    RequestAbort,
    World,
    is_made_for,
)
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vmi.world import is_controlled

log = logging.getLogger(__name__)


class MigrationWriter:
    def __init__(
        self,
        *,
        vmis: ReadYourWritesCache,
        policies: Policies,
        api: Api,
        clock: Clock,
        events: Events,
        state: ControllerState,
        unfinished: UnfinishedMigrations,
        build: Callable[[World], dict[str, Any]],
        other_nodes: Callable[[str], Iterable[Mapping[str, str]]],
    ) -> None:
        """build: builds the target Pod; raises ValueError. other_nodes: returns the labels of each other
        node. state, unfinished: record what was written."""
        self._vmis = vmis
        self._policies = policies
        self._api = api
        self._clock = clock
        self._events = events
        self._state = state
        self._unfinished = unfinished
        self._build = build
        self._other_nodes = other_nodes

    async def apply(self, world: World, action: Action) -> None:
        """Carry out one action. Raises ApiError."""
        meta = world.migration.metadata
        match action:
            case AddFinalizer():
                await self.patch(world, {"metadata": {"finalizers": [*meta.finalizers, MIGRATION_FINALIZER]}})
            case RemoveFinalizer():
                finalizers = [finalizer for finalizer in meta.finalizers if finalizer != MIGRATION_FINALIZER]
                await self.patch(world, {"metadata": {"finalizers": finalizers or None}})
            case CreateTarget():
                await self._create(world)
            case ReportUnschedulable():
                self._report_unschedulable(world)
            case DeleteTarget():
                await self._delete_target(world, action)
            case DeleteSource():
                await self._delete_pod(world, action)
            case DeleteMigration():
                await self._delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key(meta.namespace, action.name), action.uid)
            case ConfirmVmi():
                self._state.of(world.migration).vmi = version_of(await self._read_vmi_from_api(world))
            case ConfirmPodAbsent():
                await self._confirm_pod_absent(world, action.name)
            case _:
                await self._write_instance(world, action)

    async def _write_instance(
        self, world: World, action: HandOver | RequestAbort | FailMigration | LabelTarget | RemoveTargetLabel
    ) -> None:
        """Write migrationState or the target label of the VMI, with its observed resourceVersion."""
        match action:
            case HandOver():
                await self._hand_over(world, action.pod)
            case RequestAbort():
                await self._patch_vmi(world, {"status": {"migrationState": {"abortRequested": True}}}, is_status=True)
            case FailMigration():
                status = (
                    {}
                    if world.vmi is None
                    else failed_state_patch(world.vmi, action.why, format_timestamp(self._clock.now()))
                )
                await self._patch_vmi(world, {"status": status}, is_status=True)
            case LabelTarget():
                await self._patch_vmi(world, {"metadata": {"labels": {MIGRATION_TARGET_NODE: action.node}}})
            case RemoveTargetLabel():
                await self._patch_vmi(world, {"metadata": {"labels": {MIGRATION_TARGET_NODE: None}}})
            case _:
                assert_never(action)

    async def _create(self, world: World) -> None:
        migration, vmi = world.migration, world.vmi
        key = key_of(migration)
        await self._confirm(world)
        try:
            body = self._build(world)
        except ValueError as error:
            raise Invalid(f"cannot build the target Pod of {key}: {error}") from error
        name = body["metadata"]["name"]
        try:
            await self._api.create(POD, key.namespace, body)
        except AlreadyExists as error:
            # The Pod is ours, from a write whose response was lost, or a foreign one.
            existing = decode(await self._api.get(POD, Key(key.namespace, name)), Pod)
            if vmi is None or not is_controlled(existing, vmi):
                raise Invalid(f"cannot create Pod {name}: a foreign Pod has this name; delete it") from error
            self._state.note_target_created(world.migration)
            raise Conflict(str(error)) from error
        self._state.note_target_created(world.migration)
        self._record(world, "SuccessfulCreate", f"Created the migration's target pod {name}")

    def _report_unschedulable(self, world: World) -> None:
        event = unschedulable_event(world)
        self._events.record(regarding(world), event.kind, event.reason, event.message, occurrence=world.uid)
        if world.vmi is not None:
            unfit = host_cpu_event(world, self._other_nodes(world.vmi.status.node_name))
            if unfit is not None:
                self._events.record(
                    Regarding.of(world.vmi), unfit.kind, unfit.reason, unfit.message, occurrence=world.uid
                )
        self._state.note_unschedulable_reported(world.migration)

    async def _hand_over(self, world: World, pod: Pod) -> None:
        """Replace the VMI's migrationState. LabelTarget writes the label for other clients later."""
        key = Key(world.migration.metadata.namespace, world.migration.spec.vmi_name)
        policy = None if world.vmi is None else await self._policies.of(world.vmi)
        new, raw = hand_over_state(world, pod, policy), self._vmis.get(key)
        if new is None or raw is None:
            raise Conflict(f"cannot hand over {key}: the cache does not have the guest's Pod yet")
        await self._confirm(world)
        await self._patch_vmi(world, {"status": replace_state_patch(raw, new)}, is_status=True)
        self._record(
            world, "SuccessfulHandOver", f"The guest is to move to pod {pod.metadata.name} on {new.target_node}"
        )

    async def _confirm(self, world: World) -> None:
        """Confirm that the migration is unchanged: another leader may have ended it. Raises Conflict."""
        observed = world.migration.metadata
        current = (await self._api.get(VIRTUAL_MACHINE_INSTANCE_MIGRATION, key_of(world.migration)))["metadata"]
        if (current["uid"], current["resourceVersion"]) != (observed.uid, observed.resource_version):
            raise Conflict(f"cannot continue VirtualMachineInstanceMigration {key_of(world.migration)}: it has changed")

    async def _delete_target(self, world: World, action: DeleteTarget) -> None:
        """Delete the target Pod. Raises Conflict if the VMI, read from the API server, shows that the guest may be in
        it: the cached VMI may predate the hand-over.
        """
        vmi = await self._read_vmi_from_api(world)
        state = None if vmi is None else vmi.status.migration_state
        is_mine = state is not None and state.migration_uid == world.uid
        if vmi is not None and (action.uid in vmi.status.active_pods or (is_mine and not (state and state.failed))):
            raise Conflict(f"cannot delete Pod {action.name}: the guest may run in it")
        await self._delete_pod(world, action)

    async def _read_vmi_from_api(self, world: World) -> VirtualMachineInstance | None:
        """Read the VMI from the API server. The read-your-writes cache stores the response."""
        key = Key(world.migration.metadata.namespace, world.migration.spec.vmi_name)
        try:
            return decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, key))
        except NotFound:
            return None

    async def _confirm_pod_absent(self, world: World, name: str) -> None:
        """Read a Pod from the API server. A Pod of that name with another UID is a different Pod."""
        try:
            pod = decode(await self._api.get(POD, Key(world.migration.metadata.namespace, name)), Pod)
        except NotFound:
            pod = None
        if pod is None or not self._belongs_to_migration(world, pod):
            self._state.of(world.migration).absent.add(name)

    @staticmethod
    def _belongs_to_migration(world: World, pod: Pod) -> bool:
        vmi, last_state = world.vmi, world.last_state
        is_target = vmi is not None and pod.metadata.name == world.target_pod and is_made_for(pod, vmi, world.uid)
        return is_target or (last_state is not None and pod.uid == last_state.source_pod_uid)

    async def _delete_pod(self, world: World, action: DeleteTarget | DeleteSource) -> None:
        await self._delete(POD, Key(world.migration.metadata.namespace, action.name), action.uid)
        self._record(world, "SuccessfulDelete", f"Deleted pod {action.name}: {action.because}", occurrence=action.uid)

    async def _delete(self, resource: Resource, key: Key, uid: str) -> None:
        try:
            await self._api.delete(resource, key, uid=uid)
        except NotFound:
            log.debug("object is already deleted", extra={"key": str(key), "kind": resource.kind})

    async def patch(self, world: World, patch: dict[str, Any], *, is_status: bool = False) -> None:
        """Patch the migration, with its observed resourceVersion as precondition."""
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

    def _record(self, world: World, reason: str, message: str, *, occurrence: str = "") -> None:
        self._events.record(regarding(world), "Normal", reason, message, occurrence=occurrence or world.uid)


def key_of(migration: VirtualMachineInstanceMigration) -> Key:
    """Return the key of a migration."""
    return Key(migration.metadata.namespace, migration.metadata.name)


def regarding(world: World) -> Regarding:
    """Return the object that Events of this migration refer to."""
    return Regarding(VIRTUAL_MACHINE_INSTANCE_MIGRATION, key_of(world.migration), world.uid)
