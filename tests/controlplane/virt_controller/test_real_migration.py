# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An evacuation on a real API server, by virt-controller with its own account: all RBAC rules and all writes.

Without nodes there are no CPU labels, so the machines name a CPU model. The test binds Pods, and reports for kubelets
and both virt-handlers.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.controlplane.virt_controller.test_real_api import Cluster, bind, cluster

__all__ = ["cluster"]
pytestmark = pytest.mark.component

VMI = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "moves", "namespace": "default"},
    "spec": {
        "domain": {"cpu": {"model": "EPYC"}, "memory": {"guest": "64Mi"}, "devices": {}},
        "evictionStrategy": "LiveMigrate",
    },
}
STAMP = "2026-01-01T00:00:00Z"
STATE = ".status.migrationState"


def come_up(cluster: Cluster, pod: str, node: str) -> str:
    """Bind a Pod and report its launcher as ready; return its UID."""
    cluster.appear(f"pod/{pod}")
    asyncio.run(bind(cluster.lab.kubeconfig, pod, node))
    state = {"running": {"startedAt": STAMP}}
    compute = {"name": "compute", "ready": True, "image": "x", "imageID": "x", "restartCount": 0, "state": state}
    cluster.report(f"pod/{pod}", {"phase": "Running", "containerStatuses": [compute]})
    uid: str = cluster.get("pod", pod)["metadata"]["uid"]
    return uid


def tell(cluster: Cluster, **fields: object) -> None:
    cluster.report("vmi/moves", {"migrationState": fields})


def test_a_guest_is_evacuated(cluster: Cluster) -> None:
    with cluster.controller("one"):
        cluster.kubectl("create", "-f", "-", body=VMI)
        short = cluster.get("vmi", "moves")["metadata"]["uid"][:8]
        source = f"virt-launcher-moves-{short}-1"
        come_up(cluster, source, "node-1")
        cluster.wait("vmi/moves", ".status.phase", "Scheduled")
        migratable = [{"type": "LiveMigratable", "status": "True", "reason": "", "message": ""}]
        cluster.report("vmi/moves", {"phase": "Running", "conditions": migratable})
        cluster.report("vmi/moves", {"evacuationNodeName": "node-1"})

        job = f"vmim/kubevirt-evacuation-{short}-1"
        cluster.appear(job)
        cluster.wait(job, ".status.phase", "Scheduling")
        uid = cluster.get(*job.split("/"))["metadata"]["uid"]
        target = f"virt-launcher-moves-{short}-m{uid[:8]}"
        target_uid = come_up(cluster, target, "node-2")
        assert cluster.get("pod", target)["spec"]["nodeSelector"]["cpu-model.node.kubevirt.io/EPYC"] == "true"
        cluster.wait(job, ".status.phase", "PreparingTarget")
        cluster.wait("vmi/moves", f"{STATE}.targetPodUID", target_uid)
        tell(cluster, targetNodeAddress="10.0.0.2", targetDirectMigrationNodePorts={"4321": 0})
        cluster.wait(job, ".status.phase", "TargetReady")
        tell(cluster, startTimestamp=STAMP, mode="PreCopy")
        cluster.wait(job, ".status.phase", "Running")
        tell(cluster, targetNodeDomainDetected=True, targetNodeDomainReadyTimestamp=STAMP)
        tell(cluster, completed=True, endTimestamp=STAMP)
        cluster.wait(job, ".status.phase", "Succeeded")
        cluster.wait("vmi/moves", ".metadata.labels.kubevirt\\.io/nodeName", "node-2")

        vmi = cluster.get("vmi", "moves")
        status = vmi["status"]
        assert (status["nodeName"], status["activePods"], status["epoch"]) == ("node-2", {target_uid: "node-2"}, 2)
        assert "evacuationNodeName" not in status
        assert "kubevirt.io/migrationTargetNodeName" not in vmi["metadata"]["labels"]
        cluster.kubectl("wait", f"pod/{source}", "--for=jsonpath={.metadata.deletionTimestamp}", "--timeout=300s")
        events = json.loads(cluster.kubectl("get", "events", "-o", "json"))["items"]
        reasons = {
            event["reason"] for event in events if event["involvedObject"]["kind"] == "VirtualMachineInstanceMigration"
        }
        # No node has the labels of a guest's CPU, and the scheduler may say so before the Pod is bound.
        reasons.discard("migrationTargetPodUnschedulable")
        assert reasons == {"SuccessfulCreate", "SuccessfulHandOver", "SuccessfulMigration", "SuccessfulDelete"}

        cluster.kubectl("delete", "vmi", "moves", "--wait=false")
        cluster.kubectl("delete", "pod", source, target, "--force", "--grace-period=0")
        cluster.kubectl("wait", job, "--for=delete", "--timeout=300s")
