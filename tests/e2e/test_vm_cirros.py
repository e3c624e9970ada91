# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The walk-through of KubeVirt's architecture page, with kubectl on this control plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.cluster import READY, Cluster
from tests.e2e.console import LIMIT_SECONDS

pytestmark = pytest.mark.lab

MANIFEST = (Path(__file__).parent / "manifests/vm-cirros.yaml").read_text()
START = '{"spec":{"running":true}}'
STOP = '{"spec":{"running":false}}'


@pytest.fixture(scope="module")
def cirros(cluster: Cluster) -> Cluster:
    """A cluster with vm-cirros, not running."""
    cluster.kubectl("create", "-f", "-", given=MANIFEST)
    return cluster


def test_a_halted_vm_has_no_instance(cirros: Cluster) -> None:
    cirros.wait("vm", "vm-cirros", ".status.printableStatus", "Stopped")

    assert cirros.get("vmi", "vm-cirros") is None


def test_patching_running_to_true_boots_the_guest_with_its_user_data(cirros: Cluster) -> None:
    cirros.kubectl("patch", "vm", "vm-cirros", "--type", "merge", "-p", START)
    cirros.running("vm-cirros")

    with cirros.console(cirros.launcher("vm-cirros")["metadata"]["name"]) as console:
        console.expect(READY)
        console.expect("printed from cloud-init userdata")


def test_the_leader_counts_it_in_its_metrics(cirros: Cluster) -> None:
    output = [
        cirros.kubectl(
            "get", "--raw", f"/api/v1/namespaces/kubevirt/pods/https:{pod['metadata']['name']}:8443/proxy/metrics"
        )
        for pod in cirros.list("pods", "-n", "kubevirt", "-l", "kubevirt.io=virt-controller")
    ]

    assert any('kubevirt_vmi_info{name="vm-cirros",namespace="default"' in metrics for metrics in output)
    assert any('phase_transition_time_from_creation_seconds_count{phase="Running"}' in metrics for metrics in output)


def test_deleting_the_instance_restarts_the_vm(cirros: Cluster) -> None:
    before = cirros.running("vm-cirros")
    cirros.kubectl("delete", "vmi", "vm-cirros")
    after = cirros.running("vm-cirros")

    assert after["metadata"]["uid"] != before["metadata"]["uid"]


def test_orphan_delete_leaves_the_instance_and_a_new_vm_adopts_it(cirros: Cluster) -> None:
    before = cirros.running("vm-cirros")
    cirros.kubectl("delete", "vm", "vm-cirros", "--cascade=orphan")
    orphan = cirros.running("vm-cirros")
    assert orphan["metadata"]["uid"] == before["metadata"]["uid"]
    assert not orphan["metadata"].get("ownerReferences")

    cirros.kubectl("create", "-f", "-", given=MANIFEST.replace("running: false", "running: true"))
    cirros.wait("vm", "vm-cirros", ".status.printableStatus", "Running")
    adopted = cirros.running("vm-cirros")

    vm = cirros.get("vm", "vm-cirros")
    assert vm is not None
    assert adopted["metadata"]["uid"] == before["metadata"]["uid"]
    assert [owner["uid"] for owner in adopted["metadata"]["ownerReferences"]] == [vm["metadata"]["uid"]]


def test_patching_running_to_false_stops_it(cirros: Cluster) -> None:
    cirros.kubectl("patch", "vm", "vm-cirros", "--type", "merge", "-p", STOP)
    cirros.wait_gone("vmi", "vm-cirros")

    cirros.wait("vm", "vm-cirros", ".status.printableStatus", "Stopped")


def test_deleting_the_vm_deletes_instance_and_pod(cirros: Cluster) -> None:
    cirros.kubectl("patch", "vm", "vm-cirros", "--type", "merge", "-p", START)
    cirros.running("vm-cirros")
    pod = cirros.launcher("vm-cirros")["metadata"]["name"]
    cirros.kubectl("delete", "vm", "vm-cirros", f"--timeout={LIMIT_SECONDS}s")

    cirros.wait_gone("vmi", "vm-cirros")
    cirros.wait_gone("pod", pod)
