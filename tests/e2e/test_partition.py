# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A partitioned or powered-off node with a VM: one guest, whatever is deleted; a new one only with proof that the
old one has ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@pytest.fixture(scope="module")
def cluster(nodes: Cluster) -> Cluster:
    return nodes


@contextmanager
def cut_off(cluster: Cluster, node: str) -> Iterator[None]:
    """Cut a node off the network: its processes run on."""
    cluster.lab("node", "cut", node)
    try:
        yield
    finally:
        cluster.lab("node", "heal", node)


def condition_message(vmi: dict[str, Any], kind: str) -> str:
    return next(
        (condition["message"] for condition in vmi["status"].get("conditions", ()) if condition["type"] == kind), ""
    )


def a_bystander(cluster: Cluster, name: str, node: str) -> str:
    """Start another VM on a healthy node, as proof that a second guest could have started there."""
    vm = a_vm(name)
    vm["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    cluster.eventually(
        lambda: cluster.try_kubectl("apply", "-f", "-", given=vm.text).returncode == 0,
        what="admission serves",
    )
    uid: str = cluster.running(name)["metadata"]["uid"]
    return uid


def test_a_pod_deleted_by_force_on_a_partitioned_node_starts_no_second_guest(cluster: Cluster) -> None:
    cluster.apply(a_vm("torn"))
    first = cluster.running("torn")
    uid, node = first["metadata"]["uid"], first["status"]["nodeName"]
    other = next(candidate for candidate in cluster.nodes if candidate != node)
    pod = cluster.launcher("torn")["metadata"]["name"]

    with cut_off(cluster, node):
        cluster.kubectl("delete", "pod", pod, "--force", "--grace-period=0")
        cluster.wait("vmi", "torn", ".status.phase", "Unknown")
        bystander = a_bystander(cluster, "bystander", other)

        assert cluster.emulators() == sorted([uid, bystander])
        lost = cluster.get("vmi", "torn")
        assert lost is not None
        assert lost["metadata"]["uid"] == uid
        assert node in condition_message(lost, "Synchronized")
        assert OUT_OF_SERVICE in condition_message(lost, "Synchronized")

    cluster.healthy()
    cluster.eventually(lambda: (cluster.get("vmi", "torn") or first)["metadata"]["uid"] != uid, what="a new instance")
    renewed = cluster.running("torn")["metadata"]["uid"]
    assert cluster.emulators() == sorted([renewed, bystander])
    for name in ("torn", "bystander"):
        cluster.kubectl("delete", "vm", name)
        cluster.wait_gone("vm", name)


@pytest.mark.nightly
def test_a_node_that_comes_back_ends_former_guests_before_it_starts_any(cluster: Cluster) -> None:
    """The user tainted the node as out of service, but it was only partitioned."""
    cluster.apply(a_vm("left"))
    first = cluster.running("left")
    uid, node = first["metadata"]["uid"], first["status"]["nodeName"]

    with cut_off(cluster, node):
        cluster.kubectl("wait", f"node/{node}", "--for=condition=Ready=Unknown", f"--timeout={LIMIT_SECONDS}s")
        cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
        renewed = another_instance(cluster, "left", first)["metadata"]["uid"]
        assert cluster.emulators() == sorted([uid, renewed])
        cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE}-")
        following = a_vm("following")
        following["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
        cluster.eventually(
            lambda: cluster.try_kubectl("apply", "-f", "-", given=following.text).returncode == 0,
            what="admission serves",
        )

    looks: list[list[str]] = []
    cluster.eventually(lambda: is_started(cluster, "following", node, looks), what="the next machine")
    next_uid = cluster.running("following")["metadata"]["uid"]
    assert not [emulators for emulators in looks if {uid, next_uid} <= {*emulators}], (
        "it started while the old guest still ran"
    )
    assert cluster.emulators() == sorted([renewed, next_uid])
    events = [(line["event"], line.get("uid", "")) for line in handler_log(cluster, node)]
    came_back = max(index for index, event in enumerate(events) if event[0] == "the node is clear")
    assert events.index(("domain started", next_uid)) > came_back
    cluster.healthy()
    for name in ("left", "following"):
        cluster.kubectl("delete", "vm", name)
        cluster.wait_gone("vm", name)


def another_instance(cluster: Cluster, name: str, old: dict[str, Any]) -> dict[str, Any]:
    """Wait until the next instance of a VM runs, on another node."""
    uid, node = old["metadata"]["uid"], old["status"]["nodeName"]
    cluster.eventually(lambda: (cluster.get("vmi", name) or old)["metadata"]["uid"] != uid, what="a new instance")
    renewed = cluster.running(name)
    assert renewed["status"]["nodeName"] != node
    return renewed


def is_started(cluster: Cluster, name: str, node: str, looks: list[list[str]]) -> bool:
    """Whether the guest of a VM runs; seen: the guests on its node at each look."""
    vmi = cluster.get("vmi", name)
    looks.append(cluster.emulators_on(node))
    return vmi is not None and vmi["metadata"]["uid"] in looks[-1]


def handler_log(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """Return the log of virt-handler on a node, in order."""
    listed = cluster.list(
        "pods", "-n", "kubevirt", "-l", "kubevirt.io=virt-handler", "--field-selector", f"spec.nodeName={node}"
    )
    name = listed[0]["metadata"]["name"]
    text = cluster.kubectl("logs", "-n", "kubevirt", name, "-c", "virt-handler")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.nightly
@pytest.mark.parametrize("proof", ["out of service", "Node deleted"])
def test_the_vm_of_a_powered_off_node_restarts_once_after_the_out_of_service_taint(
    cluster: Cluster, proof: str
) -> None:
    cluster.apply(a_vm("moved"))
    first = cluster.running("moved")
    uid, node = first["metadata"]["uid"], first["status"]["nodeName"]

    cluster.lab("node", "kill", node)
    try:
        if proof == "Node deleted":
            cluster.kubectl("delete", "node", node)
        else:
            cluster.kubectl("wait", f"node/{node}", "--for=condition=Ready=Unknown", f"--timeout={LIMIT_SECONDS}s")
            unchanged = cluster.get("vmi", "moved")
            assert unchanged is not None
            assert unchanged["metadata"]["uid"] == uid, "silence of a node is no proof"
            cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")
        renewed = another_instance(cluster, "moved", first)["metadata"]["uid"]
        other = next(candidate for candidate in cluster.nodes if candidate != node)
        assert cluster.emulators_on(other) == [renewed]
    finally:
        cluster.lab("up")
        if proof == "out of service":
            cluster.kubectl("taint", "node", node, f"{OUT_OF_SERVICE}-")

    cluster.kubectl("wait", f"node/{node}", "--for=condition=Ready", f"--timeout={LIMIT_SECONDS}s")
    cluster.healthy()
    assert cluster.emulators() == [renewed]
    cluster.kubectl("delete", "vm", "moved")
    cluster.wait_gone("vm", "moved")
