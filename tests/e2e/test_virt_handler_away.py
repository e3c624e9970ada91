# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node without virt-handler, or without its kubelet: it gets no machines, its machines run on, and changes are
reported afterwards.

Upstream's other cases: a Pod deleted by force on a partitioned node is in test_partition.py; writes of virt-handler for
other nodes are in tests/controlplane/policies. A silent virt-handler is no proof that a guest has ended: its instances
stay Running.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.cluster import Cluster, KubectlFailed
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

SCHEDULABLE = r".metadata.labels.kubevirt\.io/schedulable"
TUN = "devices.kubevirt.io/tun"
CRASHED = "The VirtualMachineInstance failed: QEMU ended unexpectedly: shut off, crashed"
NOWHERE = "tests.virtops/nowhere"
PLUGINS = "/var/lib/kubelet/device-plugins"

RENAME = """
import os, sys
pod, before, after = sys.argv[1:]
directory = f"/var/lib/kubelet/pods/{pod}/volumes/kubernetes.io~empty-dir/run/libvirt"
os.rename(f"{directory}/{before}", f"{directory}/{after}")
"""
REMOVE_SOCKETS = """
import glob, os, sys
for path in glob.glob(sys.argv[1] + "/virtops-*.sock"):
    os.unlink(path)
    print(path)
"""


@pytest.fixture(scope="module", autouse=True)
def machines(cluster: Cluster) -> None:
    """Three running guests."""
    cluster.apply(a_vm("lost", runStrategy="Once"), a_vm("hidden"), a_vm("bystander"))
    for name in ("lost", "hidden", "bystander"):
        cluster.running(name)


@pytest.fixture(autouse=True)
def serving(cluster: Cluster) -> None:
    """Wait before each test until all nodes are schedulable: a kubelet that starts on an unschedulable node ends
    its Pods.
    """
    cluster.wait("node", cluster.nodes[0], SCHEDULABLE, "true")
    cluster.healthy()


@contextmanager
def no_virt_handler(cluster: Cluster) -> Iterator[None]:
    """Have no virt-handler on any node, as after a deletion of its Pod without a replacement."""
    selector = "/spec/template/spec/nodeSelector/" + NOWHERE.replace("/", "~1")
    daemon_set = ("daemonset", "virt-handler", "-n", "kubevirt", "--type", "json", "-p")
    cluster.kubectl("patch", *daemon_set, json.dumps([{"op": "add", "path": selector, "value": "true"}]))
    try:
        cluster.kubectl("wait", "pods", "-n", "kubevirt", "-l", "kubevirt.io=virt-handler", "--for=delete")
        yield
    finally:
        cluster.kubectl("patch", *daemon_set, json.dumps([{"op": "remove", "path": selector}]))


def lease_of_seconds(cluster: Cluster, node: str, seconds: int) -> None:
    """Shorten the Lease of a virt-handler, so that its silence counts sooner than after forty seconds."""
    lease = ("lease", f"virt-handler-{node}", "-n", "kubevirt", "--type", "merge", "-p")
    cluster.kubectl("patch", *lease, json.dumps({"spec": {"leaseDurationSeconds": seconds}}))


@contextmanager
def cut_off_from_the_api_server(cluster: Cluster, node: str) -> Iterator[None]:
    """Drop the packets of virt-handler to the API server; those of the kubelet, and its probes, pass."""
    on_the_node = ("-l", "kubevirt.io=virt-handler", "--field-selector", f"spec.nodeName={node}")
    (handler,) = cluster.list("pods", "-n", "kubevirt", *on_the_node)
    (slices,) = cluster.list("endpointslices", "-n", "default", "-l", "kubernetes.io/service-name=kubernetes")
    server = slices["endpoints"][0]["addresses"][0]
    rule = ("from", handler["status"]["podIP"], "to", server, "priority", "5", "blackhole")
    cluster.lab("node", "exec", node, "--", "ip", "rule", "add", *rule)
    try:
        yield
    finally:
        cluster.lab("node", "exec", node, "--", "ip", "rule", "delete", *rule)


def phase(cluster: Cluster, name: str) -> str:
    vmi = cluster.get("vmi", name)
    assert vmi is not None
    return str(vmi["status"]["phase"])


def offered(cluster: Cluster, node: str) -> str:
    obj = cluster.get("node", node)
    assert obj is not None
    return str(obj["status"]["allocatable"].get(TUN, ""))


def counts_on(cluster: Cluster, name: str) -> None:
    pod = cluster.launcher(name)["metadata"]["name"]
    counted = cluster.counter(pod)
    cluster.eventually(lambda: cluster.counter(pod) > counted + 1, what=f"{name} counts on")


