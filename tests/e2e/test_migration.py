# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running guests move between two nodes: by a user's request, by an eviction, and through faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from kubevirt_api.close_codes import MOVED

from tests.chaos.migrations import migrations
from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.machines import a_vm
from tests.e2e.streams import stream
from tests.e2e.test_claims import a_claim, a_claiming_vm

pytestmark = pytest.mark.lab

SAMPLE, SEED = 20, 20261127
"""Migrations with one fault each; many more with `make chaos MIGRATIONS=200`."""

READS_ITS_DISK = """#!/bin/sh
printf kept | dd of=/dev/vdb conv=notrunc,fsync 2>/dev/null
while sleep 1; do
  echo 3 >/proc/sys/vm/drop_caches
  echo "vdb has $(head -c 4 /dev/vdb)"
done
"""


def granted(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return the Pod that a VMI names as its own."""
    vmi = cluster.get("vmi", name)
    assert vmi is not None
    (uid,) = vmi["status"]["activePods"]
    label = f"kubevirt.io/created-by={vmi['metadata']['uid']}"
    return next(pod for pod in cluster.list("pods", "-n", "default", "-l", label) if pod["metadata"]["uid"] == uid)


def migrate(cluster: Cluster, name: str) -> str:
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {"generateName": f"{name}-", "namespace": "default"},
        "spec": {"vmiName": name},
    }
    return cluster.kubectl("create", "-f", "-", "-o", "jsonpath={.metadata.name}", given=json.dumps(body))


def counts_on(cluster: Cluster, name: str, before: int) -> bool:
    return cluster.counter(granted(cluster, name)["metadata"]["name"]) > before


def test_a_guest_goes_on_counting_after_a_migration_as_the_same_instance(nodes: Cluster) -> None:
    nodes.apply(a_vm("mover", user_data="#!/bin/sh\ntrue\n"))
    before = nodes.running("mover")
    first = granted(nodes, "mover")
    nodes.eventually(lambda: counts_on(nodes, "mover", 0), what="it counts")
    counted = nodes.counter(first["metadata"]["name"])

    with stream(nodes.kubeconfig, "mover", "console") as console:
        nodes.wait("vmim", migrate(nodes, "mover"), ".status.phase", "Succeeded")
        ended = console.end()

    after = nodes.running("mover")
    assert ended == (MOVED, f"the guest moved to node {after['status']['nodeName']}: connect again")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["nodeName"] != before["status"]["nodeName"]
    assert after["status"]["epoch"] == before["status"]["epoch"] + 1
    assert after["status"]["interfaces"][0]["mac"] == before["status"]["interfaces"][0]["mac"]
    second = granted(nodes, "mover")
    # virt-handler of the target writes it, after virt-controller has ended the migration.
    nodes.wait("vmi", "mover", ".status.interfaces[0].ipAddress", second["status"]["podIP"])
    nodes.eventually(lambda: counts_on(nodes, "mover", counted), what="it counts on")
    nodes.wait_gone("pod", first["metadata"]["name"])
    assert nodes.emulators() == [before["metadata"]["uid"]]


def test_services_follow_the_guest_and_the_machine_stays_ready(nodes: Cluster) -> None:
    before = nodes.running("mover")
    since = before["metadata"]["resourceVersion"]
    nodes.eventually(lambda: is_true(nodes.get("vmi", "mover"), "Ready"), what="it is ready")

    nodes.wait("vmim", migrate(nodes, "mover"), ".status.phase", "Succeeded")

    second = granted(nodes, "mover")["metadata"]
    nodes.wait("pod", second["name"], '.status.conditions[?(@.type=="Ready")].status', "True")
    vmi_versions = [
        version for version in written(nodes, VMIS, since) if version["metadata"]["uid"] == before["metadata"]["uid"]
    ]
    pod_versions = [version for version in written(nodes, PODS, since) if version["metadata"]["uid"] == second["uid"]]
    containers_ready = first(pod_versions, lambda version: is_true(version, "ContainersReady"))
    granted_at = first(vmi_versions, lambda version: second["uid"] in version["status"]["activePods"])
    ready = first(pod_versions, lambda version: is_true(version, "Ready"))
    assert containers_ready < granted_at < ready
    assert [version for version in vmi_versions if not is_true(version, "Ready")] == []


VMIS, PODS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances", "/api/v1/namespaces/default/pods"


def written(cluster: Cluster, path: str, since: str) -> list[dict[str, Any]]:
    """Return all versions of the objects of a kind since then; the API server keeps them for some minutes."""
    output = cluster.kubectl("get", "--raw", f"{path}?watch=1&resourceVersion={since}&timeoutSeconds=2")
    return [json.loads(line)["object"] for line in output.splitlines()]


def is_true(body: dict[str, Any] | None, kind: str) -> bool:
    conditions = [] if body is None else body.get("status", {}).get("conditions", [])
    return any((condition["type"], condition["status"]) == (kind, "True") for condition in conditions)


def first(versions: list[dict[str, Any]], is_so: Callable[[dict[str, Any]], bool]) -> int:
    """Return the number of the first version that matches; the numbers are comparable across kinds in one etcd."""
    return next(int(version["metadata"]["resourceVersion"]) for version in versions if is_so(version))


@pytest.mark.nightly
def test_a_migration_without_a_node_is_cancelled_by_its_deletion(nodes: Cluster) -> None:
    before = nodes.running("mover")
    elsewhere = next(node for node in nodes.nodes if node != before["status"]["nodeName"])
    nodes.kubectl("cordon", elsewhere)
    try:
        name = migrate(nodes, "mover")
        nodes.wait("vmim", name, ".status.phase", "Scheduling")
        nodes.kubectl("delete", "vmim", name, f"--timeout={LIMIT_SECONDS}s")
    finally:
        nodes.kubectl("uncordon", elsewhere)
    after = nodes.running("mover")
    assert after["status"]["activePods"] == before["status"]["activePods"]
    nodes.eventually(lambda: len(nodes.list("pods", "-n", "default")) == 1, what="only its Pod is left")


def test_a_drain_moves_a_guest_with_live_migration(nodes: Cluster) -> None:
    vm = a_vm("stays")
    vm["spec"]["template"]["spec"]["evictionStrategy"] = "LiveMigrate"
    nodes.apply(vm)
    before = nodes.running("stays")
    leaves = before["status"]["nodeName"]
    try:
        nodes.kubectl(
            *("drain", leaves, "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={LIMIT_SECONDS}s"),
            "--pod-selector=kubevirt.io=virt-launcher,vmi.kubevirt.io/id=stays",
        )
        after = nodes.running("stays")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["nodeName"] != leaves
        assert "evacuationNodeName" not in after["status"]
    finally:
        nodes.kubectl("uncordon", leaves)
        nodes.kubectl("delete", "vm", "--all", "-n", "default", f"--timeout={LIMIT_SECONDS}s")


def test_a_guest_with_a_file_on_a_shared_claim_moves_without_a_copy_of_it(nodes: Cluster) -> None:
    claim = a_claim("both", "Filesystem")
    claim["spec"] |= {"accessModes": ["ReadWriteMany"], "storageClassName": "shared"}
    nodes.apply(claim, a_claiming_vm("sharer", "both", user_data=READS_ITS_DISK))
    before = nodes.running("sharer")
    with nodes.console(granted(nodes, "sharer")["metadata"]["name"]) as console:
        console.expect("vdb has kept")
    nodes.eventually(lambda: is_true(nodes.get("vmi", "sharer"), "LiveMigratable"), what="it can migrate")

    nodes.wait("vmim", migrate(nodes, "sharer"), ".status.phase", "Succeeded")

    assert nodes.running("sharer")["status"]["nodeName"] != before["status"]["nodeName"]
    with nodes.console(granted(nodes, "sharer")["metadata"]["name"]) as console:
        console.expect("vdb has kept")
    nodes.kubectl("delete", "vm/sharer", "pvc/both", "-n", "default", f"--timeout={LIMIT_SECONDS}s")


@pytest.mark.nightly
def test_migrations_with_one_fault_each_lose_and_duplicate_no_guest(nodes: Cluster) -> None:
    assert migrations(nodes, count=SAMPLE, seed=SEED, say=print) == []
