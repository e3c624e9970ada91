# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pool on a real API server, with virt-controller's own account."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.controlplane.virt_controller.test_real_api import Cluster, cluster

__all__ = ["cluster"]  # the fixture
pytestmark = pytest.mark.component

LABELS = {"app": "pool"}
POOL: dict[str, Any] = {
    "apiVersion": "pool.kubevirt.io/v1beta1",
    "kind": "VirtualMachinePool",
    "metadata": {"name": "pool", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "virtualMachineTemplate": {
            "metadata": {"labels": LABELS},
            "spec": {
                "runStrategy": "Always",
                "template": {
                    "metadata": {"labels": LABELS},
                    "spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}, "nodeSelector": {"no": "where"}},
                },
            },
        },
    },
}


def machines(cluster: Cluster) -> list[str]:
    listed = json.loads(cluster.kubectl("get", "vm", "-l", "app=pool", "-o", "json"))["items"]
    return [body["metadata"]["name"] for body in listed]


def test_a_pool_is_scaled_by_kubectl_updated_and_deleted(cluster: Cluster) -> None:
    with cluster.controller("one"):
        cluster.kubectl("create", "-f", "-", body=POOL)
        cluster.wait("vmpool/pool", ".status.replicas", "1")
        cluster.kubectl("scale", "vmpool/pool", "--replicas=3")
        cluster.wait("vmpool/pool", ".status.replicas", "3")
        assert machines(cluster) == ["pool-0", "pool-1", "pool-2"]
        for name in machines(cluster):
            cluster.appear(f"vmi/{name}")
        before = cluster.get("vm", "pool-1")["spec"]["template"]["spec"]["domain"]["firmware"]

        run = cluster.get("vmi", "pool-1")["metadata"]["uid"]
        changed = {"virtualMachineTemplate": {"spec": {"template": {"spec": {"hostname": "other"}}}}}
        cluster.kubectl("patch", "vmpool/pool", "--type=merge", "-p", json.dumps({"spec": changed}))
        for name in machines(cluster):
            cluster.wait(f"vm/{name}", ".spec.template.spec.hostname", "other")
            cluster.wait(f"vmi/{name}", ".spec.hostname", "other")
        assert cluster.get("vm", "pool-1")["spec"]["template"]["spec"]["domain"]["firmware"] == before
        assert cluster.get("vmi", "pool-1")["metadata"]["uid"] != run

        ascending = {"proactive": {"selectionPolicy": {"sortPolicy": "AscendingOrder"}}}
        fewer = {"replicas": 1, "scaleInStrategy": ascending}
        cluster.kubectl("patch", "vmpool/pool", "--type=merge", "-p", json.dumps({"spec": fewer}))
        cluster.kubectl("wait", "vm/pool-0", "vm/pool-1", "--for=delete", "--timeout=300s")
        cluster.wait("vmpool/pool", ".status.replicas", "1")
        assert machines(cluster) == ["pool-2"]

        old = json.loads(cluster.kubectl("get", "virtualmachinepools.v1alpha1.pool.kubevirt.io", "pool", "-o", "json"))
        assert old["spec"] == cluster.get("vmpool", "pool")["spec"]
        # The garbage collector learns of new kinds late; before that it orphans no dependents and deletes later.
        first = {**POOL, "metadata": {"name": "first", "namespace": "default"}}
        cluster.kubectl("create", "-f", "-", body=first)
        cluster.appear("vm/first-0")
        cluster.kubectl("delete", "vmpool", "first")
        cluster.kubectl("wait", "vm/first-0", "--for=delete", "--timeout=300s")
        cluster.kubectl("delete", "vmpool", "pool", "--cascade=orphan", "--timeout=300s")
        assert "ownerReferences" not in cluster.get("vm", "pool-2")["metadata"]
        cluster.kubectl("delete", "vm", "pool-2", "--timeout=300s")

        cluster.kubectl("create", "-f", "-", body=POOL)
        cluster.appear("vm/pool-0")
        cluster.kubectl("delete", "vmpool", "pool", "--cascade=foreground", "--timeout=300s")
        assert machines(cluster) == []
