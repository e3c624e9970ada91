# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of the policy tests: our CRDs, roles, policies and sample objects."""

from __future__ import annotations

import time
from collections.abc import Callable

from controlplane.api.objects.phase import OWNERS
from controlplane.api.registry import KINDS
from controlplane.api.schema.crds import crd
from tests.controlplane.api.test_crds_served import CRDS
from tests.controlplane.policies.controller_rows import CONTROLLER_ROWS, SERVING_ROWS
from tests.controlplane.policies.event_rows import EVENT_ROWS, EVENTS, TO_BE_CHANGED, an_event
from tests.controlplane.policies.handler_rows import CUSTOM, LEASE_ROWS, NODE_ROWS, READY, STARTED, VMI_ROWS, lease
from tests.controlplane.policies.manager_rows import LABEL_APPLIED, OTHERS_LEASE
from tests.controlplane.policies.migration_rows import MOVING
from tests.controlplane.policies.part_rows import PART_ROWS
from tests.controlplane.policies.placing_rows import PLACING_ROWS
from tests.controlplane.policies.pod_rows import (
    CONTROLLER,
    LAUNCHER,
    PLACED_PLAIN,
    PLAIN,
    POD_ROWS,
    ROOT,
    UNPLACED,
    launcher,
    plain,
)
from tests.controlplane.policies.replay import (
    INSTALL_NAMESPACE,
    LEASES,
    NODES,
    PODS,
    VMIS,
    Facts,
    Json,
    Replay,
    Request,
)
from tests.controlplane.virt_api.test_manifests import render

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHERE = {
    "ServiceAccount": f"/api/v1/namespaces/{INSTALL_NAMESPACE}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "Role": f"{RBAC}/namespaces/{INSTALL_NAMESPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{INSTALL_NAMESPACE}/rolebindings",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}
TAINT = {"key": "example.com/kept", "effect": "NoSchedule"}
ROOM = {"cpu": "8", "memory": "8Gi", "pods": "110", "devices.kubevirt.io/kvm": "8", "devices.kubevirt.io/tun": "8"}
PHASES = {phase or "none": phase for phase in OWNERS}
CANARIES = (
    NODE_ROWS["another node"],
    CONTROLLER_ROWS["machines there"],
    SERVING_ROWS["that it has ended"],
    LEASE_ROWS["the leader's Lease"],
    EVENT_ROWS["as a kubelet"],
    VMI_ROWS["epoch"],
    POD_ROWS["the label"],
    PART_ROWS["a plain Pod says whose it is with its status"],
    PLACING_ROWS["a plain Pod placed as a launcher"],
)
"""A refused request for each policy: the API server enforces a policy a moment after its creation."""
ACCEPTED = (
    NODE_ROWS["it says that it serves"],
    CONTROLLER_ROWS["no machines there"],
    SERVING_ROWS["its guest is there"],
    LEASE_ROWS["its heartbeat"],
    EVENT_ROWS["as virt-handler makes it"],
    VMI_ROWS["what its guest tells"],
    POD_ROWS["a tenant's plain Pod"],
    POD_ROWS["virt-controller makes a launcher"],
)


def wait(what: str, is_so: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def manifest(name: str) -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "domain": {
                "memory": {"guest": "64Mi"},
                "devices": {
                    "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                    "interfaces": [{"name": "default", "masquerade": {}}],
                },
            },
            "networks": [{"name": "default", "pod": {}}],
            "volumes": [{"name": "root", "containerDisk": {"image": "guest:1"}}],
        },
    }


def install(send: Replay) -> None:
    for kind in KINDS:
        send.admin("POST", CRDS, crd(kind))
    send.admin("POST", "/api/v1/namespaces", {"metadata": {"name": INSTALL_NAMESPACE}})
    for template in ("rbac-controller", "rbac-handler", "node-restriction", "launcher-pods"):
        for body in render(f"{template}.yaml.j2"):
            send.admin("POST", WHERE[body["kind"]], body)
    edit = {
        "metadata": {"name": "erin"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "User", "name": "erin", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    send.admin("POST", f"{RBAC}/namespaces/default/rolebindings", edit)


def make_instance(send: Replay, name: str, phase: str, node: str, moving: Json | None = None) -> None:
    status: Json = {
        "phase": phase,
        "attempt": 1,
        "epoch": 1,
        "runtimeUser": 107,
        "conditions": [READY, CUSTOM],
        "phaseTransitionTimestamps": [STARTED],
        "memory": {"guestAtBoot": "64Mi", "guestRequested": "64Mi"},
        **({"nodeName": node, "activePods": {f"pod-of-{name}": node}} if node else {}),
        **({"migrationState": moving} if moving else {}),
    }
    send.admin("POST", VMIS, manifest(name))
    send.admin("PATCH", f"{VMIS}/{name}/status", {"status": status})


def populate(send: Replay) -> None:
    for name in ("node-1", "node-2"):
        marks = {"labels": {"zone": "a", "kubevirt.io/kvm-usable": "true"}, "annotations": {"note": "a"}}
        send.admin("POST", NODES, {"metadata": {"name": name, **marks}, "spec": {"taints": [TAINT]}})
        send.admin("PATCH", f"{NODES}/{name}/status", {"status": {"capacity": ROOM, "allocatable": ROOM}})
    for name, mark in (("quarantined", "20260131T120000Z"), ("held", "maintenance")):
        labels = {"virtops.kubevirt/quarantined": mark}
        send.admin("POST", NODES, {"metadata": {"name": name, "labels": labels}})
    for name in ("virt-controller", "virt-handler-node-1", "virt-handler-node-2"):
        send.admin("POST", LEASES, lease(name))
    assert send(Request(ROOT, "APPLY", OTHERS_LEASE, LABEL_APPLIED, "kubectl"), for_real=True).is_taken
    send.admin("POST", EVENTS, an_event(metadata={"name": TO_BE_CHANGED, "namespace": "default"}))
    for name, phase in PHASES.items():
        make_instance(send, name.lower(), phase, "node-1")
    make_instance(send, "others", "Running", "node-2")
    make_instance(send, "nowhere", "Scheduling", "")
    for name, (node, moving) in MOVING.items():
        make_instance(send, name, "Running", node, moving)


def make_pods(send: Replay) -> None:
    facts = {f"{VMIS}/running": send.admin("GET", f"{VMIS}/running")}
    for name in ("launcher", "unplaced"):
        response = send(Request(CONTROLLER, "POST", PODS, launcher(facts, name)), for_real=True)
        assert response.is_taken, response.message
    send.admin("POST", f"{LAUNCHER}/binding", {"metadata": {"name": "launcher"}, "target": {"name": "node-1"}})
    send.admin("POST", PODS, plain("plain", labels={"app": "x"}))
    send.admin("POST", PODS, plain("waiting"))
    placed = plain("placed", labels={"kubevirt.io": "x"})
    send.admin("POST", PODS, {**placed, "spec": {**placed["spec"], "nodeName": "node-1"}})


def in_force(send: Replay) -> bool:
    facts = read(send)
    return all(words in send(request, facts).message for request, words in CANARIES if words) and all(
        send(request, facts).is_taken for request, _unused in ACCEPTED
    )


def read(send: Replay) -> Facts:
    names = (*(f"{VMIS}/{name.lower()}" for name in PHASES), f"{NODES}/node-1", LAUNCHER, PLAIN, UNPLACED, PLACED_PLAIN)
    return {path: send.admin("GET", path) for path in names}
