# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI controller: reads the caches into a World, writes actions and status. It chooses nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, assert_never

import msgspec
from kubevirt_api.names import NODE_NAME, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.admission.validate.check import check_instance
from controlplane.api.objects.decode import DecodeError, decode, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound
from controlplane.engine.overlay import Overlay
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, Problem
from controlplane.engine.ports import Api, Clock
from controlplane.virt_controller.tell import Events, Regarding
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.status import derive_status
from controlplane.virt_controller.vmi.world import (
    Action,
    AddFinalizer,
    ConfirmAbsence,
    CreatePod,
    DeletePod,
    LabelNode,
    RemoveFinalizers,
    World,
    pod_name,
)

log = logging.getLogger(__name__)


class VmiReconciler:
    def __init__(
        self,
        *,
        vmis: Overlay,
        pods: Overlay,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        launcher_image: str,
    ) -> None:
        self._vmis = vmis
        self._pods = pods
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._launcher_image = launcher_image
        self._absent: dict[Key, tuple[str, bool]] = {}
        """VMIs (UID, is it deleting) of which the API server said that the Pod they depend on does not exist."""

    def observe(self, key: Key) -> World | None:
        raw = self._vmis.get(key)
        vmi = None if raw is None else _read(raw, key)
        if raw is None or vmi is None:
            self._absent.pop(key, None)
            return None
        pods, configuration = self._owned(vmi), self._configuration()
        return World(
            vmi=vmi,
            pods=pods,
            now=self._clock.now(),
            configuration=configuration,
            problems=_problems(raw, configuration) if vmi.status.epoch == 0 else (),
            squatter=self._squatter(vmi),
            is_absence_confirmed=self._absent.get(key) == _asked_about(vmi),
            deletes_sent=frozenset(
                pod.metadata.uid for pod in pods if self._pods.is_delete_sent(_pod_key(pod), pod.metadata.uid)
            ),
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
            case LabelNode():
                await self._patch(vmi, {"metadata": {"labels": {NODE_NAME: action.node}}})
            case ConfirmAbsence():
                await self._confirm_absence(world)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: VirtualMachineInstanceStatus) -> None:
        patch = merge_patch(encode(world.vmi.status), encode(status))
        await self._patch(world.vmi, {"status": patch}, is_status=True)

    def tell_refusal(self, world: World, problem: Problem[Action]) -> None:
        reason = "FailedCreate" if isinstance(problem.step, CreatePod) else "FailedUpdate"
        self._events.record(_regarding(world.vmi), "Warning", reason, str(problem.error))

    def _owned(self, vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
        keys = sorted(self._pods.indexed("owner", vmi.metadata.uid))
        found = (decode(raw, Pod) for raw in map(self._pods.get, keys) if raw is not None)
        return tuple(pod for pod in found if _is_controlled(pod, vmi))

    def _squatter(self, vmi: VirtualMachineInstance) -> str | None:
        name = pod_name(vmi, max(vmi.status.epoch, 1))
        raw = self._pods.get(Key(vmi.metadata.namespace, name))
        if raw is None or _is_controlled(decode(raw, Pod), vmi):
            return None
        return f"cannot create Pod {vmi.metadata.namespace}/{name}: one of this name exists and is not ours; delete it"

    async def _create(self, world: World, action: CreatePod) -> None:
        vmi = world.vmi
        try:
            body = build_launcher_pod(
                vmi, attempt=action.attempt, image=self._launcher_image, configuration=world.configuration
            )
            await self._api.create(POD, vmi.metadata.namespace, body)
        except ValueError as error:
            raise Invalid(f"cannot build the launcher Pod of {_key(vmi)}: {error}") from error
        except AlreadyExists as error:
            # Ours from a write whose answer was lost, or a squatter: look at it, then decide again.
            await self._api.get(POD, Key(vmi.metadata.namespace, body["metadata"]["name"]))
            raise Conflict(str(error)) from error

    async def _delete(self, world: World, action: DeletePod) -> None:
        key = Key(world.vmi.metadata.namespace, action.name)
        try:
            await self._api.delete(POD, key, uid=action.uid)
        except NotFound:
            log.debug("pod is gone already", extra={"key": str(key)})

    async def _confirm_absence(self, world: World) -> None:
        """Ask for every Pod that this run can have. One that is found is in the overlay afterwards.

        A live run depends on the Pod that was granted the start, a deleted one can only go when no Pod is left.
        """
        vmi = world.vmi
        granted = vmi.status.active_pods
        for attempt in range(1, world.epoch + 1):
            key = Key(vmi.metadata.namespace, pod_name(vmi, attempt))
            try:
                found = decode(await self._api.get(POD, key), Pod)
            except NotFound:
                continue
            if _is_controlled(found, vmi) and (world.is_deleting or found.metadata.uid in granted):
                return
        self._absent[_key(vmi)] = _asked_about(vmi)

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


def _asked_about(vmi: VirtualMachineInstance) -> tuple[str, bool]:
    return vmi.metadata.uid, vmi.metadata.deletion_timestamp is not None


def _is_controlled(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    return any(owner.controller and owner.uid == vmi.metadata.uid for owner in pod.metadata.owner_references)


def _key(vmi: VirtualMachineInstance) -> Key:
    return Key(vmi.metadata.namespace, vmi.metadata.name)


def _pod_key(pod: Pod) -> Key:
    return Key(pod.metadata.namespace, pod.metadata.name)


def _regarding(vmi: VirtualMachineInstance) -> Regarding:
    return Regarding(VIRTUAL_MACHINE_INSTANCE, _key(vmi), vmi.metadata.uid)
