# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted on purpose, each a small subclass or a function in the place of another. Which stand where: mutants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from kubevirt_api.names import VM_GENERATION

from controlplane.api.objects.decode import encode
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.patch import merge_patch
from controlplane.engine.plan import Plan, WriteStatus
from controlplane.virt_controller.vm import reconciler as vm_module
from controlplane.virt_controller.vm import world as vm_world
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi import controller_state, evidence
from controlplane.virt_controller.vmi import reconciler as vmi_module
from controlplane.virt_controller.vmi import world as vmi_world
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.vmi import liveness as verdict
from controlplane.virt_handler.vmi import reconciler as handler_module
from controlplane.virt_handler.vmi import world as handler_world


class RandomPodNames(VmiReconciler):
    """Names Pods like generateName does: creating twice duplicates instead of colliding."""

    _made = 0

    async def _create(self, world: vmi_world.World, action: vmi_world.CreatePod) -> None:
        body = build_launcher_pod(world.vmi, attempt=1, image="launcher", configuration=world.configuration)
        RandomPodNames._made += 1
        body["metadata"]["name"] += f"x{RandomPodNames._made}-1"
        await self._api.create(POD, world.vmi.metadata.namespace, body)


class NoAttemptWritten(VmiReconciler):
    """Creates the Pod first and records the attempt afterwards."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        is_waiting = all(isinstance(one, WriteStatus) for one in plan.steps)
        if is_waiting and not world.vmi.status.phase and world.source is None and not world.problems:
            return Plan((vmi_world.CreatePod(1, because="in a hurry"),))
        return plan


class LetsGoTooEarly(VmiReconciler):
    """Frees the VMI's name when it is deleted, not when its Pod is gone."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        if world.is_deleting and world.vmi.metadata.finalizers:
            return Plan((vmi_world.RemoveFinalizers(because="in a hurry"),))
        return super().decide(world)


class KillsPodsOfLiveRuns(VmiReconciler):
    """Deletes the Pod of a VMI that runs, as if contact were lost."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        if not plan.steps and world.pods and world.vmi.status.phase == "Running":
            meta = world.pods[0].metadata
            return Plan((vmi_world.DeletePod(meta.name, meta.uid, because="lost contact"),))
        return plan


class NeverLetsGo(VmiReconciler):
    """Forgets the finalizer."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        return Plan(tuple(one for one in plan.steps if not isinstance(one, vmi_world.RemoveFinalizers)))


class TakesNoHold(VmiReconciler):
    """Makes the Pod of a VMI that nothing keeps from going first."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        if world.is_deleting or vmi_module.VMI_FINALIZER in world.vmi.metadata.finalizers:
            return super().decide(world)
        kept = (*world.vmi.metadata.finalizers, vmi_module.VMI_FINALIZER)
        return super().decide(replace(world, vmi=_with_meta(world.vmi, finalizers=kept)))

    def derive_status(self, world: vmi_world.World, problem: Any) -> Any:
        kept = (*world.vmi.metadata.finalizers, vmi_module.VMI_FINALIZER)
        return super().derive_status(replace(world, vmi=_with_meta(world.vmi, finalizers=kept)), problem)


class DeletesByName(VmiReconciler):
    """Deletes whatever has the Pod's name by now."""

    async def _delete(self, world: vmi_world.World, action: vmi_world.DeletePod) -> None:
        key = Key(world.vmi.metadata.namespace, action.name)
        fresh = await self._api.get(POD, key)
        await self._api.delete(POD, key, uid=fresh["metadata"]["uid"])


class BelievesItsCache(VmiReconciler):
    """Takes the silence of its cache for the API server's word that no Pod is left."""

    async def _look_for_pods(self, world: vmi_world.World) -> None:
        memory = self._memories.of(world.vmi)
        memory.absence.add(vmi_module.pod_lookup(world.vmi, memory))


def every_node_gone(memory: controller_state.VmiState, name: str, raw: bytes | None) -> Any:
    """Take a Node that was told of for gone without asking."""
    found = _judge_node(memory, name, raw)
    return None if found is None else replace(found, is_gone=True)


