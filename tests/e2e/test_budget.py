# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM costs the API server: counted from its audit log, not from our own metrics."""

from __future__ import annotations

import pytest

from tests.e2e.audit import writes
from tests.e2e.cluster import READY, Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab


def start(cluster: Cluster, namespace: str) -> None:
    """Start one VM in a namespace of its own, to its marker, its Ready condition, and what its agent tells."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.apply(a_vm("one", namespace=namespace))
    cluster.running("one", namespace=namespace)
    with cluster.console(cluster.launcher("one", namespace)["metadata"]["name"], namespace) as console:
        console.expect(READY)
        console.expect("counter 3")
    cluster.wait("vm", "one", ".status.ready", "true", namespace=namespace)
    connected = '.status.conditions[?(@.type=="AgentConnected")].status'
    cluster.wait("vm", "one", connected, "True", namespace=namespace)
    cluster.wait("vmi", "one", ".status.guestOSInfo.id", "virtops-guest", namespace=namespace)


def test_one_start_takes_at_most_ten_writes_of_ours_and_three_for_its_agent(cluster: Cluster) -> None:
    """That the agent is there, on VMI and VM, and what it tells, which mostly goes with the first of these."""
    start(cluster, "budget")

    counted = writes(cluster.audit_log, "budget")
    assert 0 < counted.total() <= 13, "\n".join(f"{number} {what}" for what, number in sorted(counted.items()))


def test_a_running_vm_costs_no_writes(cluster: Cluster) -> None:
    start(cluster, "idle")
    before = writes(cluster.audit_log, "idle").total()
    with cluster.console(cluster.launcher("one", "idle")["metadata"]["name"], "idle") as console:
        console.expect("counter 13")

    assert writes(cluster.audit_log, "idle").total() == before
