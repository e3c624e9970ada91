# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may do what with launcher Pods and with Pods that imitate them, as a table. None: the request is accepted."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from kubevirt_api.names import CONTROLLER_ACCOUNT, VCPUS

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.owner import owner_reference
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from tests.controlplane.policies.handler_rows import HANDLER, Row
from tests.controlplane.policies.replay import INSTALL_NAMESPACE, NODES, PODS, VMIS, Facts, Json, Request, Who

CONTROLLER = Who(f"system:serviceaccount:{INSTALL_NAMESPACE}:{CONTROLLER_ACCOUNT}")
EDITOR = Who("erin", groups=("system:authenticated",))
"""A user with Kubernetes' ClusterRole edit in the namespace of the VMIs."""
ROOT = Who("root").unbound
KUBELET = Who("system:node:node-1", groups=("system:nodes", "system:authenticated"))
SCHEDULER = Who("system:kube-scheduler", groups=("system:authenticated",))


def manager(account: str) -> Who:
    """A controller of the controller manager, with its own account."""
    return Who(f"system:serviceaccount:kube-system:{account}")


COLLECTOR = manager("generic-garbage-collector")
LAUNCHER, UNPLACED, PLAIN = f"{PODS}/launcher", f"{PODS}/unplaced", f"{PODS}/plain"
PLACED_PLAIN = f"{PODS}/placed"
"""A Pod on the kubelet's node with a label of ours that does not make it a launcher."""


def launcher(facts: Facts, name: str) -> Json:
    """Build the Pod that virt-controller makes for the running VMI."""
    vmi, settings = decode_vmi(facts[f"{VMIS}/running"]), KubeVirtConfiguration()
    pod = build_launcher_pod(vmi, attempt=1, image="registry.example/virt-launcher:1", configuration=settings)
    pod["metadata"]["name"] = name
    return pod


def plain(name: str, **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "main", "image": "registry.example/plain:1"}]},
    }


def owner(facts: Facts, **changed: Any) -> Json:
    return {**owner_reference(decode_vmi(facts[f"{VMIS}/running"])), **changed}


def owned(name: str, **changed: Any) -> Callable[[Facts], Json]:
    return lambda facts: plain(name, ownerReferences=[owner(facts, **changed)])


def owners(**changed: Any) -> Callable[[Facts], Json]:
    return lambda facts: {"metadata": {"ownerReferences": [owner(facts, **changed)]}}


def another_owner(facts: Facts) -> Json:
    more = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}
    return {"metadata": {"ownerReferences": [owner(facts), more]}}


def mirror(facts: Facts) -> Json:
    """Return the mirror Pod of a static Pod, as the kubelet makes it."""
    node = facts[f"{NODES}/node-1"]["metadata"]
    reference = {"apiVersion": "v1", "kind": "Node", "name": node["name"], "uid": node["uid"], "controller": True}
    pod = plain(
        "static-node-1",
        annotations={"kubernetes.io/config.mirror": "1"},
        labels={"kubevirt.io": "virt-launcher"},
        ownerReferences=[reference],
    )
    return {**pod, "spec": {**pod["spec"], "nodeName": "node-1"}}


def image(facts: Facts) -> Json:
    pod = deepcopy(facts[LAUNCHER])
    pod["spec"]["containers"][0]["image"] = "evil.example/launcher:1"
    return {"spec": {"containers": pod["spec"]["containers"]}}


def resources(facts: Facts) -> Json:
    (container,) = facts[LAUNCHER]["spec"]["containers"]
    return {"spec": {"containers": [{"name": container["name"], "resources": {"requests": {"cpu": "1m"}}}]}}


def asking(*limits: dict[str, str]) -> Json:
    """Return a Pod whose containers have these limits."""
    containers = [
        {"name": f"c{number}", "image": "x", "resources": {"limits": limit}} for number, limit in enumerate(limits)
    ]
    return {**plain("devices"), "spec": {"containers": containers}}


def claim(facts: Facts) -> Json:
    uid = facts[f"{VMIS}/running"]["metadata"]["uid"]
    meta = {"labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": uid}, **owners()(facts)["metadata"]}
    return {"metadata": {**meta, "resourceVersion": facts[PLAIN]["metadata"]["resourceVersion"]}}