class StatusOfVmiBlindly(VmiReconciler):
    """Writes the VMI's status over whatever is there."""

    async def write_status(self, world: vmi_world.World, status: Any) -> None:
        patch = {"status": merge_patch(encode(world.vmi.status), encode(status))}
        meta = world.vmi.metadata
        await self._api.patch(VIRTUAL_MACHINE_INSTANCE, _key(meta), patch, subresource="status", uid=meta.uid)


class StatusAllTheTime(VmiReconciler):
    """Corrects the status of what runs again and again."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        plan = super().decide(world)
        if not plan.steps and world.vmi.status.phase == "Running":
            return Plan((WriteStatus("now and then"),), requeue_after=30.0)
        return plan

    def derive_status(self, world: vmi_world.World, problem: Any) -> Any:
        new = super().derive_status(world, problem)
        if new is None and world.vmi.status.phase == "Running":
            word = "a" if world.vmi.status.reason != "a" else "b"
            return _replaced(world.vmi.status, reason=f"{word}{int(world.now)}")
        return new


class GrantsAgain(VmiReconciler):
    """Gives a run whose Pod is gone to the next attempt's."""

    def decide(self, world: vmi_world.World) -> Plan[vmi_world.Action]:
        up = [pod for pod in world.pods if pod.is_up and pod.uid not in world.vmi.status.active_pods]
        if up and not world.is_deleting and world.vmi.status.phase == "Scheduling":
            return Plan((vmi_world.GrantStart(up[0], because="it is up"),))
        if world.source is None and world.vmi.status.phase == "Scheduling" and world.was_begun:
            return Plan((vmi_world.CreatePod(world.attempt + 1, because="the first is not seen"),))
        return super().decide(world)


class StopsOrphans(VmReconciler):
    """Deletes by name and UID, but whatever the object has become meanwhile."""

    async def _delete(self, world: vm_world.World, action: vm_world.DeleteVmi) -> None:
        vmi = world.vmi
        assert vmi is not None
        await self._api.delete(VIRTUAL_MACHINE_INSTANCE, _key(vmi.metadata), uid=vmi.metadata.uid)


class SleepsThroughTheBackOff(VmReconciler):
    """Does not come back when a crash-loop's delay is over."""

    def decide(self, world: vm_world.World) -> Plan[vm_world.Action]:
        return Plan(super().decide(world).steps)


class StatusOfVmBlindly(VmReconciler):
    """Writes the VM's status over whatever is there."""

    async def write_status(self, world: vm_world.World, status: Any) -> None:
        meta, before = world.vm.metadata, encode(world.vm.status)
        patch = {"status": merge_patch(before, encode(status))}
        await self._api.patch(vm_module.VIRTUAL_MACHINE, _key(meta), patch, subresource="status", uid=meta.uid)


class LetsGoOfVmBlindly(VmReconciler):
    """Lets a VM go without asking for its instance."""

    async def _insist_on_absence(self, vm: Any) -> None:
        return


class AdoptsBlindly(VmReconciler):
    """Adopts for a VM that may be gone."""

    async def _adopt(self, world: vm_world.World) -> None:
        vmi = world.vmi
        assert vmi is not None
        patch = {"metadata": {"ownerReferences": [owner_reference(world.vm)]}}
        version, uid = vmi.metadata.resource_version, vmi.metadata.uid
        await self._api.patch(VIRTUAL_MACHINE_INSTANCE, _key(vmi.metadata), patch, resource_version=version, uid=uid)


class RestartsOnChange(VmReconciler):
    """Replaces a running instance whenever the VM has changed."""

    def decide(self, world: vm_world.World) -> Plan[vm_world.Action]:
        own, plan = world.own, super().decide(world)
        if plan.steps or own is None or world.is_stopping or own.status.phase != "Running":
            return plan
        made_from = own.metadata.annotations.get(VM_GENERATION)
        if made_from == str(world.vm.metadata.generation):
            return plan
        return Plan((vm_world.DeleteVmi(because="the VM has changed"),))


