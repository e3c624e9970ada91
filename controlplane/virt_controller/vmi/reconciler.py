# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI controller: reads the caches into a World, writes actions and status. It chooses nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec
from kubevirt_api.names import CREATED_BY, LAUNCHER_ROLE, NODE_NAME, ROLE, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.admission.validate.check import check_instance
from controlplane.api.objects.decode import DecodeError, decode, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.node import Node
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound, Unavailable
from controlplane.engine.overlay import Overlay
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, Problem
from controlplane.engine.ports import Api, Clock
from controlplane.virt_controller.tell import Events, Regarding
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod, owner_reference
from controlplane.virt_controller.vmi.status import derive_status, grant
from controlplane.virt_controller.vmi.world import (
    Action,
    AddFinalizer,
    ClaimPod,
    CreatePod,
    DeletePod,
    GrantStart,
    LabelNode,
    LookForNode,
    LookForPods,
    RemoveFinalizers,
    World,
    is_controlled,
    pod_name,
)

log = logging.getLogger(__name__)

LOOKED_BACK = 2
"""How many attempts before the current one may still have a Pod: one begins when the one before it has ended."""


_Question = tuple[bool, frozenset[str]]
"""Is there a Pod of a VMI that is being deleted (or not), and that was granted to these Pods?"""


@dataclass(slots=True)
class _Memory:
    """What this process learned about one VMI that no cache holds. Lost at a restart: then it is asked for again."""

    uid: str
    was_begun: bool = False
    absence: set[_Question] = field(default_factory=set)
    """Questions to which the API server said "no Pod"."""
    gone_nodes: set[str] = field(default_factory=set)
    nodes_read: dict[str, str] = field(default_factory=dict)
    """resourceVersion of each Node as the API server itself said it was."""
    granted: frozenset[str] = frozenset()
    last_words: dict[str, Pod] = field(default_factory=dict)
    """Granted Pods that ended and were removed, by UID."""
    pods: frozenset[Key] = frozenset()
    """What is looked at for this VMI: what happens to one of these is its business, whatever it says of its owner."""


