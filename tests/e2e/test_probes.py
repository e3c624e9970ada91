# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of a real guest: the kubelet asks, by the network and through the guest's agent."""

from __future__ import annotations

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.machines import Manifest, a_vm

pytestmark = pytest.mark.lab

SERVES_FOR_A_WHILE = """#!/bin/sh
mkdir /www && echo ok > /www/ready && httpd -p 8080 -h /www
touch /run/alive
(sleep 15; rm /www/ready; sleep 10; rm /run/alive) &
"""


def a_probed_vm(name: str) -> Manifest:
    """Return a VM that is ready, then not, and then not alive any more."""
    vm = a_vm(name, user_data=SERVES_FOR_A_WHILE, runStrategy="Once")
    every = {"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5}
    vm["spec"]["template"]["spec"] |= {
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/ready"}, **every},
        "livenessProbe": {"exec": {"command": ["test", "-e", "/run/alive"]}, **every, "failureThreshold": 20},
    }
    return vm


def test_a_guest_is_ready_while_it_answers_and_its_run_ends_when_it_is_not_alive(cluster: Cluster) -> None:
    cluster.kubectl("create", "-f", "-", given=a_probed_vm("probed").text)
    cluster.running("probed")

    cluster.wait("vm", "probed", '.status.conditions[?(@.type=="Ready")].status', "True")
    cluster.wait("vm", "probed", '.status.conditions[?(@.type=="Ready")].status', "False")
    vmi = cluster.get("vmi", "probed")
    assert vmi is not None
    assert vmi["status"]["phase"] == "Running"

    cluster.wait("vm", "probed", ".status.printableStatus", "Stopped", seconds=120)
    events = cluster.kubectl("get", "events", "--field-selector", "reason=Unhealthy", "-o", "yaml")
    assert "the command ended with exit code 1" in events