class StartsOnceAgain(VmReconciler):
    """Replaces the one run of Once when it is over."""

    def decide(self, world: vm_world.World) -> Plan[vm_world.Action]:
        own, plan = world.own, super().decide(world)
        is_over = own is not None and own.status.phase in ("Succeeded", "Failed") and not world.is_stopping
        if not plan.steps and is_over and world.vm.run_strategy in ("Once", "Manual"):
            return Plan((vm_world.DeleteVmi(because="its run is over"),))
        return plan


class StartsUnasked(VmReconciler):
    """Takes Manual for Always."""

    def decide(self, world: vm_world.World) -> Plan[vm_world.Action]:
        plan = super().decide(world)
        is_free = world.vmi is None and not world.is_vm_deleting
        if not plan.steps and is_free and world.vm.run_strategy == "Manual":
            return Plan((vm_world.CreateVmi(because="why not"),))
        return plan


class ForgetsRequests(VmReconciler):
    """Takes requests off the queue and does nothing about them."""

    def observe(self, key: Key) -> vm_world.World | None:
        world = super().observe(key)
        if world is None:
            return None
        forgotten = _replaced(world.vm.status, state_change_requests=())
        return replace(world, vm=_replaced(world.vm, status=forgotten))

    async def write_status(self, world: vm_world.World, status: Any) -> None:
        patch = {**merge_patch(encode(world.vm.status), encode(status)), "stateChangeRequests": None}
        await self._patch(world.vm, {"status": patch}, is_status=True)


class StartsWithoutGrant(handler_module.VmiReconciler):
    """Starts what its cache shows, without asking the API server."""

    async def _granted(self, vmi: VirtualMachineInstance, session: Any) -> VirtualMachineInstance:
        return vmi


class EndsOrphansUnasked(handler_module.VmiReconciler):
    """Ends a guest whose VMI it does not see at once, and without asking."""

    def decide(self, world: handler_world.World) -> Plan[handler_world.Action]:
        up = [one for one in world.launchers if one.status.state is not None and one.status.state.life.is_up]
        if world.vmi is None and up:
            return Plan((handler_world.Destroy(up[0].pod.uid, because="nobody owns it"),))
        return super().decide(world)


class HandlerWritesBlindly(handler_module.VmiReconciler):
    """Writes the VMI's status over whatever is there."""

    async def write_status(self, world: handler_world.World, status: Any) -> None:
        if world.vmi is None:
            return
        meta = world.vmi.metadata
        patch = {"status": merge_patch(encode(world.vmi.status), encode(status))}
        await self._api.patch(VIRTUAL_MACHINE_INSTANCE, _key(meta), patch, subresource="status", uid=meta.uid)


def dead_when_absent(pod: Pod | None, node: Any, *, uid: str, is_absence_confirmed: bool) -> evidence.Evidence:
    """Take the API server's 404 for proof."""
    found = evidence.weigh_evidence(pod, node, uid=uid, is_absence_confirmed=is_absence_confirmed)
    return evidence.Dead("Failed", found.trouble) if isinstance(found, evidence.Unknown) else found


def dead_when_silent(launcher: Any, vmi_uid: str) -> verdict.Liveness:
    """Take a launcher that is not reached for one that ended."""
    if launcher.status.is_network_ready and not launcher.status.is_connected:
        return verdict.Dead("Failed", "GuestLost", "it does not answer")
    return _judge(launcher, vmi_uid)


def mentioned(pod: Pod, vmi: Any) -> bool:
    return any(owner.uid == vmi.metadata.uid for owner in pod.metadata.owner_references)


def any_owner(vm: Any, vmi: Any) -> vm_world.Ownership:
    if vmi is not None and any(one.uid == vm.metadata.uid for one in vmi.metadata.owner_references):
        return vm_world.Ownership.OWN
    return _ownership_of(vm, vmi)


def never_refused(*_unused: Any) -> None:
    return None


_judge, _ownership_of, _judge_node = verdict.judge, vm_world.ownership_of, controller_state.VmiState.judge_node


def _with_meta(vmi: Any, **changes: Any) -> Any:
    return _replaced(vmi, metadata=_replaced(vmi.metadata, **changes))


def _replaced(struct: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(struct, **changes)


def _key(meta: Any) -> Key:
    return Key(meta.namespace, meta.name)
