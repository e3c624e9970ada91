# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI controller: reads the caches into a World, writes actions and status. It decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, assert_never

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import (
    CREATED_BY,
    EVICTION_IN_PROGRESS,
    LAUNCHER_ROLE,
    NODE_NAME,
    ROLE,
    VM_FINALIZER,
    VMI_FINALIZER,
)

from controlplane.api.admission.validate.check import check_instance
from controlplane.api.objects.claim import claim_names
from controlplane.api.objects.decode import DecodeError, decode, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.phase import BEFORE_HAND_OVER
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.changes import BY_VMI_NAME
from controlplane.virt_controller.reporting.events import Events, Regarding, record_blocking_conditions
from controlplane.virt_controller.storage.claims import ReadClaims, no_claims
from controlplane.virt_controller.storage.data_volumes import ReadDataVolumes, no_data_volumes
from controlplane.virt_controller.vmi.claim_writers import ClaimWriters
from controlplane.virt_controller.vmi.controller_state import ControllerState, pod_keys, pod_lookup
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.events import (
    record_disruption_event,
    record_end_events,
    record_failed_attempt_events,
)
from controlplane.virt_controller.vmi.evidence import Dead
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.migration_commit import commit_migration, find_arrived_migration
from controlplane.virt_controller.vmi.predecessor import select_predecessors
from controlplane.virt_controller.vmi.status import derive_status, grant, refusal_message, refusal_reason
from controlplane.virt_controller.vmi.world import (
    Action,
    AddFinalizer,
    AdoptPod,
    AnnotateEviction,
    CommitMigration,
    ConfirmNode,
    ConfirmPodsAbsent,
    CreatePod,
    DeletePod,
    GrantStart,
    LabelNode,
    RemoveFinalizers,
    SetUnpausedCondition,
    World,
    is_controlled,
)

log = logging.getLogger(__name__)


