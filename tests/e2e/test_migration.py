# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests that move between two nodes while they run: by a person's wish, by an eviction, and through faults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.chaos.migrations import migrations
from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

SAMPLE, SEED = 20, 20261127
"""Migrations with a fault in each; the whole by `make chaos MIGRATIONS=200`."""


def granted(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return the Pod that a VMI names as its own."""
    vmi = cluster.get("vmi", name)
    assert vmi is not None
    (uid,) = vmi["status"]["activePods"]
    label = f"kubevirt.io/created-by={vmi['metadata']['uid']}"
    return next(one for one in cluster.list("pods", "-n", "default", "-l", label) if one["metadata"]["uid"] == uid)


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


def test_a_guest_that_moves_counts_on_elsewhere_as_the_same_instance(nodes: Cluster) -> None:
    nodes.apply(a_vm("mover", user_data="#!/bin/sh\ntrue\n"))
    before = nodes.running("mover")
    first = granted(nodes, "mover")
    nodes.eventually(lambda: counts_on(nodes, "mover", 0), seconds=60, what="it counts")
    counted = nodes.counter(first["metadata"]["name"])

    nodes.wait("vmim", migrate(nodes, "mover"), ".status.phase", "Succeeded")

    after = nodes.running("mover")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["nodeName"] != before["status"]["nodeName"]
    assert after["status"]["epoch"] == before["status"]["epoch"] + 1
    assert after["status"]["interfaces"][0]["mac"] == before["status"]["interfaces"][0]["mac"]
    second = granted(nodes, "mover")
    assert after["status"]["interfaces"][0]["ipAddress"] == second["status"]["podIP"]
    nodes.eventually(lambda: counts_on(nodes, "mover", counted), seconds=30, what="it counts on")
    nodes.wait_gone("pod", first["metadata"]["name"])
    assert nodes.emulators() == [before["metadata"]["uid"]]


def test_a_migration_that_finds_no_node_is_cancelled_by_its_deletion_and_nothing_has_moved(nodes: Cluster) -> None:
    before = nodes.running("mover")
    elsewhere = next(one for one in nodes.nodes if one != before["status"]["nodeName"])
    nodes.kubectl("cordon", elsewhere)
    try:
        name = migrate(nodes, "mover")
        nodes.wait("vmim", name, ".status.phase", "Scheduling")
        nodes.kubectl("delete", "vmim", name, "--timeout=60s")
    finally:
        nodes.kubectl("uncordon", elsewhere)
    after = nodes.running("mover")
    assert after["status"]["activePods"] == before["status"]["activePods"]
    nodes.eventually(lambda: len(nodes.list("pods", "-n", "default")) == 1, seconds=30, what="its Pod alone is left")


def test_a_drain_moves_a_guest_that_is_to_go_on(nodes: Cluster) -> None:
    vm = a_vm("stays")
    vm["spec"]["template"]["spec"]["evictionStrategy"] = "LiveMigrate"
    nodes.apply(vm)
    before = nodes.running("stays")
    leaves = before["status"]["nodeName"]
    try:
        nodes.kubectl(
            *("drain", leaves, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=90s"),
            "--pod-selector=kubevirt.io=virt-launcher,vmi.kubevirt.io/id=stays",
        )
        after = nodes.running("stays")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["nodeName"] != leaves
        assert "evacuationNodeName" not in after["status"]
    finally:
        nodes.kubectl("uncordon", leaves)
        nodes.kubectl("delete", "vm", "--all", "-n", "default", "--timeout=60s")


def test_migrations_with_a_fault_in_each_lose_no_guest_and_double_none(nodes: Cluster) -> None:
    assert migrations(nodes, count=SAMPLE, seed=SEED, say=print) == []
