# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubectl drain on a node with real guests: stoppable machines stop, and the others stay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab

DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--pod-selector=kubevirt.io=virt-launcher")


@pytest.fixture
def drained(cluster: Cluster) -> Iterator[Cluster]:
    """Two guests on a node; afterwards it is schedulable again."""
    stays, leaves = a_vm("stays"), a_vm("leaves")
    stays["spec"]["template"]["spec"]["evictionStrategy"] = "LiveMigrate"
    cluster.apply(stays, leaves)
    for name in ("stays", "leaves"):
        cluster.running(name)
    yield cluster
    cluster.kubectl("uncordon", cluster.nodes[0])


@pytest.mark.nightly
def test_a_drain_stops_the_machines_that_allow_it_and_reports_why_others_stay(drained: Cluster) -> None:
    pods = {name: drained.launcher(name)["metadata"]["uid"] for name in ("stays", "leaves")}

    done = drained.try_kubectl("drain", drained.nodes[0], *DRAIN, "--timeout=15s")

    assert done.returncode != 0
    assert "virt-launcher-stays" in done.stderr
    assert "vacuat" in done.stderr, "virt-controller migrates it when a node has room"
    drained.wait("vm", "leaves", ".status.printableStatus", "ErrorUnschedulable")
    assert drained.launcher("leaves")["metadata"]["uid"] != pods["leaves"], "the new one waits for a schedulable node"
    pod = drained.launcher("stays")["metadata"]
    assert pod["uid"] == pods["stays"]
    assert "deletionTimestamp" not in pod
    vmi = drained.get("vmi", "stays")
    assert vmi is not None
    assert vmi["status"]["phase"] == "Running"
    assert vmi["status"]["evacuationNodeName"] == drained.nodes[0]
    drained.eventually(lambda: drained.list("vmim", "-n", "default"), what="it has a migration")
    drained.kubectl("uncordon", drained.nodes[0])
    drained.running("leaves")