class VmiReconciler:
    def __init__(
        self,
        *,
        vmis: ReadYourWritesCache,
        pods: ReadYourWritesCache,
        nodes: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        launcher_image: str,
        image_pull_secrets: tuple[str, ...] = (),
        claims: ReadClaims = no_claims,
        data_volumes: ReadDataVolumes = no_data_volumes,
        excluded_nodes: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """excluded_nodes: returns the nodes without new machines."""
        self._vmis = vmis
        self._pods = pods
        self._nodes = nodes
        self._read_claims = claims
        self._read_data_volumes = data_volumes
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._launcher_image = launcher_image
        self._image_pull_secrets = image_pull_secrets
        self._excluded_nodes = excluded_nodes
        self._claim_writers = ClaimWriters(vmis, pods)
        self._state = ControllerState()
        pods.subscribe(self._state.note_removal)

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable until all of them are synced: before that, absence proves nothing."""
        if not (self._vmis.synced and self._pods.synced and self._nodes.synced):
            raise Unavailable(f"cannot judge VirtualMachineInstance {key}: the caches are not synced yet")
        raw = self._vmis.get(key)
        vmi = None if raw is None else _read(raw, key)
        if raw is None or vmi is None:
            self._state.forget(key)
            self._claim_writers.forget(key)
            return None
        pods, configuration = self._launchers(vmi), self._configuration()
        state = self._state.note_pods(vmi, pods)
        claims = self._read_claims(vmi.metadata.namespace, vmi.spec.volumes)
        is_waiting = vmi.status.phase in BEFORE_HAND_OVER and not vmi.status.active_pods
        world = World(
            vmi=vmi,
            pods=pods,
            predecessors=self._predecessors(vmi, pods) if vmi.status.phase in BEFORE_HAND_OVER else (),
            last_states=tuple(state.last_states.values()),
            node=state.judge_node(vmi.status.node_name, self._nodes.get(Key("", vmi.status.node_name))),
            now=self._clock.now(),
            configuration=configuration,
            problems=_problems(raw, configuration) if vmi.status.attempt == 0 else (),
            is_absence_confirmed=pod_lookup(vmi, state) in state.absent_lookups,
            was_begun=state.was_begun(vmi.status.attempt),
            event_troubles=state.event_troubles,
            claims=claims,
            claim_writers=self._claim_writers.find(vmi, claims) if is_waiting else {},
            data_volumes=self._read_data_volumes(vmi.metadata.namespace, claim_names(vmi.spec.volumes)),
            excluded_nodes=self._excluded_nodes(),
            deletes_sent=frozenset(pod.uid for pod in pods if self._pods.is_delete_sent(pod.metadata.key, pod.uid)),
        )
        now = self._clock.monotonic()
        dead_for = state.dead_for(world.is_granted and isinstance(world.evidence, Dead), now)
        return replace(world, placed_for=state.placed_for(world.source, now), dead_for=dead_for)

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        vmi = world.vmi
        match action:
            case AddFinalizer():
                await self._patch(vmi, {"metadata": {"finalizers": [*vmi.metadata.finalizers, VMI_FINALIZER]}})
            case RemoveFinalizers():
                finalizers = [
                    finalizer for finalizer in vmi.metadata.finalizers if finalizer not in (VMI_FINALIZER, VM_FINALIZER)
                ]
                await self._patch(vmi, {"metadata": {"finalizers": finalizers or None}})
            case CreatePod() | DeletePod() | AdoptPod() | SetUnpausedCondition() | AnnotateEviction():
                await self._write_pod(world, action)
            case LabelNode():
                await self._patch(vmi, {"metadata": {"labels": {NODE_NAME: action.node}}})
            case GrantStart():
                await self.write_status(world, grant(world, action.pod))
            case CommitMigration():
                if (migration := find_arrived_migration(world)) is not None:
                    await self.write_status(world, commit_migration(world, migration))
            case ConfirmPodsAbsent():
                await self._confirm_pods_absent(world)
            case ConfirmNode():
                await self._confirm_node(world, action)
            case _:
                assert_never(action)

    async def _write_pod(
        self, world: World, action: CreatePod | DeletePod | AdoptPod | SetUnpausedCondition | AnnotateEviction
    ) -> None:
        match action:
            case CreatePod():
                await self._create(world, action)
            case DeletePod():
                await self._delete(world, action)
            case AdoptPod():
                await self._adopt(world, action)
            case SetUnpausedCondition():
                await self._set_unpaused(world, action)
            case AnnotateEviction():
                key = Key(world.vmi.metadata.namespace, action.name)
                patch = {"metadata": {"annotations": {EVICTION_IN_PROGRESS: action.value}}}
                await self._api.patch(POD, key, patch, uid=action.uid)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: VirtualMachineInstanceStatus) -> None:
        patch = merge_patch(encode(world.vmi.status), encode(status))
        await self._patch(world.vmi, {"status": patch}, is_status=True)
        events, regarding = self._events, Regarding.of(world.vmi)
        before = world.vmi.status.conditions
        record_blocking_conditions(events, regarding, before, status.conditions, phase=status.phase)
        record_disruption_event(events, world, status)
        record_end_events(events, regarding, world, status)
        record_failed_attempt_events(events, world, status)

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        self._events.record(Regarding.of(world.vmi), "Warning", refusal_reason(problem), refusal_message(problem))

    def vmi_of(self, pod: Key) -> Key | None:
        """Return the VMI that a Pod of this name concerns."""
        return self._state.vmi_of(pod)

    def note_event(self, raw: bytes) -> Key | None:
        """Note an Event about a Pod; return the VMI to enqueue, if any."""
        return self._state.note_event(raw, self._clock.monotonic())

    def _launchers(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        """List the Pods that the VMI controls or was granted to, with any labels and owners."""
        granted = vmi.status.active_pods
        keys = sorted({*self._pods.indexed("owner", vmi.metadata.uid), *pod_keys(vmi)})
        launchers = (decode(raw, Pod) for raw in map(self._pods.get, keys) if raw is not None)
        return tuple(pod for pod in launchers if is_controlled(pod, vmi) or pod.uid in granted)

    def _predecessors(self, vmi: VirtualMachineInstance, own: tuple[Pod, ...]) -> tuple[Pod, ...]:
        named = self._pods.indexed(BY_VMI_NAME, str(vmi.metadata.key))
        raws = map(self._pods.get, sorted({*named} - {pod.metadata.key for pod in own}))
        return select_predecessors((decode(raw, Pod) for raw in raws if raw is not None), vmi)

    async def _create(self, world: World, action: CreatePod) -> None:
        vmi, state = world.vmi, self._state.of(world.vmi)
        try:
            body = build_launcher_pod(
                vmi,
                attempt=action.attempt,
                image=self._launcher_image,
                image_pull_secrets=self._image_pull_secrets,
                configuration=world.configuration,
                claims=world.claims,
                excluded_nodes=world.excluded_nodes,
            )
        except ValueError as error:
            raise Invalid(f"cannot build the launcher Pod of {vmi.metadata.key}: {error}") from error
        try:
            with self._claim_writers.reserve(vmi, world.claims):
                await self._api.create(POD, vmi.metadata.namespace, body)
        except AlreadyExists as error:
            # The Pod is ours, from a write whose response was lost, or a foreign one.
            key = Key(vmi.metadata.namespace, body["metadata"]["name"])
            if not is_controlled(decode(await self._api.get(POD, key), Pod), vmi):
                raise Invalid(f"cannot create Pod {key}: a foreign Pod has this name; delete it") from error
            state.begun = max(state.begun, action.attempt)  # it may be deleted before the cache shows it
            raise Conflict(str(error)) from error
        state.begun = max(state.begun, action.attempt)

    async def _adopt(self, world: World, action: AdoptPod) -> None:
        pod = next(pod for pod in world.pods if pod.uid == action.uid)
        owners = [encode(owner) for owner in pod.metadata.owner_references if not owner.controller]
        metadata: dict[str, Any] = {"labels": {ROLE: LAUNCHER_ROLE, CREATED_BY: world.vmi.metadata.uid}}
        # While the VMI is being deleted, the garbage collector may remove the owner: do not fight it.
        if not world.is_deleting:
            metadata["ownerReferences"] = [*owners, owner_reference(world.vmi)]
        patch = {"metadata": metadata}
        version = pod.metadata.resource_version
        await self._api.patch(POD, pod.metadata.key, patch, uid=pod.uid, resource_version=version)

    async def _set_unpaused(self, world: World, action: SetUnpausedCondition) -> None:
        """Add the condition of the readiness gate, with the Pod's observed resourceVersion as precondition."""
        key = Key(world.vmi.metadata.namespace, action.name)
        raw = self._pods.get(key)
        if raw is None:
            return
        pod = msgspec.json.decode(raw)
        patch = unpaused_patch(pod["status"], format_timestamp(self._clock.now()))
        version = pod["metadata"]["resourceVersion"]
        try:
            await self._api.patch(POD, key, patch, subresource="status", uid=action.uid, resource_version=version)
        except NotFound:
            log.debug("pod is already deleted", extra={"key": str(key)})

    async def _delete(self, world: World, action: DeletePod) -> None:
        key = Key(world.vmi.metadata.namespace, action.name)
        try:
            await self._api.delete(POD, key, uid=action.uid)
        except NotFound:
            log.debug("pod is already deleted", extra={"key": str(key)})
            return
        message = f"Deleted virtual machine pod {action.name}: {action.because}"
        self._events.record(Regarding.of(world.vmi), "Normal", "SuccessfulDelete", message, occurrence=action.uid)

    async def _confirm_pods_absent(self, world: World) -> None:
        """Read every Pod that this run can have. The read-your-writes cache stores the responses.

        A granted run depends on its granted Pod. Before the grant, or while the VMI is being deleted, any Pod counts.
        """
        vmi, granted = world.vmi, world.vmi.status.active_pods
        for name in pod_keys(vmi):
            try:
                pod = decode(await self._api.get(POD, name), Pod)
            except NotFound:
                continue
            is_any_enough = world.is_deleting or not granted
            if pod.uid in granted or (is_any_enough and is_controlled(pod, vmi)):
                return
        state = self._state.of(vmi)
        state.absent_lookups.add(pod_lookup(vmi, state))

    async def _confirm_node(self, world: World, action: ConfirmNode) -> None:
        state = self._state.of(world.vmi)
        try:
            node = await self._api.get(NODE, Key("", action.name))
        except NotFound:
            state.gone_nodes.add(action.name)
        else:
            state.nodes_read[action.name] = node["metadata"]["resourceVersion"]

    async def _patch(self, vmi: VirtualMachineInstance, patch: dict[str, Any], *, is_status: bool = False) -> None:
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            vmi.metadata.key,
            patch,
            subresource="status" if is_status else "",
            resource_version=vmi.metadata.resource_version,
            uid=vmi.metadata.uid,
        )


def _read(raw: bytes, key: Key) -> VirtualMachineInstance | None:
    try:
        return decode_vmi(raw)
    except DecodeError as error:
        log.warning("object skipped: it does not fit its schema", extra={"key": str(key), "error": str(error)})
        return None


def _problems(raw: bytes, configuration: KubeVirtConfiguration) -> tuple[str, ...]:
    """Validate the spec as admission does, in case admission was bypassed."""
    return tuple(str(problem) for problem in check_instance(msgspec.json.decode(raw), configuration))


def unpaused_patch(status: dict[str, Any], now: str) -> dict[str, Any]:
    """Build the status patch that sets the Pod's readiness gate and keeps its other conditions."""
    others = [condition for condition in status.get("conditions", ()) if condition["type"] != condition_types.UNPAUSED]
    unpaused = {"type": condition_types.UNPAUSED, "status": "True", "reason": condition_types.NOT_PAUSED}
    return {"status": {"conditions": [*others, {**unpaused, "lastTransitionTime": now}]}}
