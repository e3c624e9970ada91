# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an object of the installation is not ready."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.readiness import (
    missing,
    pod_trouble,
    without_silent_nodes,
)


def deployment(generation: int = 1, observed: int = 1, **status: int) -> dict[str, Any]:
    return {
        "kind": "Deployment",
        "metadata": {"generation": generation},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": observed, **status},
    }


def with_condition(kind: str, *conditions: tuple[str, str, str]) -> dict[str, Any]:
    rows = [{"type": name, "status": status, "message": message} for name, status, message in conditions]
    return {"kind": kind, "metadata": {}, "status": {"conditions": rows}}


FULL = {"updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param({"kind": "Role"}, None, id="a kind without a rule serves at once"),
        pytest.param(deployment(**FULL), None, id="deployment rolled out"),
        pytest.param(
            deployment(generation=2, **FULL),
            "its controller has not seen the latest change yet",
            id="deployment change unseen",
        ),
        pytest.param(
            deployment(updatedReplicas=2, availableReplicas=1, replicas=2),
            "2 of 2 updated, 1 available, 2 in all",
            id="deployment half way",
        ),
        pytest.param(
            deployment(updatedReplicas=2, availableReplicas=2, replicas=3),
            "2 of 2 updated, 2 available, 3 in all",
            id="deployment with an old Pod left",
        ),
        pytest.param(
            {
                "kind": "DaemonSet",
                "metadata": {"generation": 1},
                "status": {
                    "observedGeneration": 1,
                    "desiredNumberScheduled": 3,
                    "updatedNumberScheduled": 3,
                    "numberReady": 2,
                },
            },
            "3 of 3 updated, 2 ready",
            id="daemon set half way",
        ),
        pytest.param(
            with_condition("CustomResourceDefinition", ("NamesAccepted", "True", ""), ("Established", "True", "")),
            None,
            id="definition established",
        ),
        pytest.param(
            with_condition("CustomResourceDefinition", ("NamesAccepted", "False", "taken by another")),
            "NamesAccepted is False: taken by another",
            id="definition with a name conflict",
        ),
        pytest.param(with_condition("APIService"), "Available is not reported yet", id="APIService without a verdict"),
        pytest.param(
            with_condition("KubeVirt", ("Available", "False", "virt-handler is not ready")),
            "Available is False: virt-handler is not ready",
            id="control plane not available",
        ),
    ],
)
def test_what_is_missing(obj: dict[str, Any], expected: str | None) -> None:
    assert missing(obj) == expected


def pod(owner: str = "ReplicaSet", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "virt-api-1", "ownerReferences": [{"kind": owner}]}, "status": status}


def without_image(owner: str) -> dict[str, Any]:
    waiting = {"reason": "ErrImagePull", "message": "no such image"}
    return pod(owner, containerStatuses=[{"name": "virt-api", "state": {"waiting": waiting}}])


def crashing(**container: Any) -> dict[str, Any]:
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 40s"}
    return pod(containerStatuses=[{"name": "virt-api", "state": {"waiting": waiting}, **container}])


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(pod(), None, id="new"),
        pytest.param(
            pod(containerStatuses=[{"name": "virt-api", "state": {"waiting": {"reason": "ContainerCreating"}}}]),
            None,
            id="on its way",
        ),
        pytest.param(
            without_image("ReplicaSet"),
            "Pod virt-api-1, container virt-api: ErrImagePull no such image (bring the image to that node, or have"
            " others chosen: control_plane_node_selector)",
            id="image missing where a Deployment's Pod is",
        ),
        pytest.param(
            without_image("DaemonSet"),
            "Pod virt-api-1, container virt-api: ErrImagePull no such image (bring the image to that node, or have"
            " others chosen: control_plane_workload_node_selector)",
            id="image missing on a node of machines",
        ),
        pytest.param(
            crashing(
                lastState={
                    "terminated": {"reason": "Error", "message": "virt-api: WEBHOOK_CLIENT_NAMES\nnames nobody\n"}
                }
            ),
            "Pod virt-api-1, container virt-api: CrashLoopBackOff virt-api: WEBHOOK_CLIENT_NAMES names nobody",
            id="ends again and again, and says why",
        ),
        pytest.param(
            crashing(lastState={"terminated": {"reason": "Error"}}),
            "Pod virt-api-1, container virt-api: CrashLoopBackOff back-off 40s",
            id="ends again and again without a word",
        ),
        pytest.param(
            pod(
                containerStatuses=[
                    {"name": "virt-api", "state": {"terminated": {"reason": "Error", "message": "no such file"}}}
                ]
            ),
            "Pod virt-api-1, container virt-api: Error no such file",
            id="has just ended",
        ),
        pytest.param(
            pod(initContainerStatuses=[{"name": "prepare", "state": {"terminated": {"reason": "Completed"}}}]),
            None,
            id="its init container is done",
        ),
        pytest.param(
            {**crashing(), "spec": {"nodeName": "node-2"}},
            "Pod virt-api-1 on node node-2, container virt-api: CrashLoopBackOff back-off 40s",
            id="where it is",
        ),
        pytest.param(
            pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}]),
            "Pod virt-api-1 cannot be scheduled: 0/1 nodes are available",
            id="unschedulable",
        ),
    ],
)
def test_the_problem_of_a_pod(obj: dict[str, Any], expected: str | None) -> None:
    assert pod_trouble(obj) == expected


