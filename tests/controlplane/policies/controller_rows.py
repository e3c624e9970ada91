# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-controller may write to a Node and to a Pod's status, as a table.

The second value of a row is text of the expected refusal. None: the request is accepted.
"""

from __future__ import annotations

from typing import Any

from kubevirt_api.condition_types import UNPAUSED

from tests.controlplane.policies.handler_rows import FAR, MINE, OWNER, WHOLE, Row
from tests.controlplane.policies.pod_rows import CONTROLLER, LAUNCHER, PLAIN
from tests.controlplane.policies.replay import NODES, Facts, Json, Request

CAPTURED = CONTROLLER.unbound
QUARANTINED = "virtops.kubevirt/quarantined"
TIMED, HELD = f"{NODES}/quarantined/status", f"{NODES}/held/status"
ONE_LABEL = "may only set the label kubevirt.io/schedulable of a node"
NOTHING_ELSE = "may change nothing of a node but a label"
ONLY_PATCH = "may only write a label of a node, by its status"


def patch(body: Any, words: str | None, path: str = MINE) -> Row:
    return Request(CONTROLLER if words is None else CAPTURED, "PATCH", path, body), words


def metadata(words: str | None, path: str = MINE, **changed: Any) -> Row:
    return patch({"metadata": changed}, words, path)


CONTROLLER_ROWS: dict[str, Row] = {
    "no machines there": patch(FAR, None),
    "machines there": metadata(ONE_LABEL, labels={"kubevirt.io/schedulable": "true"}),
    "another label of ours": metadata(ONE_LABEL, labels={"kubevirt.io/kvm-usable": "false"}),
    "a label of ours taken off": metadata(ONE_LABEL, labels={"kubevirt.io/kvm-usable": None}),
    "another's label": metadata(ONE_LABEL, labels={"zone": "b"}),
    "quarantined until": metadata(None, labels={QUARANTINED: "20260131T120000Z"}),
    "quarantined for ever": metadata(ONE_LABEL, labels={QUARANTINED: "true"}),
    "quarantined by more than a time": metadata(ONE_LABEL, labels={QUARANTINED: "20260131T120000Z-x"}),
    "a time taken off": metadata(None, TIMED, labels={QUARANTINED: None}),
    "a time put off": metadata(ONE_LABEL, TIMED, labels={QUARANTINED: "20360131T120000Z"}),
    "a person's word taken off": metadata(ONE_LABEL, HELD, labels={QUARANTINED: None}),
    "a person's word changed": metadata(ONE_LABEL, HELD, labels={QUARANTINED: "20260131T120000Z"}),
    "a role": metadata(ONE_LABEL, labels={"node-role.kubernetes.io/control-plane": ""}),
    "an annotation": metadata(NOTHING_ELSE, annotations={"kubevirt.io/heartbeat": "x"}),
    "a finalizer": metadata(NOTHING_ELSE, finalizers=["evil.example/stay"]),
    "an owner": metadata(NOTHING_ELSE, ownerReferences=[OWNER]),
    "a taint": patch({"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}, ONLY_PATCH, WHOLE),
    "a label, but not by the status": patch(FAR, ONLY_PATCH, WHOLE),
    "a taint with a status, which is not stored": patch({"spec": {"taints": None}}, None),
    "a status": patch({"status": {"capacity": {"cpu": "999"}}}, NOTHING_ELSE),
    "a node of this name, but another": metadata("metadata.uid", uid="another", labels=FAR["metadata"]["labels"]),
    "a node made": (Request(CAPTURED, "POST", NODES, {"metadata": {"name": "node-9"}}), ONLY_PATCH),
    "a node deleted": (Request(CAPTURED, "DELETE", WHOLE), ONLY_PATCH),
}

NO_LAUNCHER = "may write the status of no Pod but a launcher's"
ONE_CONDITION = "may say of a launcher Pod only whether its guest is there"
THERE = {"type": UNPAUSED, "status": "True"}


def pod_status(words: str | None, path: str = LAUNCHER, **changed: Any) -> Row:
    return patch({"status": changed}, words, f"{path}/status")


def beside(words: str | None, *more: Json, without: str = "") -> Row:
    """Write these conditions in addition to the existing ones."""

    def build(facts: Facts) -> Json:
        existing = [condition for condition in facts[LAUNCHER]["status"]["conditions"] if condition["type"] != without]
        return {"status": {"conditions": [*existing, *more]}}

    return patch(build, words, f"{LAUNCHER}/status")


SERVING_ROWS: dict[str, Row] = {
    "its guest is there": beside(None, THERE),
    "its guest is not there": beside(None, {**THERE, "status": "False"}),
    "a Pod that is no launcher": pod_status(NO_LAUNCHER, PLAIN, conditions=[THERE]),
    "another condition": beside(ONE_CONDITION, THERE, {"type": "Ready", "status": "True"}),
    "another condition taken off": beside(ONE_CONDITION, THERE, without="PodScheduled"),
    "where its traffic goes": pod_status(ONE_CONDITION, podIP="192.0.2.7", podIPs=[{"ip": "192.0.2.7"}]),
    "that it has ended": pod_status(ONE_CONDITION, phase="Failed"),
    "why": pod_status(ONE_CONDITION, reason="Evicted", message="x"),
    "that it is resized": pod_status(ONE_CONDITION, resize="Infeasible"),
    "that its container runs": pod_status(
        ONE_CONDITION, containerStatuses=[{"name": "compute", "image": "x", "imageID": "x", "state": {"running": {}}}]
    ),
}
