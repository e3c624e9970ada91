# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM controller: reads the caches into a World, writes actions and status. It decides nothing.

Writes for one VM start, by all components (11 at most; asserted in tests/controlplane/virt_controller/test_budget.py):

    ControllerRevision  create                                      1   virt-controller/vm
    VM      status     Starting                                     1   virt-controller/vm
    VMI     create                                                  1   virt-controller/vm
    VMI     status     Scheduling, epoch                            1   virt-controller/vmi
    Pod     create                                                  1   virt-controller/vmi
    VMI     patch      label nodeName, while the container starts   1   virt-controller/vmi
    VMI     status     Scheduled, nodeName, activePods              1   virt-controller/vmi
    VMI     status     Running, interfaces, conditions              1   virt-handler
    VM      status     Running, ready                               1   virt-controller/vm
    Event   create     SuccessfulCreate on the VM, Started on the VMI   2

virt-handler declares Ready together with Running when its Pod is ready; if it cannot, virt-controller does: one more.
Admission adds the VM's finalizer. If admission was bypassed, the finalizer costs one more. A start after a change of
the VM's spec deletes the former start's ControllerRevision: one more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, assert_never

from kubevirt_api.names import VM_FINALIZER

from controlplane.api.admission.defaults import default_instance
from controlplane.api.objects.decode import DecodeError, decode_vm, decode_vmi, encode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import AlreadyExists, Conflict, NotFound, Unavailable
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, RefusedStep
from controlplane.engine.ports import Api, Clock
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.virt_controller.reporting.events import Events, Regarding, record_blocking_conditions
from controlplane.virt_controller.storage.claims import ReadClaims, no_claims
from controlplane.virt_controller.storage.data_volumes import ReadDataVolumes, no_data_volumes
from controlplane.virt_controller.vm.data_volume_writes import (
    adopt_data_volume,
    create_data_volume,
    record_import_failure,
)
from controlplane.virt_controller.vm.data_volumes import names_of
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.pod_lookup import PodLookup
from controlplane.virt_controller.vm.start_revision_writes import recorded_start
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.template import stored_template
from controlplane.virt_controller.vm.vmi_manifest import build_vmi, run_always_patch
from controlplane.virt_controller.vm.world import (
    Action,
    AddFinalizer,
    AdoptDataVolume,
    AdoptVmi,
    ChangeVmi,
    ConfirmPod,
    ConfirmVmi,
    CreateDataVolume,
    CreateVmi,
    DeleteVmi,
    DropRequest,
    Ownership,
    ReleaseVmi,
    RemoveFinalizer,
    SetRunStrategyAlways,
    World,
    ownership_of,
)
from controlplane.virt_controller.vm.write_failure import explain_write_failure

log = logging.getLogger(__name__)