class VmiReconciler:
    def __init__(
        self,
        *,
        vmis: Overlay,
        pods: Overlay,
        nodes: Overlay,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        launcher_image: str,
    ) -> None:
        self._vmis = vmis
        self._pods = pods
        self._nodes = nodes
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._launcher_image = launcher_image
        self._memories: dict[Key, _Memory] = {}
        self._looked_at: dict[Key, Key] = {}
        """VMI by Pod: the relation by which Pods are read, for those who wake by it."""
        pods.subscribe(self._note_removal)

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable while one of them is not complete: then absence means nothing."""
        if not (self._vmis.synced and self._pods.synced and self._nodes.synced):
            raise Unavailable(f"cannot judge VirtualMachineInstance {key}: not everything is known yet")
        raw = self._vmis.get(key)
        vmi = None if raw is None else _read(raw, key)
        if raw is None or vmi is None:
            self._forget(key)
            return None
        memory, pods, configuration = self._memory(vmi), self._launchers(vmi), self._configuration()
        self._remember(memory, key, vmi, pods)
        return World(
            vmi=vmi,
            pods=pods,
            last_words=tuple(memory.last_words.values()),
            node=self._node(vmi.status.node_name, memory),
            now=self._clock.now(),
            configuration=configuration,
            problems=_problems(raw, configuration) if vmi.status.attempt == 0 else (),
            is_absence_confirmed=_question(vmi) in memory.absence,
            was_begun=memory.was_begun,
            deletes_sent=frozenset(pod.uid for pod in pods if self._pods.is_delete_sent(_pod_key(pod), pod.uid)),
        )

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: Problem[Action] | None) -> VirtualMachineInstanceStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        vmi = world.vmi
        match action:
            case AddFinalizer():
                await self._patch(vmi, {"metadata": {"finalizers": [*vmi.metadata.finalizers, VMI_FINALIZER]}})
            case RemoveFinalizers():
                kept = [one for one in vmi.metadata.finalizers if one not in (VMI_FINALIZER, VM_FINALIZER)]
                await self._patch(vmi, {"metadata": {"finalizers": kept or None}})
            case CreatePod():
                await self._create(world, action)
            case DeletePod():
                await self._delete(world, action)
            case ClaimPod():
                await self._claim(world, action)
            case LabelNode():
                await self._patch(vmi, {"metadata": {"labels": {NODE_NAME: action.node}}})
            case GrantStart():
                await self.write_status(world, grant(world, action.pod))
            case LookForPods():
                await self._look_for_pods(world)
            case LookForNode():
                await self._look_for_node(world, action)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: VirtualMachineInstanceStatus) -> None:
        patch = merge_patch(encode(world.vmi.status), encode(status))
        await self._patch(world.vmi, {"status": patch}, is_status=True)

    def tell_refusal(self, world: World, problem: Problem[Action]) -> None:
        reason = "FailedCreate" if isinstance(problem.step, CreatePod) else "FailedUpdate"
        self._events.record(_regarding(world.vmi), "Warning", reason, str(problem.error))

    def _memory(self, vmi: VirtualMachineInstance) -> _Memory:
        memory = self._memories.get(_key(vmi))
        if memory is None or memory.uid != vmi.metadata.uid:
            self._forget(_key(vmi))
            memory = self._memories[_key(vmi)] = _Memory(vmi.metadata.uid)
        return memory

    def vmi_of(self, pod: Key) -> Key | None:
        """Return the VMI for which a Pod of this name is looked at."""
        return self._looked_at.get(pod)

    def _note_removal(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Keep what the kubelet said last of a granted Pod that ended: nobody can be asked for it any more."""
        owner = self._looked_at.get(key)
        memory = None if owner is None or before is None or after is not None else self._memories.get(owner)
        if memory is None or before is None:
            return
        pod = decode(before, Pod)
        if pod.uid in memory.granted and (pod.is_over or pod.compute.terminated is not None):
            memory.last_words[pod.uid] = pod

    def _remember(self, memory: _Memory, key: Key, vmi: VirtualMachineInstance, pods: tuple[Pod, ...]) -> None:
        memory.was_begun |= bool(pods)
        memory.granted = frozenset(vmi.status.active_pods)
        seen = frozenset({*_names(vmi), *map(_pod_key, pods)})
        for gone in memory.pods - seen:
            self._looked_at.pop(gone, None)
        self._looked_at.update(dict.fromkeys(seen - memory.pods, key))
        memory.pods = seen

    def _forget(self, key: Key) -> None:
        memory = self._memories.pop(key, None)
        for pod in () if memory is None else memory.pods:
            self._looked_at.pop(pod, None)

    def _launchers(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        """List the Pods that the VMI controls, and those it was granted, whatever they carry by now."""
        granted = vmi.status.active_pods
        keys = sorted({*self._pods.indexed("owner", vmi.metadata.uid), *_names(vmi)})
        found = (decode(raw, Pod) for raw in map(self._pods.get, keys) if raw is not None)
        return tuple(pod for pod in found if is_controlled(pod, vmi) or pod.uid in granted)

    def _node(self, name: str, memory: _Memory) -> NodeState | None:
        if not name:
            return None
        raw = self._nodes.get(Key("", name))
        if raw is None:
            return NodeState(name, is_unseen=True, is_gone=name in memory.gone_nodes)
        node = decode(raw, Node)
        memory.gone_nodes.discard(name)  # one of this name is there: what was said of the former says nothing
        is_current = memory.nodes_read.get(name) == node.metadata.resource_version
        looks_off = node.is_out_of_service
        return NodeState(name, looks_out_of_service=looks_off, is_out_of_service=looks_off and is_current)

    async def _create(self, world: World, action: CreatePod) -> None:
        vmi, memory = world.vmi, self._memory(world.vmi)
        try:
            body = build_launcher_pod(
                vmi, attempt=action.attempt, image=self._launcher_image, configuration=world.configuration
            )
        except ValueError as error:
            raise Invalid(f"cannot build the launcher Pod of {_key(vmi)}: {error}") from error
        try:
            await self._api.create(POD, vmi.metadata.namespace, body)
        except AlreadyExists as error:
            # Ours from a write whose answer was lost, or somebody else's: look at it.
            key = Key(vmi.metadata.namespace, body["metadata"]["name"])
            if not is_controlled(decode(await self._api.get(POD, key), Pod), vmi):
                raise Invalid(f"cannot create Pod {key}: one of this name exists and is not ours; delete it") from error
            raise Conflict(str(error)) from error
        memory.was_begun = True
        memory.absence.clear()

    async def _claim(self, world: World, action: ClaimPod) -> None:
        pod = next(one for one in world.pods if one.uid == action.uid)
        owners = [encode(one) for one in pod.metadata.owner_references if not one.controller]
        marks: dict[str, Any] = {"labels": {ROLE: LAUNCHER_ROLE, CREATED_BY: world.vmi.metadata.uid}}
        if (
            not world.is_deleting
        ):  # else the garbage collector may be about to take the owner off: it is not to be fought
            marks["ownerReferences"] = [*owners, owner_reference(world.vmi)]
        patch = {"metadata": marks}
        version = pod.metadata.resource_version
        await self._api.patch(POD, _pod_key(pod), patch, uid=pod.uid, resource_version=version)

    async def _delete(self, world: World, action: DeletePod) -> None:
        key = Key(world.vmi.metadata.namespace, action.name)
        try:
            await self._api.delete(POD, key, uid=action.uid)
        except NotFound:
            log.debug("pod is gone already", extra={"key": str(key)})

    async def _look_for_pods(self, world: World) -> None:
        """Ask for every Pod that this run can have. One that is found is in the overlay afterwards.

        A run that was granted depends on that very Pod; one that was not, or is to end, on any Pod of it.
        """
        vmi, granted = world.vmi, world.vmi.status.active_pods
        for name in _names(vmi):
            try:
                found = decode(await self._api.get(POD, name), Pod)
            except NotFound:
                continue
            is_any_enough = world.is_deleting or not granted
            if found.uid in granted or (is_any_enough and is_controlled(found, vmi)):
                return
        self._memory(vmi).absence.add(_question(vmi))

    async def _look_for_node(self, world: World, action: LookForNode) -> None:
        memory = self._memory(world.vmi)
        try:
            found = await self._api.get(NODE, Key("", action.name))
        except NotFound:
            memory.gone_nodes.add(action.name)
        else:
            memory.nodes_read[action.name] = found["metadata"]["resourceVersion"]

    async def _patch(self, vmi: VirtualMachineInstance, patch: dict[str, Any], *, is_status: bool = False) -> None:
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            _key(vmi),
            patch,
            subresource="status" if is_status else "",
            resource_version=vmi.metadata.resource_version,
            uid=vmi.metadata.uid,
        )