def revision(number: int, label: str, owner: str = "u") -> dict[str, Any]:
    metadata = {"labels": {"controller-revision-hash": label}, "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "revision": number}


REVISIONS = [revision(4, "another's", "v"), revision(2, "2"), revision(3, "3"), revision(1, "1")]


def daemon_set(desired: int, generation: int = 1) -> dict[str, Any]:
    status = {"observedGeneration": 1, "desiredNumberScheduled": desired}
    return {"kind": "DaemonSet", "metadata": {"generation": generation, "uid": "u"}, "status": status}


def on(node: str, *, ready: bool = True, template: str = "3", going: bool = False) -> dict[str, Any]:
    """Return the Pod of a node."""
    metadata: dict[str, Any] = {"labels": {"controller-revision-hash": template}}
    if going:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"conditions": conditions}}


def nodes(**ready: str) -> list[dict[str, Any]]:
    return [
        {"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": status}]}}
        for name, status in ready.items()
    ]


def held_back(node: str) -> dict[str, Any]:
    """Return a DaemonSet's Pod that does not fit on its node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"metadata": {}, "spec": {"affinity": {"nodeAffinity": required}}, "status": {}}


GOOD = on("a")
SILENT = on("b", ready=False, template="2")


@pytest.mark.parametrize(
    ("seen", "pods", "expected"),
    [
        pytest.param(daemon_set(2), [GOOD, SILENT], ["b"], id="all that is missing is on a silent node"),
        pytest.param(daemon_set(2), [GOOD, held_back("b")], ["b"], id="a Pod that a silent node has no room for"),
        pytest.param(daemon_set(2), [on("b"), held_back("a")], None, id="a Pod that another node has no room for"),
        pytest.param(daemon_set(2), [on("a", ready=False), SILENT], None, id="a Pod elsewhere is not ready"),
        pytest.param(daemon_set(2), [on("a", template="2"), SILENT], None, id="a Pod elsewhere is old"),
        pytest.param(daemon_set(2), [on("a", going=True), SILENT], None, id="a Pod elsewhere is being replaced"),
        pytest.param(daemon_set(2), [GOOD, on("b", going=True)], ["b"], id="a silent node does not end its Pod"),
        pytest.param(daemon_set(3), [GOOD, SILENT], None, id="a Pod is not made yet"),
        pytest.param(daemon_set(2, generation=2), [GOOD, SILENT], None, id="its controller has not seen the change"),
        pytest.param(daemon_set(1), [SILENT], None, id="it serves nowhere"),
        pytest.param(daemon_set(1), [GOOD], None, id="no silent node has one"),
        pytest.param(daemon_set(2), [GOOD, held_back("gone")], ["gone"], id="a Pod for a node that is gone"),
        pytest.param(daemon_set(2), [GOOD, held_back("")], None, id="a Pod for no node"),
    ],
)
def test_a_node_that_is_not_ready_is_not_waited_for(
    seen: dict[str, Any], pods: list[dict[str, Any]], expected: list[str] | None
) -> None:
    assert without_silent_nodes(seen, pods, nodes(a="True", b="Unknown"), REVISIONS) == expected
