# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The writes of a VM, counted in the audit log of the API server and not by our own metrics."""

from __future__ import annotations

import pytest

from tests.e2e.audit import writes
from tests.e2e.cluster import READY, Cluster
from tests.e2e.machines import a_vm

pytestmark = pytest.mark.lab


def start(cluster: Cluster, namespace: str) -> None:
    """Start one VM in its own namespace, and wait until it is Ready."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    cluster.apply(a_vm("one", namespace=namespace))
    cluster.running("one", namespace=namespace)
    cluster.wait("vm", "one", ".status.ready", "true", namespace=namespace)


def test_one_start_takes_at_most_eleven_writes_of_ours(cluster: Cluster) -> None:
    """The agent reports after the boot: one more write for the VMI, and one for the VM."""
    start(cluster, "budget")

    counted = writes(cluster.audit_log, "budget")
    assert 0 < counted.total() <= 11, "\n".join(f"{number} {what}" for what, number in sorted(counted.items()))


def test_a_running_vm_costs_no_writes(cluster: Cluster) -> None:
    start(cluster, "idle")
    cluster.wait("vmi", "one", ".status.guestOSInfo.id", "virtops-guest", namespace="idle")
    with cluster.console(cluster.launcher("one", "idle")["metadata"]["name"], "idle") as console:
        console.expect(READY)
        console.expect("counter 8")
        before = writes(cluster.audit_log, "idle").total()
        console.expect("counter 18")

    assert writes(cluster.audit_log, "idle").total() == before
