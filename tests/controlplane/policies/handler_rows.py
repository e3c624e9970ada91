# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-handler of node-1 may write, and what a captured one may not, as a table. None: the request is accepted.

RBAC would refuse many of the refused requests first. These are sent with all rights so that the policy refuses them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from kubevirt_api.names import CONTROL_PLANE_IMAGE, HANDLER_ACCOUNT

from controlplane.api.cpu_labels import label_processor
from controlplane.api.objects.decode import decode_vmi, encode
from controlplane.api.objects.lease import lease_name
from controlplane.domain.agent import AgentState, Info, Interface, Interfaces, OsInfo
from controlplane.domain.state import Life, State
from controlplane.engine.patch import merge_patch
from controlplane.links.node.messages import KvmFinding
from controlplane.virt_handler.migration.peer import CERTIFICATE
from controlplane.virt_handler.node import labels as node
from controlplane.virt_handler.vmi.status import derive_status
from tests.controlplane.policies.replay import INSTALL_NAMESPACE, LEASES, NODES, VMIS, Facts, Json, Request, Who
from tests.controlplane.virt_handler.builders import RUNNING, a_launcher, a_pod, a_world, observed, seen

HANDLER = Who(f"system:serviceaccount:{INSTALL_NAMESPACE}:{HANDLER_ACCOUNT}", node="node-1")
CAPTURED = HANDLER.unbound
NOBODYS = Who(HANDLER.user).unbound
"""virt-handler with a token that names no node."""
WHOLE = f"{NODES}/node-1"
MINE, THEIRS = f"{WHOLE}/status", f"{NODES}/node-2/status"
"""Metadata are written through the status subresource, where a body cannot set managedFields."""
WEB, NEW, LOST, OTHERS = (f"{VMIS}/{name}/status" for name in ("running", "scheduled", "unknown", "others"))

Row = tuple[Request, str | None]


def patch(path: str, body: Any, words: str | None, who: Who | None = None) -> Row:
    return Request(who or (HANDLER if words is None else CAPTURED), "PATCH", path, body), words


def metadata(path: str, words: str | None, **changed: Any) -> Row:
    return patch(path, {"metadata": changed}, words)


def status(path: str, words: str | None, **changed: Any) -> Row:
    return patch(path, {"status": changed}, words)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}
ONLY_OURS = "only change labels that begin with kubevirt.io/"
ONLY_NOTES = "only change annotations that begin with kubevirt.io/"
ONLY_META = "may only write labels and annotations of its node, by its status"
NOT_STATUS = "may not change what a node says of itself"
FAR = {"metadata": {"labels": {"kubevirt.io/schedulable": "false"}}}
NO_KVM = KvmFinding(is_usable=False, reason="the node has no /dev/kvm")
LONGEST = bytes(768)
"""The longest certificate that fits."""
ENDPOINT = {
    **node.endpoint_annotations("2001:db8:1111:2222:3333:4444:5555:6666", 65535, LONGEST),
    CERTIFICATE: base64.b64encode(LONGEST).decode(),
    CONTROL_PLANE_IMAGE: f"registry.example.com/virtops/control-plane@sha256:{'0' * 64} sha256:{'0' * 64}",
}

PROCESSOR = {
    "metadata": {
        "labels": label_processor(
            model="EPYC",
            vendor="AMD",
            models=[f"m{number}" for number in range(100)],
            required=[f"r{number}" for number in range(60)],
            features=[f"f{number}" for number in range(200)],
            machines=[f"pc-q35-{number}" for number in range(100)],
        )
    }
}
"""More models, features and boards than libvirt has ever reported for a CPU."""

