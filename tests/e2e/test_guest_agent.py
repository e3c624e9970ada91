# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent of a real guest: its data is in the VMI status, and leaves it with the agent."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, KubectlFailed
from tests.e2e.machines import a_vm, serves_commands

pytestmark = pytest.mark.lab

HANGS_SECONDS = 15
"""The launcher kills a libvirtd that does not respond for this long."""
TALKING = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/talking"
SAYS_ITS_TIME = "sh -c 'echo time=$(date +%s) >/dev/ttyS0'"
PAUSE_SECONDS = 8
CONNECTED = '.status.conditions[?(@.type=="AgentConnected")].status'


@pytest.fixture(scope="module")
def talking(cluster: Cluster) -> Cluster:
    """A cluster with a guest whose agent is connected, until it is stopped."""
    user_data = serves_commands(quiet="agent off", clock=SAYS_ITS_TIME)
    cluster.kubectl("create", "-f", "-", given=a_vm("talking", user_data=user_data).text)
    cluster.running("talking")
    cluster.wait("vmi", "talking", CONNECTED, "True")
    cluster.wait("vmi", "talking", ".status.guestOSInfo.id", "virtops-guest")
    return cluster


def seconds_behind(cluster: Cluster) -> float:
    """Return how far the guest's clock is behind this machine's, by the last time that it said."""
    now = time.time()
    cluster.run_in_guest("talking", "clock")
    log = cluster.kubectl("logs", cluster.launcher("talking")["metadata"]["name"], "-c", "compute")
    return now - max(map(int, re.findall(r"time=([0-9]+)", log)), default=0)


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


def test_an_unpaused_guest_has_the_time(talking: Cluster) -> None:
    """Without its agent it would be behind by the whole pause."""
    talking.subresource("talking", "pause", of="virtualmachineinstances")
    talking.wait("vmi", "talking", '.status.conditions[?(@.type=="Paused")].status', "True")
    until = time.time() + PAUSE_SECONDS
    talking.eventually(lambda: time.time() > until, what="the guest stands still")
    talking.subresource("talking", "unpause", of="virtualmachineinstances")
    talking.eventually(lambda: seconds_behind(talking) < PAUSE_SECONDS / 2, what="the guest has the time")


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