def ephemeral() -> Json:
    return {"spec": {"ephemeralContainers": [{"name": "debug", "image": "registry.example/debug:1"}]}}


def eviction(name: str) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


def binding(name: str, **metadata: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "target": {"kind": "Node", "name": "node-1"},
    }


def row(who: Who, verb: str, path: str, body: Json | Callable[[Facts], Json] | None, words: str | None) -> Row:
    return Request(who, verb, path, body), words


def labels(who: Who, path: str, words: str | None, **changed: str | None) -> Row:
    names = {"role": "kubevirt.io", "made_by": "kubevirt.io/created-by", "vmi": "vmi.kubevirt.io/id"}
    names |= {"vm": "vm.kubevirt.io/name"}
    wanted = {names.get(key, key): value for key, value in changed.items()}
    return row(who, "PATCH", path, {"metadata": {"labels": wanted}}, words)


def note(who: Who, path: str, value: str | None, words: str | None, *, name: str = "kubevirt.io/domain") -> Row:
    return row(who, "PATCH", path, {"metadata": {"annotations": {name: value}}}, words)


MAKES = "only virt-controller makes Pods with the label kubevirt.io=virt-launcher"
LABELS, NOTES = "only virt-controller changes the label ", "only virt-controller changes the annotation "
KVM, TUN = "devices.kubevirt.io/kvm", "devices.kubevirt.io/tun"
DEVICES = "may have one device of each devices.kubevirt.io, in one container"
OWNERS, WITHIN = "only virt-controller changes the owners", "neither resized nor given ephemeral containers"
READY = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
PLACED = {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}
PLAN = "kubevirt.io/launch-plan"
NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
LOOKS = {"kubevirt.io": "virt-launcher"}
REPLICAS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "1", "controller": True}