def _read(raw: bytes, key: Key) -> VirtualMachineInstance | None:
    try:
        return decode_vmi(raw)
    except DecodeError as error:
        log.warning("object left alone: it does not fit its schema", extra={"key": str(key), "error": str(error)})
        return None


def _problems(raw: bytes, configuration: KubeVirtConfiguration) -> tuple[str, ...]:
    """Say what admission would have said, in case it was not asked."""
    return tuple(str(one) for one in check_instance(msgspec.json.decode(raw), configuration))


def _question(vmi: VirtualMachineInstance) -> _Question:
    return vmi.metadata.deletion_timestamp is not None, frozenset(vmi.status.active_pods)


def _names(vmi: VirtualMachineInstance) -> list[Key]:
    """List the names that Pods of this run can have."""
    return [Key(vmi.metadata.namespace, pod_name(vmi, number)) for number in _attempts(vmi)]


def _attempts(vmi: VirtualMachineInstance) -> range:
    """List the attempts that can have a Pod; a number that somebody else wrote costs no more than a few reads."""
    current = max(vmi.status.attempt, 1)
    return range(max(1, current - LOOKED_BACK), current + 1)


def _key(vmi: VirtualMachineInstance) -> Key:
    return Key(vmi.metadata.namespace, vmi.metadata.name)


def _pod_key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def _regarding(vmi: VirtualMachineInstance) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE, _key(vmi), vmi.metadata.uid)
