# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances without a VM: how they end, and how they are operated after a crash of libvirtd.

And a VM whose claim is replaced while it is stopped. All guests boot in parallel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm
from tests.e2e.test_claims import a_claim

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

KEPT = "tests.virtops/kept"
QUESTIONS = 12
DESCRIPTORS = """
import os, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        line = open(f"/proc/{pid}/cmdline").read().replace(chr(0), " ")
        if sys.argv[1] in line:
            print(len(os.listdir(f"/proc/{pid}/fd")))
    except OSError:
        continue
"""


def an_instance(name: str) -> dict[str, Any]:
    """Return an instance with a finalizer, so that it can be read after its end."""
    template = a_vm(name)["spec"]["template"]
    about = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance"}
    return about | {"metadata": {"name": name, "namespace": "default", "finalizers": [KEPT]}, "spec": template["spec"]}


@pytest.fixture(scope="module", autouse=True)
def machines(cluster: Cluster) -> Iterator[None]:
    """Create every machine of this module at once; delete all of them afterwards."""
    disk = a_vm("diskless", runStrategy="RerunOnFailure")
    spec = disk["spec"]["template"]["spec"]
    spec["domain"]["devices"]["disks"].append({"name": "data", "disk": {"bus": "virtio"}})
    spec["volumes"].append({"name": "data", "persistentVolumeClaim": {"claimName": "rerun"}})
    cluster.apply(an_instance("polite"), an_instance("podless-instance"), an_instance("operated"))
    cluster.apply(a_claim("rerun", "Filesystem"), disk)
    yield
    for vmi in cluster.list("vmi", "-n", "default"):
        if KEPT in vmi["metadata"].get("finalizers", ()):
            remove_finalizer(cluster, vmi["metadata"]["name"])
    cluster.kubectl("delete", "pvc", "rerun", "--wait=false")


def remove_finalizer(cluster: Cluster, name: str) -> None:
    """Remove the finalizer of the test."""
    finalizers = cluster.get("vmi", name)["metadata"]["finalizers"]  # type: ignore[index]
    path = f"/metadata/finalizers/{finalizers.index(KEPT)}"
    cluster.kubectl("patch", "vmi", name, "--type", "json", "-p", f'[{{"op": "remove", "path": "{path}"}}]')


def is_deleted_without_finalizer(cluster: Cluster, name: str) -> None:
    """Check that nothing else keeps an instance."""
    remove_finalizer(cluster, name)
    cluster.wait_gone("vmi", name)


def booted_uid(cluster: Cluster, name: str) -> str:
    """Wait until a guest has booted, and return the UID of its instance: before that it ignores the power button."""
    uid: str = cluster.running(name)["metadata"]["uid"]
    pod = cluster.launcher(name)["metadata"]["name"]
    cluster.eventually(lambda: cluster.counter(pod), what=f"the guest of {name} counts")
    return uid


def test_an_instance_deleted_gracefully_has_succeeded_within_its_grace_period(cluster: Cluster) -> None:
    uid = booted_uid(cluster, "polite")

    cluster.kubectl("delete", "vmi", "polite", "--wait=false")

    cluster.wait("vmi", "polite", ".status.phase", "Succeeded")
    assert not any("grace period" in message for _unused, _unused, message in cluster.events(uid))
    is_deleted_without_finalizer(cluster, "polite")


def test_an_instance_whose_pod_is_deleted_has_ended(cluster: Cluster) -> None:
    uid = booted_uid(cluster, "podless-instance")

    cluster.kubectl("delete", "pod", cluster.launcher("podless-instance")["metadata"]["name"], "--wait=false")

    ended = ("Succeeded", "Failed")
    cluster.eventually(
        lambda: cluster.get("vmi", "podless-instance")["status"]["phase"] in ended,  # type: ignore[index]
        what="podless-instance has ended",
    )
    assert uid not in cluster.emulators()
    cluster.kubectl("delete", "vmi", "podless-instance", "--wait=false")
    is_deleted_without_finalizer(cluster, "podless-instance")


def test_a_stopped_machine_whose_claim_is_recreated_stays_stopped_until_it_is_started(cluster: Cluster) -> None:
    cluster.running("diskless")
    cluster.subresource("diskless", "stop", body='{"gracePeriod": 0}')
    cluster.wait("vm", "diskless", ".status.printableStatus", "Stopped")

    cluster.kubectl("delete", "pvc", "rerun")
    cluster.apply(a_claim("rerun", "Filesystem"), a_vm("meanwhile"))
    cluster.running("meanwhile")
    assert cluster.get("vmi", "diskless") is None, "a wrong start would have come before that of the other machine"
    cluster.wait("vm", "diskless", ".status.printableStatus", "Stopped")

    cluster.subresource("diskless", "start")
    cluster.running("diskless")
    cluster.kubectl("delete", "vm/diskless", "vm/meanwhile", "--wait=false")


def test_a_guest_is_operated_after_a_kill_of_its_libvirtd(cluster: Cluster) -> None:
    uid = cluster.running("operated")["metadata"]["uid"]
    pod = cluster.launcher("operated")

    assert cluster.kill("libvirtd", pod["metadata"]["uid"]) == 1

    cluster.eventually(
        lambda: cluster.subresource("operated", "pause", of="virtualmachineinstances") is None,
        what="operated can be paused",
    )
    cluster.wait("vmi", "operated", '.status.conditions[?(@.type=="Paused")].reason', "PausedByUser")
    cluster.subresource("operated", "unpause", of="virtualmachineinstances")
    counted = cluster.counter(pod["metadata"]["name"])
    cluster.eventually(lambda: cluster.counter(pod["metadata"]["name"]) > counted, what="it counts on")
    assert (cluster.running("operated")["metadata"]["uid"], cluster.emulators().count(uid)) == (uid, 1)


def test_repeated_requests_to_a_node_leave_nothing_behind(cluster: Cluster) -> None:
    """Each request has its own connection."""
    cluster.wait("vmi", "operated", '.status.conditions[?(@.type=="AgentConnected")].status', "True")
    path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/operated/userlist"
    node = cluster.launcher("operated")["spec"]["nodeName"]

    def open_descriptors() -> int:
        return max(map(int, cluster.on_node(node, DESCRIPTORS, "-m controlplane.virt_handler").split()))

    cluster.kubectl("get", "--raw", path)
    before = open_descriptors()
    for _each in range(QUESTIONS):
        cluster.kubectl("get", "--raw", path)

    cluster.eventually(lambda: open_descriptors() < before + QUESTIONS // 2, what="virt-handler has closed connections")
    cluster.kubectl("delete", "vmi", "operated", "--wait=false")
    is_deleted_without_finalizer(cluster, "operated")