POD_ROWS: dict[str, Row] = {
    # The control plane itself.
    "virt-controller makes a launcher": row(CONTROLLER, "POST", PODS, lambda facts: launcher(facts, "next"), None),
    "virt-controller claims what lost its label and owner": row(CONTROLLER, "PATCH", PLAIN, claim, None),
    "virt-controller deletes a launcher": row(CONTROLLER, "DELETE", LAUNCHER, None, None),
    "a captured virt-handler relabels": labels(HANDLER.unbound, LAUNCHER, LABELS + "kubevirt.io", role=None),
    "a captured virt-handler makes one": row(
        HANDLER.unbound, "POST", PODS, lambda facts: launcher(facts, "next"), MAKES
    ),
    # A tenant makes a launcher.
    "a tenant's plain Pod": row(EDITOR, "POST", PODS, plain("p", labels={"app": "x", "kubevirt.io": "x"}), None),
    "a tenant's Pod that goes with a VMI": row(EDITOR, "POST", PODS, owned("p", controller=None), None),
    "a tenant's Pod of another kind's controller": row(
        EDITOR, "POST", PODS, plain("p", ownerReferences=[REPLICAS]), None
    ),
    "a tenant's Pod of another group's machine": row(
        EDITOR, "POST", PODS, owned("p", apiVersion="example.com/v1"), None
    ),
    "a tenant's Pod of another kind of our group": row(EDITOR, "POST", PODS, owned("p", kind="VirtualMachine"), None),
    "a launcher copied": row(EDITOR, "POST", PODS, lambda facts: launcher(facts, "next"), MAKES),
    "the label": row(EDITOR, "POST", PODS, plain("p", labels=LOOKS), MAKES),
    "the label by which it says whose it is": row(
        EDITOR, "POST", PODS, plain("p", labels={"kubevirt.io/created-by": "1"}), MAKES
    ),
    "the owner": row(EDITOR, "POST", PODS, owned("p"), MAKES),
    "the owner, by the old version's name": row(
        EDITOR, "POST", PODS, owned("p", apiVersion="kubevirt.io/v1alpha3"), MAKES
    ),
    "the label, by a name from the server": row(
        EDITOR, "POST", PODS, {**plain(""), "metadata": {"generateName": "p-", "labels": LOOKS}}, MAKES
    ),
    "the label, by a ReplicaSet": row(
        manager("replicaset-controller"), "POST", PODS, plain("p", labels=LOOKS, ownerReferences=[REPLICAS]), MAKES
    ),
    "the label, by a kubelet": row(KUBELET, "POST", PODS, mirror, MAKES),
    "the label, by whoever may do anything": row(ROOT, "POST", PODS, plain("p", labels=LOOKS), MAKES),
    # A tenant requests devices that launchers share.
    "a Pod with a device of each kind": row(EDITOR, "POST", PODS, asking({KVM: "1", TUN: "1"}), None),
    "a Pod with another's devices": row(EDITOR, "POST", PODS, asking({"example.com/gpu": "4"}), None),
    "a Pod with all devices": row(EDITOR, "POST", PODS, asking({TUN: "1k"}), DEVICES),
    "a Pod with two devices": row(EDITOR, "POST", PODS, asking({KVM: "1", TUN: "2"}), DEVICES),
    "a Pod with a device in each container": row(EDITOR, "POST", PODS, asking({TUN: "1"}, {TUN: "1"}), DEVICES),
    # A tenant turns a Pod into a launcher.
    "a plain Pod's label": labels(EDITOR, PLAIN, None, app="y"),
    "a plain Pod's owner": row(EDITOR, "PATCH", PLAIN, owners(controller=None), None),
    "a plain Pod's ephemeral container": row(ROOT, "STRATEGIC", f"{PLAIN}/ephemeralcontainers", ephemeral(), None),
    "a plain Pod is given the label": labels(EDITOR, PLAIN, LABELS + "kubevirt.io", role="virt-launcher"),
    "a plain Pod says whose it is": labels(EDITOR, PLAIN, LABELS + "kubevirt.io/created-by", made_by="1"),
    "a plain Pod is given the owner": row(EDITOR, "PATCH", PLAIN, owners(), OWNERS),
    "a plain Pod is given the label with its status": labels(
        ROOT, f"{PLAIN}/status", LABELS + "kubevirt.io", role="virt-launcher"
    ),
    # A tenant changes a launcher.
    "a launcher's own label": labels(EDITOR, LAUNCHER, None, app="y"),
    "a launcher's label that only looks like ours": labels(EDITOR, LAUNCHER, None, **{"x.kubevirt.io/y": "z"}),
    "a launcher's own annotation": row(EDITOR, "PATCH", LAUNCHER, {"metadata": {"annotations": {"a": "b"}}}, None),
    "a launcher loses its label": labels(EDITOR, LAUNCHER, LABELS + "kubevirt.io", role=None),
    "a launcher's label changed": labels(EDITOR, LAUNCHER, LABELS + "kubevirt.io", role="virt-handler"),
    "a launcher loses whose it is": labels(EDITOR, LAUNCHER, LABELS + "kubevirt.io/created-by", made_by=None),
    "a launcher is said to be another's": labels(EDITOR, LAUNCHER, LABELS + "kubevirt.io/created-by", made_by="1"),
    "a launcher loses its VMI's name": labels(EDITOR, LAUNCHER, LABELS + "vmi.kubevirt.io/id", vmi=None),
    "a launcher is given another VM's name": labels(EDITOR, LAUNCHER, LABELS + "vm.kubevirt.io/name", vm="x"),
    "a launcher's label, with its status": labels(ROOT, f"{LAUNCHER}/status", LABELS + "kubevirt.io", role=None),
    "a launcher's label, by whoever may do anything": labels(ROOT, LAUNCHER, LABELS + "kubevirt.io", role=None),
    "a launcher loses its domain's name": note(EDITOR, LAUNCHER, None, NOTES + "kubevirt.io/domain"),
    "a launcher is given another domain's name": note(EDITOR, LAUNCHER, "x", NOTES + "kubevirt.io/domain"),
    "a launcher is said to be made for more CPUs": note(EDITOR, LAUNCHER, "255", NOTES + VCPUS, name=VCPUS),
    "a launcher says no more for how many CPUs it was made": note(EDITOR, LAUNCHER, None, NOTES + VCPUS, name=VCPUS),
    "a launcher's CPUs, by its kubelet": note(KUBELET, f"{LAUNCHER}/status", "255", NOTES + VCPUS, name=VCPUS),
    "a launcher is given another plan": note(EDITOR, LAUNCHER, "{}", NOTES + PLAN, name=PLAN),
    "a launcher's annotation, by its kubelet": note(KUBELET, f"{LAUNCHER}/status", "x", NOTES + "kubevirt.io/domain"),
    "a launcher loses its owner": row(EDITOR, "PATCH", LAUNCHER, {"metadata": {"ownerReferences": None}}, OWNERS),
    "a launcher's owner controls it no more": row(EDITOR, "PATCH", LAUNCHER, owners(controller=False), OWNERS),
    "a launcher is another VMI's": row(EDITOR, "PATCH", LAUNCHER, owners(uid="1"), OWNERS),
    "a launcher has one more owner": row(EDITOR, "PATCH", LAUNCHER, another_owner, OWNERS),
    "a launcher loses all that makes it one": row(
        EDITOR, "PATCH", LAUNCHER, {"metadata": {"labels": None, "ownerReferences": None}}, LABELS
    ),
    "a launcher's image": row(EDITOR, "PATCH", LAUNCHER, image, "containers of a launcher Pod cannot be changed"),
    "a launcher's ephemeral container": row(ROOT, "STRATEGIC", f"{LAUNCHER}/ephemeralcontainers", ephemeral(), WITHIN),
    "a launcher resized": row(ROOT, "STRATEGIC", f"{LAUNCHER}/resize", resources, WITHIN),
    "a launcher deleted": row(EDITOR, "DELETE", LAUNCHER, None, None),
    "a launcher deleted by force": row(EDITOR, "DELETE", LAUNCHER, NOW, None),
    "a launcher evicted": row(EDITOR, "POST", f"{LAUNCHER}/eviction", eviction("launcher"), None),
    # Kubernetes' own controllers.
    "the scheduler places a launcher": row(SCHEDULER, "POST", f"{UNPLACED}/binding", binding("unplaced"), None),
    "the scheduler cannot place a launcher": row(SCHEDULER, "STRATEGIC", f"{UNPLACED}/status", PLACED, None),
    "the kubelet says how a launcher is": row(KUBELET, "STRATEGIC", f"{LAUNCHER}/status", READY, None),
    "the kubelet lets a launcher go": row(KUBELET, "DELETE", LAUNCHER, NOW, None),
    "the node's controller says that a launcher is not ready": row(
        manager("node-controller"), "STRATEGIC", f"{LAUNCHER}/status", READY, None
    ),
    "the node's controller deletes a launcher": row(manager("node-controller"), "DELETE", LAUNCHER, None, None),
    "the Pods' collector fails a launcher of a node that is gone": row(
        manager("pod-garbage-collector"), "STRATEGIC", f"{LAUNCHER}/status", {"status": {"phase": "Failed"}}, None
    ),
    "the Pods' collector deletes a launcher by force": row(
        manager("pod-garbage-collector"), "DELETE", LAUNCHER, NOW, None
    ),
    "the namespace's controller deletes all Pods": row(manager("namespace-controller"), "DELETE", PODS, None, None),
    "the garbage collector orphans a launcher": row(
        COLLECTOR, "PATCH", LAUNCHER, {"metadata": {"ownerReferences": None}}, None
    ),
    "the garbage collector waits for a launcher no more": row(
        COLLECTOR, "PATCH", LAUNCHER, owners(blockOwnerDeletion=False), None
    ),
    "a controller manager with one account orphans a launcher": row(
        Who("system:kube-controller-manager").unbound,
        "PATCH",
        LAUNCHER,
        {"metadata": {"ownerReferences": None}},
        None,
    ),
    "the garbage collector deletes a launcher": row(COLLECTOR, "DELETE", LAUNCHER, None, None),
    "the garbage collector gives a launcher away": row(COLLECTOR, "PATCH", LAUNCHER, owners(uid="1"), OWNERS),
    "the garbage collector makes an owner of a controller": row(
        COLLECTOR, "PATCH", LAUNCHER, owners(controller=False), OWNERS
    ),
    "the garbage collector relabels a launcher": labels(COLLECTOR, LAUNCHER, LABELS + "kubevirt.io", role=None),
    "another controller orphans a launcher": row(
        manager("replicaset-controller"), "PATCH", LAUNCHER, {"metadata": {"ownerReferences": None}}, OWNERS
    ),
}
