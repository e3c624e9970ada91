# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Broken nodes: one without the launcher image, one with a frozen runtime, one with a hanging KVM.

Machines start on the other node or report why not; a node where machines do not start is quarantined.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import Manifest, a_vm
from tests.e2e.node_images import images

pytestmark = pytest.mark.lab

LABEL = "virtops.kubevirt/quarantined"
KEPT = "localhost/kept/virt-launcher:0.1.0"
MACHINES = (("one", "default"), ("two", "default"), ("three", "tenant"))

KVM_USABLE, KVM_REASON = "kubevirt.io/kvm-usable", "kubevirt.io/kvm-unusable-reason"
SIGNAL_CONTAINERD = """
import os, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if open(f"/proc/{pid}/comm").read() == "containerd\\n":
            os.kill(int(pid), int(sys.argv[1]))
            print(pid)
    except FileNotFoundError:
        continue
"""
HANG_KVM = """
import os, signal, sys, time
def pids(word):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) != os.getpid() and word in open(f"/proc/{pid}/cmdline").read().replace(chr(0), " "):
                yield int(pid)
        except OSError:
            continue
for pid in list(pids("-m controlplane.virt_node")):
    os.kill(pid, signal.SIGKILL)
until = time.monotonic() + 60
while time.monotonic() < until:
    if probes := list(pids("kvm_probe")):
        for pid in probes:
            os.kill(pid, signal.SIGSTOP)
        sys.exit()
    time.sleep(0.005)
sys.exit("virt-node started no KVM probe")
"""
"""Restart virt-node, and stop its KVM probe: as if the first KVM call hung."""


@pytest.fixture(scope="module")
def cluster(kubelets_elsewhere: Cluster) -> Cluster:
    kubelets_elsewhere.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
    return kubelets_elsewhere


def preferring(node: str, name: str, namespace: str = "default") -> Manifest:
    """Return a machine that prefers a node."""
    vm = a_vm(name, namespace=namespace)
    on_the_node = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": on_the_node}]}
    vm["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": preferred}
    return vm


