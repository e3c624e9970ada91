# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A set of real guests, scaled by kubectl."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab


def a_set(name: str) -> str:
    """Return a set of the usual small guest, of none at first."""
    template: dict[str, Any] = a_vm(name)["spec"]["template"]
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": template}
    meta = {"name": name, "namespace": "default"}
    kind = "VirtualMachineInstanceReplicaSet"
    return json.dumps({"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": meta, "spec": spec})


def test_a_set_is_scaled_from_none_to_three_guests_and_down_to_one(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", given=a_set("crowd"))
    cluster.kubectl("scale", "vmirs/crowd", "--replicas=3")
    cluster.wait("vmirs", "crowd", ".status.readyReplicas", "3", seconds=120)
    three = cluster.list("vmi", "-l", "app=crowd")
    assert [one["status"]["phase"] for one in three] == ["Running"] * 3
    assert len({one["spec"]["domain"]["firmware"]["uuid"] for one in three}) == 3

    cluster.kubectl("scale", "vmirs/crowd", "--replicas=1")
    for name in sorted(one["metadata"]["name"] for one in three)[:2]:
        cluster.wait_gone("vmi", name)
    (last,) = cluster.list("vmi", "-l", "app=crowd")
    assert last["status"]["phase"] == "Running"

    cluster.kubectl("delete", "vmirs", "crowd")
    cluster.wait_gone("vmi", last["metadata"]["name"])
