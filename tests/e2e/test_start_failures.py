# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that cannot start: the reported reason, the retries, and the start after a repair.

Missing claims and Secrets are in test_claims.py and test_malformed.py, failing DataVolumes in
tests/controlplane/virt_controller/test_real_data_volumes.py.
"""

from __future__ import annotations

import json
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.audit import times
from tests.e2e.cluster import Cluster
from tests.e2e.machines import GUEST, Manifest, a_vm
from tests.e2e.node_images import images

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

LATER = "localhost/virtops/later:0.1.0"
BACK_OFF_SECONDS = 10
"""After the first failure; it grows by the square of their number."""
A_STAMP = 1.0
"""Timestamps in a status have whole seconds."""
PRINTABLE = ".status.printableStatus"


def a_vm_without_a_disk(name: str, namespace: str) -> Manifest:
    """Return a VM whose launcher ends at once: its image has no such file."""
    vm = a_vm(name, namespace=namespace)
    vm["spec"]["template"]["spec"]["volumes"][0]["containerDisk"]["path"] = "/disk/no-such.img"
    return vm


@pytest.fixture(scope="module")
def unstartable(cluster: Cluster) -> None:
    """Machines that do not start: for their size, for their image, for their launcher."""
    too_large, no_image = a_vm("too-large"), a_vm("no-image")
    too_large["spec"]["template"]["spec"]["domain"]["memory"]["guest"] = "8Ti"
    no_image["spec"]["template"]["spec"]["volumes"][0]["containerDisk"]["image"] = LATER
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "crashing"}}
    crashing = a_vm_without_a_disk("crashing", "crashing")
    cluster.apply(namespace, crashing, too_large, no_image)


def change(cluster: Cluster, name: str, path: str, value: Any) -> None:
    patch = [{"op": "replace", "path": f"/spec/template/spec/{path}", "value": value}]
    cluster.kubectl("patch", "vm", name, "--type", "json", "-p", json.dumps(patch))


@pytest.fixture(scope="module")
def repaired(cluster: Cluster, unstartable: None) -> dict[str, str]:
    """Repair two machines after they have reported their problem; return the UIDs of their instances before."""
    cluster.wait("vm", "too-large", PRINTABLE, "ErrorUnschedulable")
    cluster.wait("vm", "no-image", PRINTABLE, "ImagePullBackOff")
    uids = {name: cluster.get("vmi", name)["metadata"]["uid"] for name in ("too-large", "no-image")}  # type: ignore[index]
    change(cluster, "too-large", "domain/memory/guest", "96Mi")
    cluster.subresource("too-large", "restart")
    images(cluster, cluster.nodes[0], "tag", GUEST, LATER)
    return uids


def test_a_machine_whose_launcher_fails_runs_after_a_repair_of_its_template(
    cluster: Cluster,
) -> None:
    cluster.apply(a_vm_without_a_disk("mended", "default"))
    cluster.wait("vm", "mended", PRINTABLE, "CrashLoopBackOff")

    change(cluster, "mended", "volumes/0/containerDisk/path", "/disk/guest.img")

    cluster.wait("vm", "mended", PRINTABLE, "Running")
    vm = cluster.get("vm", "mended")
    assert vm is not None
    assert "startFailure" not in vm["status"]
    cluster.kubectl("delete", "vm", "mended", "--wait=false")


def test_a_machine_too_large_for_every_node_runs_when_it_requests_less(
    cluster: Cluster, repaired: dict[str, str]
) -> None:
    cluster.another("too-large", repaired["too-large"])
    cluster.wait("vm", "too-large", PRINTABLE, "Running")
    cluster.kubectl("delete", "vm", "too-large", "--wait=false")


def test_a_machine_without_its_image_waits_for_it(cluster: Cluster, repaired: dict[str, str]) -> None:
    cluster.wait("vm", "no-image", PRINTABLE, "Running")
    assert cluster.running("no-image")["metadata"]["uid"] == repaired["no-image"]
    cluster.kubectl("delete", "vm", "no-image")
    images(cluster, cluster.nodes[0], "remove", LATER)


def failures(cluster: Cluster) -> int:
    vm = cluster.get("vm", "crashing", "crashing")
    assert vm is not None
    return int(vm["status"].get("startFailure", {}).get("consecutiveFailCount", 0))


def test_a_machine_whose_launcher_fails_is_retried_with_back_off_until_it_is_stopped(
    cluster: Cluster, unstartable: None
) -> None:
    """At 0, 10 and 50 s, then after 90 s more: at most three Pods in a minute."""
    cluster.eventually(lambda: failures(cluster) >= 2, what="its start has failed twice")
    cluster.wait("vm", "crashing", PRINTABLE, "CrashLoopBackOff", namespace="crashing")
    vm = cluster.get("vm", "crashing", "crashing")
    assert vm is not None
    following = datetime.fromisoformat(vm["status"]["startFailure"]["retryAfterTimestamp"])
    begun = [*times(cluster.audit_log, "crashing", "pods"), following]
    pauses = [(later - earlier).total_seconds() for earlier, later in pairwise(begun)]
    assert len(pauses) >= 2
    assert [took for number, took in enumerate(pauses, 1) if took < BACK_OFF_SECONDS * number**2 - A_STAMP] == []

    cluster.subresource("crashing", "stop", "crashing")

    cluster.wait("vm", "crashing", PRINTABLE, "Stopped", namespace="crashing")
    cluster.wait_gone("vmi", "crashing", namespace="crashing")
    cluster.kubectl("delete", "namespace", "crashing", "--wait=false")
