# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small builders of VMs, VMIs, Pods and worlds: a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

import msgspec
from kubevirt_api.condition_types import UNPAUSED
from kubevirt_api.names import KVM_DEVICE, LAUNCHER_ROLE, NODE_NAME, ROLE, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.objects.decode import decode, decode_vm, decode_vmi
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import World as VmWorld
from controlplane.virt_controller.vmi.world import World as VmiWorld
from controlplane.virt_controller.vmi.world import pod_name

NOW = 1_767_225_600.0
STAMP = "2026-01-01T00:00:00Z"
VM_UID, VMI_UID, POD_UID = ("aaaaaaaa-0000", "bbbbbbbb-0000", "cccccccc-0000")
Json = dict[str, Any]


def a_vm(
    strategy: str = "Always", *, deleting: bool = False, finalizers: tuple[str, ...] = (VM_FINALIZER,), **status: Any
) -> VirtualMachine:
    meta: Json = {"name": "web", "namespace": "default", "uid": VM_UID, "generation": 3, "resourceVersion": "10"}
    meta["finalizers"] = finalizers
    if deleting:
        meta["deletionTimestamp"] = STAMP
    spec = {"runStrategy": strategy, "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}}}}
    return decode_vm({"metadata": meta, "spec": spec, "status": status})


def a_vmi(
    phase: str = "",
    *,
    owner: str | None = VM_UID,
    deleting: bool = False,
    ran: bool = False,
    node: str | None = None,
    finalizers: tuple[str, ...] = (VMI_FINALIZER,),
    spec: Json | None = None,
    **status: Any,
) -> VirtualMachineInstance:
    meta: Json = {"name": "web", "namespace": "default", "uid": VMI_UID, "resourceVersion": "20"}
    meta["finalizers"] = finalizers
    if owner is not None:
        reference = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": owner}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    if deleting:
        meta["deletionTimestamp"] = STAMP
    if node is not None:
        meta["labels"] = {NODE_NAME: node}
    if phase:
        status["phase"] = phase
    if ran:
        status["phaseTransitionTimestamps"] = [{"phase": "Running", "phaseTransitionTimestamp": STAMP}]
    return decode_vmi(
        {"metadata": meta, "spec": {"domain": {"memory": {"guest": "64Mi"}}, **(spec or {})}, "status": status}
    )


def a_condition(kind: str, status: str, reason: str = "", message: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def a_pod(
    phase: str = "Pending",
    *,
    node: str = "",
    compute: Json | None = None,
    deleting: bool = False,
    attempt: int = 1,
    uid: str = POD_UID,
    labels: Json | None = None,
    owner_name: str | None = "web",
    conditions: tuple[Json, ...] = (),
    has_kvm: bool = False,
    gates: tuple[str, ...] = (),
    annotations: Json | None = None,
    **status: Any,
) -> Pod:
    meta: Json = {"name": pod_name(a_vmi(), attempt), "namespace": "default", "uid": uid}
    meta["labels"] = {ROLE: LAUNCHER_ROLE} if labels is None else labels
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "controller": True}
    if annotations:
        meta["annotations"] = annotations
    if owner_name is not None:
        meta["ownerReferences"] = [{**owner, "name": owner_name, "uid": VMI_UID}]
    if deleting:
        meta["deletionTimestamp"] = STAMP
    status = {"phase": phase, "conditions": conditions, **status}
    if compute is not None:
        status["containerStatuses"] = [{"name": "compute", "state": compute}]
    limits = {KVM_DEVICE: "1"} if has_kvm else {}
    spec: Json = {"containers": [{"name": "compute", "image": "launcher:1", "resources": {"limits": limits}}]}
    if node:
        spec["nodeName"] = node
    if gates:
        spec["readinessGates"] = [{"conditionType": gate} for gate in gates]
    return decode({"metadata": meta, "spec": spec, "status": status}, Pod)


UP = {"running": {"startedAt": STAMP}}


def a_running_pod(**options: Any) -> Pod:
    ready = (a_condition("Ready", "True"),)
    return a_pod("Running", node="node-1", compute=UP, **{"conditions": ready, **options})


def a_migrated_pod(*conditions: Json, **options: Any) -> Pod:
    """The Pod that a migration targets, with virt-controller's records about its guest."""
    waits = a_condition("Ready", "False", "ReadinessGatesNotReady", "the status of pod readiness gate is not True")
    return a_running_pod(**{"gates": (UNPAUSED,), "conditions": (waits, *conditions), **options})


def vm_world(vm: VirtualMachine, vmi: VirtualMachineInstance | None = None, **facts: Any) -> VmWorld:
    template = msgspec.json.encode(vm.spec.template.spec)
    return VmWorld(vm=vm, vmi=vmi, **{"template": template, "now": NOW, **facts})


def vmi_world(vmi: VirtualMachineInstance, *pods: Pod, **facts: Any) -> VmiWorld:
    return VmiWorld(vmi=vmi, pods=pods, now=NOW, **facts)