def starts(cluster: Cluster) -> list[tuple[str, int]]:
    """Return UID and restarts of each virt-handler."""
    pods = cluster.list("pods", "-n", "kubevirt", "-l", "kubevirt.io=virt-handler")
    return [(pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"]) for pod in pods]


def pause(cluster: Cluster, name: str) -> None:
    cluster.subresource(name, "pause", of="virtualmachineinstances")


def test_a_node_without_virt_handler_gets_no_machines_and_reports_ended_guests_later(cluster: Cluster) -> None:
    (node,) = cluster.nodes
    uid = cluster.get("vmi", "lost")["metadata"]["uid"]  # type: ignore[index]
    pod = cluster.launcher("hidden")["metadata"]["uid"]
    with no_virt_handler(cluster):
        cluster.wait("node", node, SCHEDULABLE, "false")
        assert cluster.kill("qemu", uid) == 1
        cluster.on_node(node, RENAME, pod, "libvirt-sock", "elsewhere")
        cluster.apply(a_vm("early"))
        cluster.wait("vmi", "lost", ".status.phase", "Failed")
        cluster.wait("vm", "early", ".status.printableStatus", "ErrorUnschedulable")
        assert (phase(cluster, "hidden"), phase(cluster, "bystander")) == ("Running", "Running")

    cluster.wait("node", node, SCHEDULABLE, "true")
    cluster.running("early")
    assert [message for _unused, why, message in cluster.events(uid) if why == "Stopped"] == [CRASHED], (
        "one Event, whichever process reports the end"
    )
    with pytest.raises(KubectlFailed, match="ServiceUnavailable"):
        pause(cluster, "hidden")
    assert phase(cluster, "hidden") == "Running", "an unreachable guest is not proof of its end"

    cluster.on_node(node, RENAME, pod, "elsewhere", "libvirt-sock")
    cluster.eventually(lambda: pause(cluster, "hidden") is None, what="hidden can be paused")
    cluster.wait("vm", "hidden", ".status.printableStatus", "Paused")
    cluster.kubectl("delete", "vm", "lost", "hidden", "early", "--wait=false")


@pytest.mark.nightly
def test_a_node_with_a_hanging_virt_handler_gets_no_machines_until_it_is_replaced(cluster: Cluster) -> None:
    """Its Lease is set to five seconds, because forty are too long for a test."""
    (node,) = cluster.nodes
    uid = cluster.get("vmi", "bystander")["metadata"]["uid"]  # type: ignore[index]
    assert cluster.signal(signal.SIGSTOP, "virt-handler") == 1
    lease_of_seconds(cluster, node, 5)

    cluster.wait("node", node, SCHEDULABLE, "false")
    cluster.eventually(
        lambda: "VirtHandlerSilent" in cluster.kubectl("describe", "node", node),
        what="the node has the Event VirtHandlerSilent",
    )
    counts_on(cluster, "bystander")
    assert phase(cluster, "bystander") == "Running"

    assert cluster.kill("virt-handler") == 1
    cluster.wait("node", node, SCHEDULABLE, "true")
    assert cluster.get("vmi", "bystander")["metadata"]["uid"] == uid  # type: ignore[index]
    cluster.healthy()


@pytest.mark.nightly
def test_a_partitioned_virt_handler_resumes_by_itself(cluster: Cluster) -> None:
    """It stays ready: removing it would not help. Its node gets no machines meanwhile."""
    (node,) = cluster.nodes
    uid = cluster.get("vmi", "bystander")["metadata"]["uid"]  # type: ignore[index]
    before = starts(cluster)
    with cut_off_from_the_api_server(cluster, node):
        lease_of_seconds(cluster, node, 5)
        cluster.wait("node", node, SCHEDULABLE, "false")
        counts_on(cluster, "bystander")
        assert phase(cluster, "bystander") == "Running"

    cluster.wait("node", node, SCHEDULABLE, "true")
    cluster.eventually(lambda: pause(cluster, "bystander") is None, what="bystander can be paused")
    cluster.wait("vm", "bystander", ".status.printableStatus", "Paused")
    cluster.subresource("bystander", "unpause", of="virtualmachineinstances")
    cluster.wait("vm", "bystander", ".status.printableStatus", "Running")
    assert starts(cluster) == before
    assert cluster.get("vmi", "bystander")["metadata"]["uid"] == uid  # type: ignore[index]


@pytest.mark.nightly
def test_a_node_registers_its_devices_again_after_a_kubelet_restart(cluster: Cluster) -> None:
    """A starting kubelet removes all sockets. A user may remove them too, and the kubelet does not notice."""
    (node,) = cluster.nodes
    uid = cluster.get("vmi", "bystander")["metadata"]["uid"]  # type: ignore[index]

    removed = cluster.on_node(node, REMOVE_SOCKETS, PLUGINS).split()
    assert removed
    cluster.kill("kubelet")
    cluster.apply(a_vm("after"))

    cluster.wait("vm", "after", ".status.printableStatus", "Running")
    cluster.eventually(lambda: offered(cluster, node) not in ("", "0"), what=f"{node} offers {TUN}")
    cluster.healthy()
    counts_on(cluster, "bystander")
    assert cluster.get("vmi", "bystander")["metadata"]["uid"] == uid  # type: ignore[index]