NODE_ROWS: dict[str, Row] = {
    "it says that it serves": patch(MINE, node.serving_patch(NO_KVM, 0, ENDPOINT), None),
    "it says what its processor has": patch(MINE, PROCESSOR, None),
    "it says of its processor what is no yes": patch(
        MINE, {"metadata": {"labels": {"cpu-model.node.kubevirt.io/EPYC": "false"}}}, ONLY_OURS
    ),
    "it says very much of its processor": metadata(
        MINE, "at most 640", labels={f"cpu-feature.node.kubevirt.io/f{number}": "true" for number in range(641)}
    ),
    "it says that it leaves": patch(MINE, node.leaving_patch(), None),
    "it takes a label of ours off": patch(MINE, {"metadata": {"labels": {"kubevirt.io/kvm-usable": None}}}, None),
    "another node": patch(THEIRS, FAR, 'of node "node-1" may not change node "node-2"'),
    "its node, by a token without a node": patch(MINE, FAR, "names no node", NOBODYS),
    "a taint": patch(WHOLE, {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}, ONLY_META),
    "taints taken off": patch(WHOLE, {"spec": {"taints": None}}, ONLY_META),
    "a label of ours, but not by the status": patch(WHOLE, FAR, ONLY_META),
    "a taint with a status, which is not stored": patch(MINE, {"spec": {"taints": None}}, None),
    "a finalizer": metadata(MINE, "neither finalizers nor owners of a node", finalizers=["evil.example/stay"]),
    "an owner": metadata(MINE, "neither finalizers nor owners of a node", ownerReferences=[OWNER]),
    "a role": patch(MINE, {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, ONLY_OURS),
    "a label that only looks like ours": patch(MINE, {"metadata": {"labels": {"evil-kubevirt.io/x": ""}}}, ONLY_OURS),
    "its quarantine": patch(MINE, {"metadata": {"labels": {"virtops.kubevirt/quarantined": "x"}}}, ONLY_OURS),
    "another's label changed": patch(MINE, {"metadata": {"labels": {"zone": "b"}}}, ONLY_OURS),
    "another's label taken off": patch(MINE, {"metadata": {"labels": {"zone": None}}}, ONLY_OURS),
    "another's annotation": patch(MINE, {"metadata": {"annotations": {"evil.example/x": ""}}}, ONLY_NOTES),
    "another's annotation changed": patch(MINE, {"metadata": {"annotations": {"note": "b"}}}, ONLY_NOTES),
    "another's annotation taken off": patch(MINE, {"metadata": {"annotations": {"note": None}}}, ONLY_NOTES),
    "a very long annotation": patch(
        MINE, {"metadata": {"annotations": {"kubevirt.io/heartbeat": "x" * 1025}}}, "at most 1024 characters"
    ),
    "very many labels": metadata(MINE, "at most 64", labels={f"kubevirt.io/{number}": "" for number in range(65)}),
    "very many annotations": metadata(
        MINE, "at most 64", annotations={f"kubevirt.io/{number}": "" for number in range(65)}
    ),
    "its node's status": patch(MINE, {"status": {"capacity": {"cpu": "999"}}}, NOT_STATUS),
    "its node's status taken off": patch(MINE, {"status": None}, NOT_STATUS),
    "a node made": (
        Request(
            Who(HANDLER.user, "node-9").unbound,
            "POST",
            NODES,
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-9"}},
        ),
        ONLY_META,
    ),
    "its node deleted": (Request(CAPTURED, "DELETE", WHOLE), ONLY_META),
}


def lease(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": "pod", "leaseDurationSeconds": 40, **spec},
    }


def first_lease(**metadata: Any) -> Json:
    return {**lease(""), "metadata": {"name": "virt-handler-node-3", **metadata}}


OWN, LEADERS = f"{LEASES}/{lease_name('node-1')}", f"{LEASES}/virt-controller"
BEAT = {"spec": {"holderIdentity": "pod", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}}
ONLY_OWN = f"may only write the Lease {INSTALL_NAMESPACE}/virt-handler-node-1"
NO_NOTES = "nothing but the times and the holder of its Lease"

LEASE_ROWS: dict[str, Row] = {
    "its heartbeat": patch(OWN, BEAT, None),
    "its heartbeat after another wrote one": patch(OWN, {"spec": {**BEAT["spec"], "holderIdentity": "next"}}, None),
    "its first heartbeat": (
        Request(Who(HANDLER.user, "node-3"), "POST", LEASES, first_lease(labels={"kubevirt.io": "virt-handler"})),
        None,
    ),
    "its first Lease with another's label": (
        Request(Who(HANDLER.user, "node-3"), "POST", LEASES, first_lease(labels={"kubevirt.io": "virt-api"})),
        NO_NOTES,
    ),
    "its first Lease with an annotation": (
        Request(Who(HANDLER.user, "node-3"), "POST", LEASES, first_lease(annotations={"a": "x" * 200_000})),
        NO_NOTES,
    ),
    "its Lease with very many labels": metadata(OWN, NO_NOTES, labels={f"l{number}": "" for number in range(10_000)}),
    "its Lease with a long annotation": metadata(OWN, NO_NOTES, annotations={"a": "x" * 200_000}),
    "the leader's Lease": patch(LEADERS, BEAT, ONLY_OWN),
    "the leader's Lease, made": (Request(HANDLER, "POST", LEASES, lease("virt-controller-2")), ONLY_OWN),
    "another node's Lease": patch(f"{LEASES}/virt-handler-node-2", BEAT, ONLY_OWN),
    "a Lease with a name by the server": (
        Request(HANDLER, "POST", LEASES, {**lease(""), "metadata": {"generateName": "virt-handler-node-1"}}),
        ONLY_OWN,
    ),
    "a Lease of its name elsewhere": (
        Request(CAPTURED, "POST", LEASES.replace(f"/{INSTALL_NAMESPACE}/", "/default/"), lease("virt-handler-node-1")),
        ONLY_OWN,
    ),
    "its Lease, by a token without a node": patch(OWN, BEAT, "names no node", NOBODYS),
    "its Lease for 68 years": patch(OWN, {"spec": {"leaseDurationSeconds": 2147483647}}, "from 1 to 120 seconds"),
    "its Lease for two minutes and a second": patch(OWN, {"spec": {"leaseDurationSeconds": 121}}, "from 1 to 120"),
    "its Lease without an end": patch(OWN, {"spec": {"leaseDurationSeconds": None}}, "from 1 to 120 seconds"),
    "its Lease with a book for a holder": patch(OWN, {"spec": {"holderIdentity": "x" * 254}}, "holderIdentity"),
    "its Lease with a finalizer": metadata(OWN, "neither finalizers nor owners", finalizers=["evil.example/stay"]),
    "its Lease with an owner": metadata(OWN, "neither finalizers nor owners", ownerReferences=[OWNER]),
    "its first Lease with a finalizer": (
        Request(Who(HANDLER.user, "node-3"), "POST", LEASES, first_lease(finalizers=["evil.example/stay"])),
        "neither finalizers nor owners",
    ),
    "its Lease deleted": (Request(CAPTURED, "DELETE", OWN), "may not delete a Lease"),
}


def written(path: str, state: State, agent: AgentState | None = None) -> Callable[[Facts], Json]:
    """Return the status that virt-handler writes for this observed state and this state of the agent."""

    def body(facts: Facts) -> Json:
        vmi = decode_vmi(facts[path.removesuffix("/status")])
        (pod_uid,), uid = vmi.status.active_pods, vmi.metadata.uid
        status = seen(state, observed=observed(uid=uid, pod_uid=pod_uid), agent=agent)
        derived = derive_status(a_world(vmi, a_launcher(status, a_pod(pod_uid, owner_uid=uid))), None)
        assert derived is not None
        return {"status": merge_patch(encode(vmi.status), encode(derived))}

    return body


FULL_REPORT = AgentState(
    is_connected=True,
    info=Info("1.0", ("guest-ping",)),
    os=OsInfo(*("\u20ac" * 128 for _unused in range(8))),
    interfaces=Interfaces(
        tuple(Interface("\u20ac" * 64, "02:00:00:00:00:01", ("10.0.0.1",) * 8) for _unused in range(64)), is_cut=True
    ),
)
"""The largest possible report of an agent."""


def condition(kind: str, value: str = "False", **more: str) -> Json:
    return {"type": kind, "status": value, **more}


STARTED = {"phase": "Scheduled", "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"}
READY, CUSTOM = condition("Ready", "True"), condition("Custom", "True")
"""The conditions of the sample VMIs."""
THEIR_FIELD = "virt-controller's"
ONLY_KINDS = "conditions virt-handler may only change Synchronized"
ONLY_STATUS = "may only write the status of a VMI"
NOT_MINE = "does not run on node"
NOT_NOW = "is not virt-handler's to write"

VMI_ROWS: dict[str, Row] = {
    "a guest was seen running": patch(NEW, written(NEW, RUNNING), None),
    "a guest was found again": patch(LOST, written(LOST, RUNNING), None),
    "the largest report of an agent": patch(WEB, written(WEB, RUNNING, FULL_REPORT), None),
    "a guest's agent is gone": patch(WEB, written(WEB, State(Life.PAUSED, "user"), AgentState()), None),
    "a guest was paused": patch(WEB, written(WEB, State(Life.PAUSED, "user")), None),
    "a guest shut down": patch(WEB, written(WEB, State(Life.SHUT_OFF, "shutdown")), None),
    "a guest crashed": patch(WEB, written(WEB, State(Life.CRASHED, "crashed")), None),
    "what its guest tells": status(
        WEB,
        None,
        guestOSInfo={"name": "CirrOS"},
        fsFreezeStatus="frozen",
        volumeStatus=[{"name": "root", "target": "vda", "size": 1}],
        interfaces=[{"name": "default", "ipAddress": "10.0.0.1"}],
        machine={"type": "pc-q35-9.2"},
        memory={"guestCurrent": "64Mi", "guestRequested": "128Mi"},
        currentCPUTopology={"cores": 1, "sockets": 2, "threads": 1},
    ),
    "by the old version's name": patch(
        WEB.replace("/v1/", "/v1alpha3/"), {"status": {"guestOSInfo": {"name": "CirrOS"}}}, None
    ),
    "metadata with a status, which is not stored": patch(
        WEB, {"metadata": {"labels": {"x": "y"}, "finalizers": ["a.b/c"]}, "status": {"machine": None}}, None
    ),
    "another node's": status(OTHERS, NOT_MINE, guestOSInfo={"name": "x"}),
    "another node's, and makes it its own": status(OTHERS, NOT_MINE, nodeName="node-1"),
    "one that no node has": status(f"{VMIS}/nowhere/status", NOT_MINE, phase="Failed"),
    "its own, by a token without a node": patch(WEB, {"status": {"machine": None}}, "names no node", NOBODYS),
    "nobody's, by a token without a node": patch(
        f"{VMIS}/nowhere/status", {"status": {"machine": None}}, "names no node", NOBODYS
    ),
    "one whose run is over": status(f"{VMIS}/failed/status", NOT_NOW, guestOSInfo={"name": "x"}),
    "no phase": status(WEB, 'from phase "Running" to ""', phase=None),
    "no status": patch(WEB, {"status": None}, 'from phase "Running" to ""'),
    "epoch": status(WEB, f"status.epoch of a VMI: it is {THEIR_FIELD}", epoch=2),
    "epoch, by the old version's name": patch(
        WEB.replace("/v1/", "/v1alpha3/"), {"status": {"epoch": 2}}, f"status.epoch of a VMI: it is {THEIR_FIELD}"
    ),
    "no epoch": status(WEB, "status.epoch", epoch=None),
    "attempt": status(WEB, "status.attempt", attempt=7),
    "another Pod": status(WEB, "status.activePods", activePods={"1": "node-1"}),
    "that it failed elsewhere": status(
        WEB, "status.failedAttempts", failedAttempts=[{"attempt": 1, "nodeName": "node-2", "nodeFault": True}]
    ),
    "its node's name": status(WEB, "status.nodeName", nodeName="node-2"),
    "where it is to go": status(WEB, "status.evacuationNodeName", evacuationNodeName="node-2"),
    "how it migrates": status(WEB, "status.migrationMethod", migrationMethod="LiveMigration"),
    "by whom it runs": status(WEB, "status.runtimeUser", runtimeUser=0),
    "two fields at once": status(WEB, "status.attempt", attempt=7, epoch=7),
    "with what memory it began": status(WEB, "only change guestCurrent", memory={"guestAtBoot": "1Ti"}),
    "no memory": status(WEB, "only change guestCurrent", memory=None),
    "a reason without a phase": status(WEB, "status.reason with a phase", reason="GuestCrashed"),
    "a past rewritten": status(
        NEW, "only add the phase", phase="Running", phaseTransitionTimestamps=[{"phase": "Running"}]
    ),
    "a past without a phase": status(
        WEB, "only add the phase", phaseTransitionTimestamps=[STARTED, {"phase": "Running"}]
    ),
    "a past that did not happen": status(
        NEW, "only add the phase", phase="Running", phaseTransitionTimestamps=[STARTED, {"phase": "Failed"}]
    ),
    "two pasts at once": status(
        NEW,
        "only add the phase",
        phase="Running",
        phaseTransitionTimestamps=[STARTED, {"phase": "Unknown"}, {"phase": "Running"}],
    ),
    "a word of the scheduler's": status(WEB, ONLY_KINDS, conditions=[READY, CUSTOM, condition("PodScheduled")]),
    "another's condition changed": status(WEB, ONLY_KINDS, conditions=[READY, {**CUSTOM, "status": "False"}]),
    "another's condition dropped": status(WEB, ONLY_KINDS, conditions=[READY]),
    "Ready without a phase": status(WEB, "and Ready with a phase", conditions=[condition("Ready"), CUSTOM]),
    "two conditions of a type": status(
        WEB,
        "at most one condition of each type",
        conditions=[READY, CUSTOM, condition("Paused", "True"), condition("Paused")],
    ),
    "a finalizer": metadata(f"{VMIS}/running", ONLY_STATUS, finalizers=["evil.example/stay"]),
    "an owner": metadata(f"{VMIS}/running", ONLY_STATUS, ownerReferences=[OWNER]),
    "a spec": patch(f"{VMIS}/running", {"spec": {"hostname": "evil"}}, ONLY_STATUS),
    "one made": (
        Request(
            CAPTURED,
            "POST",
            VMIS,
            lambda facts: {**facts[f"{VMIS}/running"], "metadata": {"name": "made"}},
        ),
        ONLY_STATUS,
    ),
    "one deleted": (Request(CAPTURED, "DELETE", f"{VMIS}/running"), ONLY_STATUS),
    # The CRD has these limits.
    "epoch beyond its bounds": status(WEB, "less than or equal to 10000", epoch=2_000_000_000),
    "very many conditions": status(
        WEB, "Too many", conditions=[READY, CUSTOM, *(condition(f"Paused{number}") for number in range(31))]
    ),
    "very many interfaces": status(WEB, "Too many", interfaces=[{"name": "x"}] * 65),
    "very many volumes": status(WEB, "Too many", volumeStatus=[{"name": "x"}] * 257),
    "an interface with very many addresses": status(WEB, "Too many", interfaces=[{"ipAddresses": ["x"] * 33}]),
    "a guest of very many words": status(WEB, "Too long", guestOSInfo={"prettyName": "x" * 257}),
    "a very long quantity": status(WEB, "Too long", memory={"guestCurrent": "1" * 65}),
}
