# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade on a real API server, by two virt-controllers with their own account: RBAC, labels, migration, eviction.

The one node has no kubelet: the test binds Pods, and reports for kubelet and virt-handler. It also applies the role's
strategy by server-side apply, as the role does.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from kubevirt_api.names import CONTROL_PLANE_IMAGE, OUTDATED_LAUNCHER, SCHEDULABLE

from tests.controlplane.virt_api.test_manifests import render
from tests.controlplane.virt_controller.test_real_api import INSTALL_NAMESPACE, Cluster, cluster
from tests.controlplane.virt_controller.test_real_migration import VMI, come_up

__all__ = ["cluster"]
pytestmark = pytest.mark.component

NEXT = {"VIRT_LAUNCHER_IMAGE": "localhost/virtops/virt-launcher:next", "CONTROL_PLANE_IMAGE": "plane:2"}
COUNT = ".status.outdatedVirtualMachineInstanceWorkloads"
MIGRATABLE = {"type": "LiveMigratable", "reason": "", "message": ""}


def apply(cluster: Cluster, **options: Any) -> None:
    """Apply the KubeVirt object as the role does."""
    (body,) = render("kubevirt.yaml.j2", control_plane_namespace=INSTALL_NAMESPACE, **options)
    how = ("--server-side", "--field-manager=virtops.kubevirt", "--force-conflicts")
    cluster.kubectl("apply", *how, "-f", "-", body=body)


def set_strategy(cluster: Cluster, *methods: str) -> None:
    """Write the strategy as a user does."""
    spec = {"workloadUpdateStrategy": {"workloadUpdateMethods": methods}}
    cluster.kubectl(
        "-n", INSTALL_NAMESPACE, "patch", "kubevirt/kubevirt", "--type=merge", "-p", json.dumps({"spec": spec})
    )


def strategy_of(cluster: Cluster) -> dict[str, Any]:
    kubevirt = json.loads(cluster.kubectl("-n", INSTALL_NAMESPACE, "get", "kubevirt/kubevirt", "-o", "json"))
    strategy: dict[str, Any] = kubevirt["spec"].get("workloadUpdateStrategy", {})
    return strategy


def run(cluster: Cluster, name: str, migratable: str) -> str:
    """Bring a machine to Running; return the name of its Pod."""
    cluster.kubectl("create", "-f", "-", body={**VMI, "metadata": {"name": name, "namespace": "default"}})
    pod = f"virt-launcher-{name}-{cluster.get('vmi', name)['metadata']['uid'][:8]}-1"
    come_up(cluster, pod, "node-1")
    cluster.wait(f"vmi/{name}", ".status.phase", "Scheduled")
    cluster.report(f"vmi/{name}", {"phase": "Running", "conditions": [{**MIGRATABLE, "status": migratable}]})
    return pod


def event_reasons(cluster: Cluster, name: str) -> set[str]:
    events = json.loads(cluster.kubectl("get", "events", "-o", "json"))["items"]
    return {event["reason"] for event in events if event["involvedObject"]["name"] == name}


def test_a_user_s_setting_stays_unless_the_role_overrides_it(cluster: Cluster) -> None:
    apply(cluster)
    set_strategy(cluster, "LiveMigrate")
    apply(cluster)
    assert strategy_of(cluster) == {"workloadUpdateMethods": ["LiveMigrate"]}
    apply(cluster, control_plane_workload_update_methods=["Evict"])
    assert strategy_of(cluster) == {
        "workloadUpdateMethods": ["Evict"],
        "batchEvictionSize": 10,
        "batchEvictionInterval": "1m0s",
    }
    apply(cluster)
    assert strategy_of(cluster) == {}
    apply(cluster, control_plane_workload_update_methods=["LiveMigrate"])
    set_strategy(cluster, "Evict")
    apply(cluster)
    assert strategy_of(cluster)["workloadUpdateMethods"] == ["Evict"]


def test_vmis_in_an_outdated_launcher_are_migrated_or_evicted(cluster: Cluster) -> None:
    labels, notes = {SCHEDULABLE: "true"}, {CONTROL_PLANE_IMAGE: "plane:1"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": labels, "annotations": notes}}
    apply(cluster)
    set_strategy(cluster, "LiveMigrate", "Evict")
    with cluster.controller("one"):
        source, ended = run(cluster, "moves", "True"), run(cluster, "stays", "False")

    cluster.kubectl("create", "-f", "-", body=node)
    with cluster.controller("two", **NEXT):
        counted = (f"--for=jsonpath={{{COUNT}}}=2", "--timeout=300s")
        cluster.kubectl("-n", INSTALL_NAMESPACE, "wait", "kubevirt/kubevirt", *counted)
        # this is written last
        outdated = json.loads(cluster.kubectl("get", "vmi", "-l", OUTDATED_LAUNCHER, "-o", "json"))["items"]
        assert [vmi["metadata"]["name"] for vmi in outdated] == ["moves", "stays"]
        assert json.loads(cluster.kubectl("get", "vmim", "-o", "json"))["items"] == []
        assert "deletionTimestamp" not in cluster.get("pod", ended)["metadata"]

        cluster.kubectl("annotate", "--overwrite", "node/node-1", f"{CONTROL_PLANE_IMAGE}=plane:2")
        job = f"vmim/kubevirt-workload-update-{cluster.get('vmi', 'moves')['metadata']['uid'][:8]}-1"
        cluster.appear(job)
        cluster.wait(job, ".status.phase", "Scheduling")
        cluster.kubectl("wait", f"pod/{ended}", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=300s")
        assert "deletionTimestamp" not in cluster.get("pod", source)["metadata"]
        began = "--for=jsonpath={.status.lastWorkloadEviction}"
        cluster.kubectl("-n", INSTALL_NAMESPACE, "wait", "kubevirt/kubevirt", began, "--timeout=300s")
    assert "SuccessfulCreate" in event_reasons(cluster, "moves")
    assert "SuccessfulEvict" in event_reasons(cluster, "stays")
