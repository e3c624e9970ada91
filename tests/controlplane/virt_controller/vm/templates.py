# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VM whose template has changed since its running instance was created."""

from __future__ import annotations

from typing import Any

import msgspec

from controlplane.api.admission.defaults import default_instance
from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.virt_controller.vm.restart_required import restart_required
from controlplane.virt_controller.vm.vmi_manifest import build_vmi
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import VM_UID, a_vm, vm_world

Json = dict[str, Any]
CONFIGURATION = KubeVirtConfiguration()
STAGED = KubeVirtConfiguration(vm_rollout_strategy="Stage")
GUEST: Json = {"domain": {"memory": {"guest": "64Mi"}}}
MOVABLE = {"type": "LiveMigratable", "status": "True"}
MOVING = {"migrationUid": "m", "targetNode": "node-2", "targetPodUID": "p", "sourceNode": "node-1", "sourcePodUID": "q"}


def a_machine(template: Json) -> Any:
    plain = msgspec.to_builtins(a_vm(), str_keys=True)
    meta = {**plain["metadata"], "name": "web", "namespace": "default", "uid": VM_UID, "generation": 3}
    spec = {"runStrategy": "Always", "template": {"spec": template}}
    return decode_vm({"metadata": {**meta, "finalizers": list(a_vm().metadata.finalizers)}, "spec": spec})


def a_run(
    was: Json,
    *,
    made_with: KubeVirtConfiguration = CONFIGURATION,
    annotations: Json | None = None,
    spec: Json | None = None,
    **status: Any,
) -> Json:
    """Build the instance of a template as the controller does; it is running. spec: changes of the instance since."""
    made = default_instance(build_vmi(a_machine(was), msgspec.json.encode(was)), made_with, seed=VM_UID)
    made["metadata"].update(uid="run-1", resourceVersion="20")
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": VM_UID, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    made["metadata"]["annotations"].update(annotations or {})
    made["spec"].update(spec or {})
    cpu = made["spec"]["domain"]["cpu"]
    has = {part: cpu.get(part) or 1 for part in ("cores", "sockets", "threads")}
    made["status"] = {"phase": "Running", "conditions": [MOVABLE], "currentCPUTopology": has, **status}
    return made


def changed(was: Json, now: Json, *, configuration: KubeVirtConfiguration = CONFIGURATION, **run: Any) -> World:
    """The template was changed. configuration: the present one."""
    own = decode_vmi(a_run(was, **run))
    return vm_world(a_machine(now), own, template=msgspec.json.encode(now), configuration=configuration)


def restart_message(world: World) -> str:
    condition = restart_required(world)
    assert condition is not None
    return condition.message


def of_domain(**fields: Any) -> Json:
    return {"domain": {**GUEST["domain"], **fields}}
