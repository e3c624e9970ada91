# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent of a real guest: its data is in the VMI status, and leaves it with the agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, KubectlFailed
from tests.e2e.machines import a_vm, serves_commands

pytestmark = pytest.mark.lab

HANGS_SECONDS = 15
"""The launcher kills a libvirtd that does not respond for this long."""
TALKING = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/talking"
CONNECTED = '.status.conditions[?(@.type=="AgentConnected")].status'


@pytest.fixture(scope="module")
def talking(cluster: Cluster) -> Cluster:
    """A cluster with a guest whose agent is connected, until it is stopped."""
    cluster.kubectl("create", "-f", "-", given=a_vm("talking", user_data=serves_commands(quiet="agent off")).text)
    cluster.running("talking")
    cluster.wait("vmi", "talking", CONNECTED, "True")
    cluster.wait("vmi", "talking", ".status.guestOSInfo.id", "virtops-guest")
    return cluster


def status(cluster: Cluster) -> dict[str, Any]:
    vmi = cluster.get("vmi", "talking")
    assert vmi is not None
    return dict(vmi["status"])


def test_the_agents_data_is_in_the_status(talking: Cluster) -> None:
    guest_status = status(talking)
    assert guest_status["guestOSInfo"]["id"] == "virtops-guest"
    (default_interface,) = [interface for interface in guest_status["interfaces"] if interface.get("name") == "default"]
    assert (default_interface["interfaceName"], default_interface["infoSource"]) == ("eth0", "domain, guest-agent")
    assert default_interface["ipAddress"] == talking.launcher("talking")["status"]["podIP"], "the Pod's address"
    vm = talking.get("vm", "talking")
    assert vm is not None
    assert "AgentConnected" in {condition["type"] for condition in vm["status"]["conditions"]}


def test_a_user_queries_the_guest(talking: Cluster) -> None:
    info, users, systems = (
        json.loads(talking.kubectl("get", "--raw", f"{TALKING}/{about}"))
        for about in ("guestosinfo", "userlist", "filesystemlist")
    )
    assert (info["hostname"], info["os"]["id"], info["fsFreezeStatus"]) == ("talking", "virtops-guest", "thawed")
    assert (info["timezone"], users["items"]) == ("UTC, 0", [])
    assert "/run" in {filesystem["mountPoint"] for filesystem in systems["items"]}


@pytest.mark.nightly
def test_a_libvirtd_restart_keeps_the_agent_and_a_stopped_agent_clears_its_data(talking: Cluster) -> None:
    talking.has_run("talking", seconds=HANGS_SECONDS + 10)
    talking.run_in_guest("talking", "quiet")
    talking.wait("vmi", "talking", ".status.interfaces[0].infoSource", "domain")
    guest_status = status(talking)
    assert "AgentConnected" not in {condition["type"] for condition in guest_status["conditions"]}
    assert not guest_status["guestOSInfo"]
    with pytest.raises(KubectlFailed, match="VMI does not have guest agent connected"):
        talking.kubectl("get", "--raw", f"{TALKING}/guestosinfo")
    log = talking.kubectl("logs", talking.launcher("talking")["metadata"]["name"], "-c", "compute")
    assert "libvirtd ended" not in log
