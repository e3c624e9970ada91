# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probes of real guests: by the kubelet over the network, and through the guest agent. All boot in parallel."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.virt_controller.vmi.probes import EXTRA_DELAY_SECONDS
from tests.e2e.cluster import Cluster, KubectlFailed
from tests.e2e.machines import Manifest, a_vm, serves_commands

pytestmark = pytest.mark.lab

IS_READY_AND_ALIVE = "touch /www/ready /run/alive\n"
SERVES_COMMANDS = serves_commands(unready="rm /www/ready", dead="rm /run/alive") + IS_READY_AND_ALIVE
SERVES_A_PORT_FOR_A_WHILE = "#!/bin/sh\nhttpd -p 8080 -h /\n(sleep 15; killall httpd) &\n"
HAS_AN_AGENT_FOR_A_WHILE = "#!/bin/sh\n(sleep 15; agent off) >/dev/null 2>&1 &\n"
HAS_NO_AGENT = "#!/bin/sh\nagent off >/dev/null 2>&1\n"
SOME = {"initialDelaySeconds": 10, "periodSeconds": 1, "failureThreshold": 20, "timeoutSeconds": 5}
"""Few probes: a kubelet writes 25 Events about a Pod, and then none that says why it ends. Two probes write
Events, mostly while the guest boots.
"""
FIRST_ASKED_SECONDS = 60
"""After the launcher's start: by then a guest has booted on a busy machine, or is paused."""
LATE = {"initialDelaySeconds": FIRST_ASKED_SECONDS - EXTRA_DELAY_SECONDS}


def a_probed_vm(name: str, *, user_data: str | None = None, **spec: Any) -> Manifest:
    """Return a VM with strategy Once. spec: of its instance."""
    vm = a_vm(name, user_data=user_data, runStrategy="Once")
    vm["spec"]["template"]["spec"] |= spec
    return vm


@pytest.fixture(scope="module")
def probed(cluster: Cluster) -> None:
    """A machine that becomes ready, then not ready, then not live."""
    ready = {"httpGet": {"port": 8080, "path": "/ready"}, **SOME, "periodSeconds": 5, "failureThreshold": 1}
    alive = {"exec": {"command": ["test", "-e", "/run/alive"]}, **SOME, **LATE, "failureThreshold": 3}
    vm = a_probed_vm("probed", user_data=SERVES_COMMANDS, readinessProbe=ready, livenessProbe=alive)
    cluster.kubectl("create", "-f", "-", given=vm.text)


@pytest.fixture(scope="module")
def silent(cluster: Cluster) -> None:
    """Two machines that become not live, and one that is paused."""
    served, answers = {"tcpSocket": {"port": 8080}, **SOME}, {"guestAgentPing": {}, **SOME}
    vms = (
        a_probed_vm("port", user_data=SERVES_A_PORT_FOR_A_WHILE, livenessProbe=served),
        a_probed_vm("agent", user_data=HAS_AN_AGENT_FOR_A_WHILE, livenessProbe=answers),
        a_probed_vm("sleeper", user_data=HAS_NO_AGENT, livenessProbe={**answers, **LATE, "failureThreshold": 3}),
    )
    cluster.kubectl("create", "-f", "-", given="".join(vm.text for vm in vms))
    cluster.running("sleeper")
    cluster.eventually(lambda: pause(cluster, "sleeper"), what="sleeper is paused")


def pause(cluster: Cluster, name: str) -> bool:
    """Pause it; return whether it is paused. virt-handler may still restart after a kill by another module."""
    try:
        cluster.subresource(name, "pause", of="virtualmachineinstances")
    except KubectlFailed as error:
        return "already paused" in str(error)
    return True


def complaints(cluster: Cluster, pod: str) -> list[str]:
    """Return the kubelet's messages about failed probes of a Pod."""
    events = cluster.list("events", "--field-selector", f"reason=Unhealthy,involvedObject.name={pod}")
    return [event["message"] for event in events]


@pytest.mark.usefixtures("probed")
def test_a_guest_is_ready_while_it_responds_and_its_run_ends_when_it_is_not_live(cluster: Cluster) -> None:
    cluster.running("probed")

    cluster.wait("vm", "probed", '.status.conditions[?(@.type=="Ready")].status', "True")
    cluster.run_in_guest("probed", "unready")
    cluster.wait("vm", "probed", '.status.conditions[?(@.type=="Ready")].status', "False")
    vmi = cluster.get("vmi", "probed")
    assert vmi is not None
    assert vmi["status"]["phase"] == "Running"

    cluster.run_in_guest("probed", "dead")
    cluster.wait("vm", "probed", ".status.printableStatus", "Stopped")
    events = cluster.kubectl("get", "events", "--field-selector", "reason=Unhealthy", "-o", "yaml")
    assert "the command ended with exit code 1" in events


@pytest.mark.nightly
@pytest.mark.usefixtures("silent")
@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        pytest.param("port", "connection refused", id="tcpSocket"),
        pytest.param("agent", "guest", id="guestAgentPing"),
    ],
)
def test_a_run_ends_when_its_guest_stops_responding(cluster: Cluster, name: str, complaint: str) -> None:
    pod = cluster.list("pods", "-l", f"vmi.kubevirt.io/id={name}")[0]["metadata"]["name"]

    cluster.wait("vm", name, ".status.printableStatus", "Stopped")

    assert [
        message
        for message in complaints(cluster, pod)
        if message.startswith("Liveness") and complaint in message.lower()
    ]


@pytest.mark.nightly
@pytest.mark.usefixtures("silent")
def test_probes_do_not_end_a_paused_guest_but_a_resumed_one(cluster: Cluster) -> None:
    cluster.wait("vm", "sleeper", ".status.printableStatus", "Paused")
    launcher = cluster.launcher("sleeper")
    cluster.has_run("sleeper", seconds=FIRST_ASKED_SECONDS + 10)
    cluster.wait("vm", "sleeper", ".status.printableStatus", "Paused")
    assert complaints(cluster, launcher["metadata"]["name"]) == []

    cluster.subresource("sleeper", "unpause", of="virtualmachineinstances")

    cluster.wait("vm", "sleeper", ".status.printableStatus", "Stopped")
    assert complaints(cluster, launcher["metadata"]["name"])
