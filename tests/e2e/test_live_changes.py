# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a running machine: it migrates to the allowed nodes, and its guest gets new CPUs and memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

TAKES_CPUS = """#!/bin/sh
while sleep 1; do
    for cpu in /sys/devices/system/cpu/cpu*/online; do echo 1 >$cpu; done 2>/dev/null
    has=$(grep -c ^processor /proc/cpuinfo)
    [ "$has" = "$had" ] || echo "it has $has CPUs"
    had=$has
done &
"""
"""Enables new CPUs as a distribution's udev rule does, and prints their number after each change."""


def change(cluster: Cluster, machine: str = "grower", **template: Any) -> None:
    patch = {"spec": {"template": {"spec": template}}}
    cluster.kubectl("patch", "vm", machine, "--type=merge", "--patch", json.dumps(patch))


def conditions(cluster: Cluster, kind: str, machine: str = "grower") -> dict[str, str]:
    """Return the conditions by type."""
    obj = cluster.get(kind, machine)
    assert obj is not None
    return {condition["type"]: condition.get("message", "") for condition in obj["status"].get("conditions", ())}


def topology(cluster: Cluster) -> tuple[str, int]:
    vmi = cluster.get("vmi", "grower")
    assert vmi is not None
    return vmi["status"]["nodeName"], vmi["status"]["currentCPUTopology"]["sockets"]


def test_a_guest_gets_another_cpu_on_the_node_that_its_vm_now_selects(nodes: Cluster) -> None:
    nodes.apply(a_vm("grower", user_data=TAKES_CPUS))
    before = nodes.running("grower")
    first = nodes.launcher("grower")["metadata"]["name"]
    nodes.eventually(lambda: nodes.counter(first) > 0, what="it counts")
    elsewhere = next(node for node in nodes.nodes if node != before["status"]["nodeName"])

    change(nodes, nodeSelector={"kubernetes.io/hostname": elsewhere})
    nodes.wait("vmi", "grower", r".spec.nodeSelector.kubernetes\.io/hostname", elsewhere)
    assert "RestartRequired" not in conditions(nodes, "vm")
    assert nodes.list("vmim", "-n", "default") == [], "a node selector alone starts no migration"
    counted = nodes.counter(first)

    change(nodes, domain={"cpu": {"sockets": 2}})
    nodes.eventually(lambda: topology(nodes) == (elsewhere, 2), what="it has migrated and has its CPU")
    second = nodes.launcher("grower")["metadata"]["name"]
    with nodes.console(second) as console:
        console.expect("it has 2 CPUs")
    nodes.eventually(lambda: nodes.counter(second) > counted, what="it counts on")
    nodes.eventually(lambda: "HotVCPUChange" not in conditions(nodes, "vmi"), what="the change is over")
    after = nodes.running("grower")
    assert (after["metadata"]["uid"], after["status"]["epoch"]) == (before["metadata"]["uid"], 2), "it moved once"
    assert "RestartRequired" not in conditions(nodes, "vm")


def test_removing_a_socket_needs_a_restart(nodes: Cluster) -> None:
    change(nodes, domain={"cpu": {"sockets": 1}})
    nodes.eventually(lambda: "RestartRequired" in conditions(nodes, "vm"), what="RestartRequired is set")
    assert "none can be removed while it runs" in conditions(nodes, "vm")["RestartRequired"]
    change(nodes, domain={"cpu": {"sockets": 2}})
    nodes.eventually(lambda: "RestartRequired" not in conditions(nodes, "vm"), what="RestartRequired is removed")
    assert topology(nodes)[1] == 2


def memory(cluster: Cluster) -> dict[str, str]:
    """Return the guest's sizes; what its Pod needs beside them depends on the machine."""
    vmi = cluster.get("vmi", "swelling")
    assert vmi is not None
    return {name: size for name, size in vmi["status"]["memory"].items() if name != "memoryOverhead"}


def test_guest_memory_grows_and_shrinks_within_the_limit_of_its_pod(nodes: Cluster) -> None:
    """The kernel of the test guest has no driver for the device, so its memory does not change."""
    machine = a_vm("swelling")
    machine["spec"]["template"]["spec"]["domain"]["memory"] = {"guest": "1Gi"}
    nodes.apply(machine)
    before = nodes.running("swelling")
    assert memory(nodes) == {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}
    for epoch, size in ((2, "2Gi"), (3, "1Gi")):
        pod = nodes.launcher("swelling")["metadata"]["name"]
        nodes.eventually(lambda pod=pod: nodes.counter(pod) > 0, what="it counts")
        counted = nodes.counter(pod)
        change(nodes, "swelling", domain={"memory": {"guest": size}})
        nodes.eventually(lambda size=size: memory(nodes)["guestRequested"] == size, what="the new size is requested")
        after = nodes.running("swelling")
        assert (after["metadata"]["uid"], after["status"]["epoch"]) == (before["metadata"]["uid"], epoch)
        launcher = nodes.launcher("swelling")
        nodes.eventually(
            lambda pod=launcher, counted=counted: nodes.counter(pod["metadata"]["name"]) > counted,
            what="it counts on",
        )
        nodes.eventually(
            lambda: "HotMemoryChange" not in conditions(nodes, "vmi", "swelling"), what="the change is over"
        )
        assert "RestartRequired" not in conditions(nodes, "vm", "swelling")


def test_more_memory_than_the_limit_needs_a_restart(nodes: Cluster) -> None:
    change(nodes, "swelling", domain={"memory": {"guest": "5Gi"}})
    nodes.eventually(lambda: "RestartRequired" in conditions(nodes, "vm", "swelling"), what="RestartRequired is set")
    assert "it can have 4Gi at most while it runs (maxGuest)" in conditions(nodes, "vm", "swelling")["RestartRequired"]
