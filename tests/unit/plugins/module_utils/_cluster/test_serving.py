# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting until the objects of the role serve, and the messages when they do not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import TimedOut, Unavailable
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.serving import wait_until_serving

REVISION = {"controller-revision-hash": "1"}
SELECTOR = {"selector": {"matchLabels": {"kubevirt.io": "it"}}, "replicas": 1}


def condition(kind: str, status: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status}]}


class Cluster:
    """Objects as they are now; the time does not advance."""

    def __init__(self, *objects: dict[str, Any], pods: Any = (), nodes: Any = (), events: Any = ()) -> None:
        self.objects = objects
        owned = {"labels": REVISION, "ownerReferences": [{"uid": "u"}]}
        revisions = [{"metadata": owned, "revision": 1}]
        self.beside = {"Pod": list(pods), "Node": list(nodes), "ControllerRevision": revisions, "Event": events}

    def bounded(self, _deadline: float) -> AbstractContextManager[None]:
        return nullcontext()

    def read_all(self, resource: Resource, *, fields: str | None) -> tuple[list[dict[str, Any]], str]:
        name = (fields or "").removeprefix("metadata.name=")
        of_kind = [item for item in self.objects if item["kind"] == resource.kind]
        return [item for item in of_kind if item["metadata"]["name"] == (name or item["metadata"]["name"])], "1"

    def list(self, resource: Resource, *, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        assert (labels == "kubevirt.io=it") == (resource.kind not in ("Node", "Event"))
        assert (fields == "type=Warning") == (resource.kind == "Event")
        return self.beside[resource.kind]


def an_object(kind: str, name: str, **parts: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "kubevirt"}, "spec": SELECTOR, **parts}


def wait(cluster: Cluster, *others: dict[str, Any]) -> list[str]:
    return wait_until_serving(cluster, [*cluster.objects, *others], time.monotonic())


COMPLETE = {"updatedReplicas": 1, "availableReplicas": 1, "replicas": 1}


def test_a_serving_object_is_not_waited_for_and_a_kind_without_a_rule_is_not_read() -> None:
    cluster = Cluster(an_object("Deployment", "virt-api", status=COMPLETE), an_object("Secret", "kubevirt-ca"))

    assert wait(cluster) == []


def test_everything_missing_is_reported_with_dependencies_first() -> None:
    waiting = {"name": "it", "state": {"waiting": {"reason": "Error", "message": "not found"}}}
    cluster = Cluster(
        an_object("APIService", "v1.subresources.kubevirt.io", status=condition("Available", "False")),
        an_object("Deployment", "virt-api", status={}),
        pods=[{"metadata": {"name": "virt-api-1"}, "status": {"containerStatuses": [waiting]}}],
    )

    with pytest.raises(TimedOut) as late:
        wait(cluster)

    assert late.value.message == (
        "Deployment virt-api: 0 of 1 updated, 0 available, 0 in all; "
        "Pod virt-api-1, container it: Error not found; "
        "APIService v1.subresources.kubevirt.io: Available is False: no reason given"
    )


def test_a_refused_pod_is_reported_from_its_event() -> None:
    involved = {"kind": "ReplicaSet", "name": "virt-api-1"}
    event = {"reason": "FailedCreate", "involvedObject": involved, "message": "violates PodSecurity"}

    with pytest.raises(TimedOut, match="0 in all; its Pods are refused: violates PodSecurity"):
        wait(Cluster(an_object("Deployment", "virt-api", status={}), events=[event]))


def test_a_component_that_ended_after_it_served_is_reported_too() -> None:
    """virt-node has no readiness probe, so it serves for a moment; virt-handler waits for it."""
    ended = {"reason": "Error", "message": "control_plane_kubelet_root is not the root directory"}
    crashing = {"name": "it", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}
    complete = {"desiredNumberScheduled": 1, "updatedNumberScheduled": 1, "numberReady": 1}
    cluster = Cluster(
        an_object("DaemonSet", "virt-node", status=complete),
        an_object("APIService", "v1.subresources.kubevirt.io", status=condition("Available", "False")),
        pods=[{"metadata": {"name": "virt-node-1"}, "status": {"containerStatuses": [crashing]}}],
    )

    with pytest.raises(
        TimedOut, match="no reason given; Pod virt-node-1, container it: CrashLoopBackOff control_plane"
    ):
        wait(cluster)


def test_the_report_does_not_need_the_right_to_read_pods() -> None:
    class Busy(Cluster):
        def list(self, resource: Resource, *, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
            raise Unavailable("too busy")

    with pytest.raises(TimedOut, match="Deployment virt-api: 0 of 1 updated"):
        wait(Busy(an_object("Deployment", "virt-api", status={})))


def test_the_report_does_not_take_longer_than_the_wait_may() -> None:
    bounds: list[str] = []

    class Watched(Cluster):
        @contextmanager
        def bounded(self, _deadline: float) -> Iterator[None]:
            bounds.append("within")
            yield
            bounds.pop()

        def list(self, resource: Resource, *, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
            assert bounds
            return []

    with pytest.raises(TimedOut):
        wait(Watched(an_object("Deployment", "virt-api", status={})))
    assert bounds == []


def test_an_object_deleted_during_the_wait_is_missing() -> None:
    with pytest.raises(TimedOut, match="Deployment virt-api: it does not exist"):
        wait(Cluster(), an_object("Deployment", "virt-api"))


def on_two_nodes(second: str) -> Cluster:
    """Return a DaemonSet that serves on node a, and not on b."""
    rows = {"a": "True", "b": second}
    status = {"desiredNumberScheduled": 2, "updatedNumberScheduled": 2, "numberReady": 1}
    daemon_set = an_object("DaemonSet", "virt-node", status=status)
    daemon_set["metadata"]["uid"] = "u"
    return Cluster(
        daemon_set,
        nodes=[{"metadata": {"name": name}, "status": condition("Ready", ready)} for name, ready in rows.items()],
        pods=[
            {
                "metadata": {"name": f"virt-node-{name}", "labels": REVISION},
                "spec": {"nodeName": name},
                "status": condition("Ready", str(name == "a")),
            }
            for name in rows
        ],
    )


def test_a_daemon_set_serves_when_it_serves_on_all_ready_nodes_and_the_others_are_named() -> None:
    assert wait(on_two_nodes("Unknown")) == ["b"]


def test_a_node_that_is_not_ready_is_reported_with_a_remedy() -> None:
    cluster = on_two_nodes("Unknown")
    cluster.objects[0]["status"]["updatedNumberScheduled"] = 0
    for pod in cluster.beside["Pod"]:
        pod["metadata"]["labels"] = {"controller-revision-hash": "0"}

    with pytest.raises(TimedOut, match=r"0 of 2 updated, .* control_plane_workload_max_unavailable .*: b$"):
        wait(cluster)


def test_a_daemon_set_that_does_not_serve_on_a_ready_node_is_waited_for() -> None:
    with pytest.raises(TimedOut, match="DaemonSet virt-node: 2 of 2 updated, 1 ready"):
        wait(on_two_nodes("True"))