class VmReconciler:
    def __init__(
        self,
        *,
        vms: ReadYourWritesCache,
        vmis: ReadYourWritesCache,
        api: Api,
        clock: Clock,
        events: Events,
        configuration: Callable[[], KubeVirtConfiguration],
        claims: ReadClaims = no_claims,
        data_volumes: ReadDataVolumes = no_data_volumes,
    ) -> None:
        self._vms = vms
        self._vmis = vmis
        self._read_claims = claims
        self._read_data_volumes = data_volumes
        self._api = api
        self._clock = clock
        self._events = events
        self._configuration = configuration
        self._confirmed: dict[Key, str] = {}
        """resourceVersion of the VM when its VMI was read from the API server."""
        self._pods = PodLookup(api)

    def observe(self, key: Key) -> World | None:
        """Read the caches. Unavailable until all of them are synced: before that, absence proves nothing."""
        if not (self._vms.synced and self._vmis.synced):
            raise Unavailable(f"cannot judge VirtualMachine {key}: the caches are not synced yet")
        raw, raw_vmi = self._vms.get(key), self._vmis.get(key)
        vm = _read(raw, key, decode_vm)
        if raw is None or vm is None:
            self._confirmed.pop(key, None)
            self._pods.forget(key)
            return None
        meta, vmi = vm.metadata, _read(raw_vmi, key, decode_vmi)
        if vmi is None and raw_vmi is not None:
            return None  # an unreadable VMI exists: it must not count as absent
        return World(
            vm=vm,
            vmi=vmi,
            template=stored_template(raw),
            now=self._clock.now(),
            is_delete_sent=vmi is not None and self._vmis.is_delete_sent(key, vmi.metadata.uid),
            is_pod_evicted=None if vmi is None else self._pods.is_evicted(key, vmi.metadata.uid),
            **self._volumes(vm),
            configuration=self._configuration(),
            is_instance_known=self._is_vmi_current(vm, vmi) or self._confirmed.get(key) == meta.resource_version,
        )

    def _volumes(self, vm: VirtualMachine) -> dict[str, Any]:
        claims = self._read_claims(vm.metadata.namespace, vm.spec.template.spec.volumes)
        return {
            "is_volume_unbound": not all(claim.is_bound for claim in claims.values()),
            "bound_claims": frozenset(name for name, claim in claims.items() if claim.is_bound),
            "data_volumes": self._read_data_volumes(vm.metadata.namespace, names_of(vm)),
        }

    def decide(self, world: World) -> Plan[Action]:
        return decide(world)

    def derive_status(self, world: World, problem: RefusedStep[Action] | None) -> VirtualMachineStatus | None:
        return derive_status(world, problem)

    async def apply(self, world: World, action: Action) -> None:
        vm = world.vm
        match action:
            case AddFinalizer():
                await self._patch(vm, {"metadata": {"finalizers": [*vm.metadata.finalizers, VM_FINALIZER]}})
            case RemoveFinalizer():
                await self._remove_finalizer(vm)
            case CreateVmi():
                await self._create(world, action)
            case SetRunStrategyAlways():
                await self._patch(vm, {"spec": run_always_patch(vm)})
            case ConfirmVmi():
                await self._confirm_vmi(vm)
            case ConfirmPod():
                await self._pods.read(_present(world.own))
            case AdoptVmi():
                await self._adopt(world)
            case ReleaseVmi():
                await self._release(world)
            case DeleteVmi():
                await self._delete(world, action)
            case ChangeVmi():
                await self._change(world, action)
            case DropRequest():
                await self._drop(vm, action)
            case _:
                await self._write_data_volume(world, action)

    async def _write_data_volume(self, world: World, action: CreateDataVolume | AdoptDataVolume) -> None:
        match action:
            case CreateDataVolume():
                await create_data_volume(self._api, self._events, world, action.name)
            case AdoptDataVolume():
                await adopt_data_volume(self._api, world, action.name)
            case _:
                assert_never(action)

    async def write_status(self, world: World, status: VirtualMachineStatus) -> None:
        patch = merge_patch(encode(world.vm.status), encode(status))
        await self._patch(world.vm, {"status": patch}, is_status=True)
        before, phase = world.vm.status.conditions, "" if world.own is None else world.own.status.phase
        record_blocking_conditions(self._events, Regarding.of(world.vm), before, status.conditions, phase=phase)
        record_import_failure(self._events, world, status)

    async def _remove_finalizer(self, vm: VirtualMachine) -> None:
        await self._confirm_absence(vm)
        others = [finalizer for finalizer in vm.metadata.finalizers if finalizer != VM_FINALIZER]
        await self._patch(vm, {"metadata": {"finalizers": others or None}})

    async def _confirm_absence(self, vm: VirtualMachine) -> None:
        """Confirm with the API server that the VMI is gone: removing the VM's finalizer cannot be undone. Raises
        Conflict."""
        try:
            existing = await self._api.get(VIRTUAL_MACHINE_INSTANCE, vm.metadata.key)
        except NotFound:
            return
        if ownership_of(vm, decode_vmi(existing)) is Ownership.OWN:
            raise Conflict(
                f"cannot remove the finalizer of VirtualMachine {vm.metadata.key}: its instance still exists"
            )

    def _is_vmi_current(self, vm: VirtualMachine, vmi: VirtualMachineInstance | None) -> bool:
        """Tell whether the cached state of the VMI, own writes included, is no older than the VM."""
        versions = vm.metadata.resource_version, vmi.metadata.resource_version if vmi is not None else "0"
        if not all(version.isdecimal() for version in versions):
            return False
        vm_version, vmi_version = map(int, versions)
        return max(vmi_version, self._vmis.resource_version) >= vm_version

    async def _confirm_vmi(self, vm: VirtualMachine) -> None:
        """Read the VMI from the API server. The read-your-writes cache stores the response."""
        with suppress(NotFound):
            await self._api.get(VIRTUAL_MACHINE_INSTANCE, vm.metadata.key)
        self._confirmed[vm.metadata.key] = vm.metadata.resource_version

    async def _confirm_current(self, vm: VirtualMachine) -> dict[str, Any]:
        """Return the VM as stored, if it is unchanged: a start may have been revoked or done. Raises Conflict."""
        stored = await self._api.get(VIRTUAL_MACHINE, vm.metadata.key)
        fresh = stored["metadata"]
        if (fresh["uid"], fresh["resourceVersion"]) != (vm.metadata.uid, vm.metadata.resource_version):
            raise Conflict(f"cannot act on VirtualMachine {vm.metadata.key}: it has changed meanwhile")
        return stored

    async def _create(self, world: World, action: CreateVmi) -> None:
        vm = world.vm
        stored = await self._confirm_current(vm)
        manifest = build_vmi(vm, world.template, is_paused=action.is_paused)
        body = default_instance(manifest, self._configuration(), seed=vm.metadata.uid)
        try:
            async with recorded_start(self._api, vm, stored["spec"]):
                created = await self._api.create(VIRTUAL_MACHINE_INSTANCE, vm.metadata.namespace, body)
        except AlreadyExists as error:
            # The VMI is ours, from a write whose response was lost, or a foreign one: observe it, then decide again.
            await self._api.get(VIRTUAL_MACHINE_INSTANCE, vm.metadata.key)
            raise Conflict(str(error)) from error
        message = f"Started the virtual machine {vm.metadata.key}"
        self._events.record(
            Regarding.of(vm), "Normal", "SuccessfulCreate", message, occurrence=created["metadata"]["uid"]
        )

    async def _change(self, world: World, action: ChangeVmi) -> None:
        """Patch the observed version of the VMI, by the current template."""
        await self._confirm_current(world.vm)
        meta = _present(world.own).metadata
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            world.vm.metadata.key,
            action.patch,
            resource_version=meta.resource_version,
            uid=meta.uid,
        )

    async def _adopt(self, world: World) -> None:
        vm, vmi = world.vm, _present(world.vmi)
        fresh = decode_vm(await self._api.get(VIRTUAL_MACHINE, vm.metadata.key))
        if fresh.metadata.uid != vm.metadata.uid or fresh.metadata.deletion_timestamp is not None:
            raise Conflict(
                f"cannot adopt the instance of VirtualMachine {vm.metadata.key}: the VM is or will be deleted"
            )
        others = [encode(owner) for owner in vmi.metadata.owner_references if owner.uid != vm.metadata.uid]
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            vm.metadata.key,
            {"metadata": {"ownerReferences": [*others, owner_reference(vm)]}},
            resource_version=vmi.metadata.resource_version,
            uid=vmi.metadata.uid,
        )

    async def _release(self, world: World) -> None:
        vmi = _present(world.own)
        others = [encode(owner) for owner in vmi.metadata.owner_references if owner.uid != world.vm.metadata.uid]
        await self._api.patch(
            VIRTUAL_MACHINE_INSTANCE,
            world.vm.metadata.key,
            {"metadata": {"ownerReferences": others or None}},
            resource_version=vmi.metadata.resource_version,
            uid=vmi.metadata.uid,
        )

    async def _delete(self, world: World, action: DeleteVmi) -> None:
        """Delete only the observed version: a VMI that has changed (e.g. lost its owner) stays."""
        vm, vmi = world.vm, _present(world.vmi)
        meta = vmi.metadata
        try:
            await self._api.delete(
                VIRTUAL_MACHINE_INSTANCE, vm.metadata.key, uid=meta.uid, resource_version=meta.resource_version
            )
        except NotFound:
            return
        if not world.is_vm_deleting:
            message = f"Stopped the virtual machine {vm.metadata.key}: {action.because}"
            self._events.record(Regarding.of(vm), "Normal", "SuccessfulDelete", message, occurrence=meta.uid)

    async def _drop(self, vm: VirtualMachine, action: DropRequest) -> None:
        remaining = [encode(request) for request in action.left]
        await self._patch(vm, {"status": {"stateChangeRequests": remaining or None}}, is_status=True)
        message = f"Dropped the request to {action.dropped.action[:64].lower()} {vm.metadata.key}: {action.because}"
        self._events.record(
            Regarding.of(vm), "Warning", "RequestDropped", message, occurrence=vm.metadata.resource_version
        )

    async def _patch(self, vm: VirtualMachine, patch: dict[str, Any], *, is_status: bool = False) -> None:
        await self._api.patch(
            VIRTUAL_MACHINE,
            vm.metadata.key,
            patch,
            subresource="status" if is_status else "",
            resource_version=vm.metadata.resource_version,
            uid=vm.metadata.uid,
        )

    def report_refusal(self, world: World, problem: RefusedStep[Action]) -> None:
        refusal = explain_write_failure(problem)
        self._events.record(Regarding.of(world.vm), "Warning", refusal.event, refusal.message)


T = TypeVar("T", VirtualMachine, VirtualMachineInstance)


def _read(raw: bytes | None, key: Key, read: Callable[[bytes], T]) -> T | None:
    try:
        return None if raw is None else read(raw)
    except DecodeError as error:
        log.warning("object skipped: it does not fit its schema", extra={"key": str(key), "error": str(error)})
        return None


def _present(vmi: VirtualMachineInstance | None) -> VirtualMachineInstance:
    if vmi is None:
        raise AssertionError("decided on an instance that is not in the world")
    return vmi
