# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that has lost the launcher's image: machines come up on the other, and it gets no more of them for a while."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lab import Lab
from lab.images.containerd import CONTAINERD_SOCKET
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import Manifest, a_vm

pytestmark = pytest.mark.lab

LABEL = "virtops.kubevirt/quarantined"
KEPT = "localhost/kept/virt-launcher:0.1.0"
MACHINES = (("one", "default"), ("two", "default"), ("three", "tenant"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with deployed("broken-node", nodes=2) as made:
        made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
        yield made


def images(cluster: Cluster, *arguments: str) -> str:
    """Run containerd's own client on the first node."""
    client = ensure_programs(Lab(cluster.name).cache, silent).node("ctr")
    command = [str(client), "--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", *arguments]
    return Lab(cluster.name).node(cluster.nodes[0]).run(command).stdout


def preferring(node: str, name: str, namespace: str = "default") -> Manifest:
    """Return a machine that goes to a node where it can."""
    vm = a_vm(name, namespace=namespace)
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": here}]}
    vm["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": preferred}
    return vm


def status(cluster: Cluster, name: str, namespace: str = "default") -> dict[str, Any]:
    found: dict[str, Any] = cluster.running(name, namespace=namespace)["status"]
    return found


def mark(cluster: Cluster, node: str) -> str:
    found = cluster.get("node", node)
    assert found is not None
    return str(found["metadata"]["labels"].get(LABEL, ""))


def test_machines_come_up_elsewhere_and_a_node_that_begins_none_is_left_out_until_it_is_let_go(
    cluster: Cluster,
) -> None:
    bad, good = cluster.nodes
    (launcher,) = {one for one in images(cluster, "list", "--quiet").split() if one.endswith("/virt-launcher:0.1.0")}
    images(cluster, "tag", launcher, KEPT)
    lost = [one for one in images(cluster, "list", "--quiet").split() if one.startswith(launcher.partition(":")[0])]
    images(cluster, "remove", *lost)

    cluster.apply(*(preferring(bad, name, namespace) for name, namespace in MACHINES))
    for name, namespace in MACHINES:
        found = status(cluster, name, namespace)
        assert found["nodeName"] == good
        (failed,) = found["failedAttempts"]
        assert (failed["nodeName"], failed["nodeFault"]) == (bad, True)
        assert launcher in failed["message"]
        story = cluster.kubectl("describe", "vm", name, "-n", namespace)
        assert f"attempt 1 failed on node {bad}" in story

    cluster.eventually(lambda: mark(cluster, bad), seconds=90, what=f"{bad} is quarantined")
    assert mark(cluster, good) == ""
    assert "NodeQuarantined" in cluster.kubectl("describe", "node", bad)

    cluster.apply(preferring(bad, "four"))
    found = status(cluster, "four")
    assert (found["nodeName"], found["attempt"], found.get("failedAttempts")) == (good, 1, None)

    pinned = a_vm("pinned")
    pinned["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": bad}
    cluster.apply(pinned)
    cluster.wait("vm", "pinned", ".status.printableStatus", "ErrorUnschedulable")
    images(cluster, "tag", KEPT, launcher)
    cluster.kubectl("label", "node", bad, f"{LABEL}-")
    assert status(cluster, "pinned")["nodeName"] == bad
    assert mark(cluster, bad) == ""