def pinned_to(node: str, name: str) -> Manifest:
    """Return a machine that can only run on a node."""
    vm = a_vm(name)
    vm["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    return vm


def in_time(vm: Manifest, seconds: int, *, further_attempts: int) -> Manifest:
    """Limit the time of a launcher's start, and the number of attempts."""
    limits = {"run-timeout-seconds": str(seconds), "further-attempts": str(further_attempts)}
    vm["spec"]["template"]["metadata"]["annotations"] = {
        f"virtops.kubevirt/{key}": value for key, value in limits.items()
    }
    return vm


@contextmanager
def runtime_is_stopped(cluster: Cluster, node: str) -> Iterator[None]:
    """Have a node where no container starts: its kubelet waits for the runtime."""
    assert cluster.on_node(node, SIGNAL_CONTAINERD, str(int(signal.SIGSTOP))).split()
    try:
        yield
    finally:
        cluster.on_node(node, SIGNAL_CONTAINERD, str(int(signal.SIGCONT)))


def use_emulation(cluster: Cluster, *, wanted: bool) -> None:
    configuration = {"developerConfiguration": {"useEmulation": wanted}}
    patch = json.dumps({"spec": {"configuration": configuration}})
    cluster.kubectl("patch", "kubevirt", "kubevirt", "-n", "kubevirt", "--type", "merge", "-p", patch)


def status(cluster: Cluster, name: str, namespace: str = "default") -> dict[str, Any]:
    vmi_status: dict[str, Any] = cluster.running(name, namespace=namespace)["status"]
    return vmi_status


def mark(cluster: Cluster, node: str) -> str:
    obj = cluster.get("node", node)
    assert obj is not None
    return str(obj["metadata"]["labels"].get(LABEL, ""))


def is_described(cluster: Cluster, words: str, *what: str) -> None:
    """Wait for these words in `kubectl describe`: Events are written asynchronously."""
    cluster.eventually(lambda: words in cluster.kubectl("describe", *what), what=f"{what} contains {words}")


@pytest.mark.nightly
def test_machines_start_elsewhere_and_a_node_that_starts_none_is_quarantined_until_released(
    cluster: Cluster,
) -> None:
    bad, good = cluster.nodes
    (launcher,) = {
        word for word in images(cluster, bad, "list", "--quiet").split() if word.endswith("/virt-launcher:0.1.0")
    }
    images(cluster, bad, "tag", launcher, KEPT)
    lost = [
        word for word in images(cluster, bad, "list", "--quiet").split() if word.startswith(launcher.partition(":")[0])
    ]
    images(cluster, bad, "remove", *lost)

    cluster.apply(*(preferring(bad, name, namespace) for name, namespace in MACHINES))
    for name, namespace in MACHINES:
        current = status(cluster, name, namespace)
        assert current["nodeName"] == good
        (failed,) = current["failedAttempts"]
        assert (failed["nodeName"], failed["nodeFault"]) == (bad, True)
        assert launcher in failed["message"]
        is_described(cluster, f"attempt 1 failed on node {bad}", "vm", name, "-n", namespace)

    cluster.eventually(lambda: mark(cluster, bad), what=f"{bad} is quarantined")
    assert mark(cluster, good) == ""
    is_described(cluster, "NodeQuarantined", "node", bad)

    cluster.apply(preferring(bad, "four"))
    current = status(cluster, "four")
    assert (current["nodeName"], current["attempt"], current.get("failedAttempts")) == (good, 1, None)

    cluster.apply(pinned_to(bad, "pinned"))
    cluster.wait("vm", "pinned", ".status.printableStatus", "ErrorUnschedulable")
    images(cluster, bad, "tag", KEPT, launcher)
    cluster.kubectl("label", "node", bad, f"{LABEL}-")
    assert status(cluster, "pinned")["nodeName"] == bad
    assert mark(cluster, bad) == ""
    cluster.kubectl("delete", "vm", "--all", "--all-namespaces", "--wait=false")


@pytest.mark.nightly
def test_a_run_that_does_not_start_in_time_ends_or_starts_elsewhere(cluster: Cluster) -> None:
    bad, good = cluster.nodes
    with runtime_is_stopped(cluster, bad):
        cluster.apply(
            in_time(preferring(bad, "moves"), 8, further_attempts=1),
            in_time(pinned_to(bad, "ends"), 8, further_attempts=0),
        )
        cluster.eventually(
            lambda: (cluster.get("vmi", "moves") or {}).get("status", {}).get("failedAttempts"),
            what="an attempt failed",
        )
        cluster.wait("vmi", "ends", ".status.phase", "Failed")

    status_ = status(cluster, "moves")
    (failed,) = status_["failedAttempts"]
    assert (status_["nodeName"], failed["nodeName"], failed["reason"]) == (good, bad, "RunTimedOut")


@pytest.mark.nightly
def test_a_node_with_a_hanging_kvm_reports_it_and_gets_only_machines_without_kvm(cluster: Cluster) -> None:
    bad, _unused = cluster.nodes
    use_emulation(cluster, wanted=False)
    cluster.on_node(bad, HANG_KVM)

    def why() -> str:
        instance = cluster.get("node", bad)
        assert instance is not None
        annotation = instance["metadata"]["annotations"].get(KVM_REASON, "")
        return annotation if "no answer" in annotation and instance["metadata"]["labels"][KVM_USABLE] == "false" else ""

    cluster.eventually(why, what=f"{bad} reports that its KVM hangs")
    cluster.apply(pinned_to(bad, "kvm"))
    cluster.wait("vm", "kvm", ".status.printableStatus", "ErrorUnschedulable")
    is_described(cluster, "devices.kubevirt.io/kvm", "vm", "kvm")
    waiting = cluster.get("vmi", "kvm")
    assert waiting is not None

    use_emulation(cluster, wanted=True)

    instance = cluster.running("kvm")
    assert (instance["metadata"]["uid"], instance["status"]["nodeName"]) == (waiting["metadata"]["uid"], bad)
    cluster.wait("vmi", "kvm", '.status.conditions[?(@.type=="SoftwareEmulation")].status', "True")
