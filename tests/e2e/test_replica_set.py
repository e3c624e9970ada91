# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A replica set of real guests, scaled by kubectl."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = [pytest.mark.lab, pytest.mark.nightly]


def a_set(name: str, replicas: int = 0) -> str:
    """Return a set of the usual small guest."""
    template: dict[str, Any] = a_vm(name)["spec"]["template"]
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"name": name, "namespace": "default"}
    kind = "VirtualMachineInstanceReplicaSet"
    return json.dumps({"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": meta, "spec": spec})


def test_a_set_is_scaled_from_zero_to_three_guests_and_down_to_one(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", given=a_set("crowd"))
    cluster.kubectl("scale", "vmirs/crowd", "--replicas=3")
    cluster.wait("vmirs", "crowd", ".status.readyReplicas", "3")
    vmis = cluster.list("vmi", "-l", "app=crowd")
    assert [vmi["status"]["phase"] for vmi in vmis] == ["Running"] * 3
    assert len({vmi["spec"]["domain"]["firmware"]["uuid"] for vmi in vmis}) == 3

    cluster.kubectl("scale", "vmirs/crowd", "--replicas=1")
    for name in sorted(vmi["metadata"]["name"] for vmi in vmis)[:2]:
        cluster.wait_gone("vmi", name)
    (last,) = cluster.list("vmi", "-l", "app=crowd")
    assert last["status"]["phase"] == "Running"

    cluster.kubectl("delete", "vmirs", "crowd")
    cluster.wait_gone("vmi", last["metadata"]["name"])


def instances(cluster: Cluster, name: str) -> dict[str, tuple[str, str]]:
    """Return name, UID and phase of each instance of a set."""
    vmis = cluster.list("vmi", "-l", f"app={name}")
    return {vmi["metadata"]["name"]: (vmi["metadata"]["uid"], vmi["status"].get("phase", "")) for vmi in vmis}


def test_members_that_no_longer_count_are_replaced_unless_the_set_is_paused(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", given=a_set("crew", replicas=2))
    cluster.wait("vmirs", "crew", ".status.readyReplicas", "2")
    first = instances(cluster, "crew")
    failing, losing = sorted(first)

    assert cluster.kill("qemu", first[failing][0]) == 1
    cluster.kubectl("delete", "pod", cluster.launcher(losing)["metadata"]["name"], "--wait=false")
    for name in first:
        cluster.wait_gone("vmi", name)
    cluster.wait("vmirs", "crew", ".status.readyReplicas", "2")
    second = instances(cluster, "crew")
    assert len(second) == 2

    cluster.kubectl("patch", "vmirs", "crew", "--type", "merge", "-p", '{"spec": {"paused": true}}')
    cluster.wait("vmirs", "crew", '.status.conditions[?(@.type=="ReplicaPaused")].status', "True")
    failing, staying = sorted(second)
    assert cluster.kill("qemu", second[failing][0]) == 1
    cluster.wait("vmi", failing, ".status.phase", "Failed")
    cluster.wait("vmirs", "crew", ".status.replicas", "1")
    assert instances(cluster, "crew") == {failing: (second[failing][0], "Failed"), staying: second[staying]}

    cluster.kubectl("patch", "vmirs", "crew", "--type", "merge", "-p", '{"spec": {"paused": false}}')
    cluster.wait_gone("vmi", failing)
    cluster.wait("vmirs", "crew", ".status.readyReplicas", "2")
    assert staying in instances(cluster, "crew")
    cluster.kubectl("delete", "vmirs", "crew")
