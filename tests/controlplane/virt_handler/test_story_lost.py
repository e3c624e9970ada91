# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launchers missing from the API server and domains missing from libvirt: when a guest counts as dead."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from controlplane.hypervisor.events import LifecycleChanged
from tests.controlplane.virt_handler.builders import POD_UID, vmi_object
from tests.controlplane.virt_handler.fakes import (
    until,
)
from tests.controlplane.virt_handler.stage import KEY, POD, Node

pytestmark = pytest.mark.root  # sockets of uid 107

QEMU = 4711


def lose_pod(node: Node) -> None:
    """Remove the Pod by force while virt-handler and libvirtd are cut off. QEMU keeps running."""
    node.proc.add(QEMU, f"0::/kubepods/besteffort/pod{POD_UID}/abc\n")
    node.libvirtd.is_listening = False
    node.files.close()
    node.pods.remove(POD)
    node.libvirtd.hang_up()


async def look_again(node: Node) -> None:
    """Let the next search for traces become due."""
    await asyncio.sleep(0.05)
    node.clock.seconds += 20
    node.vmis.put(node.api.objects[KEY])
    await asyncio.sleep(0.05)


async def look_until(node: Node, is_so: Callable[[], bool]) -> None:
    """Search until a condition is true. On a busy machine one search may come too late."""
    async with asyncio.timeout(20):
        while not is_so():
            await look_again(node)


def synchronized(node: Node) -> str:
    return next(
        (condition["message"] for condition in node.status["conditions"] if condition["type"] == "Synchronized"), ""
    )


@pytest.mark.parametrize("first", ["directory", "processes"])
async def test_a_lost_launcher_counts_as_running_while_the_node_has_traces(running: Node, first: str) -> None:
    lose_pod(running)
    await look_until(running, lambda: "its directory and 1 processes of it" in synchronized(running))
    assert running.phase == "Running"
    ends = [running.files.remove, lambda: running.proc.end(QEMU)]
    for index, end in enumerate(ends if first == "directory" else reversed(ends)):
        assert running.phase == "Running", f"after {index} of two ends"
        end()
        await look_again(running)
    await look_until(running, lambda: running.phase == "Failed")
    assert running.status["reason"] == "LauncherGone"
    assert POD_UID in synchronized(running)


async def test_a_restarted_handler_does_not_take_an_unlisted_launcher_for_dead(running: Node) -> None:
    await running.end()
    lose_pod(running)
    running.begin()
    await look_until(running, lambda: "processes of it" in synchronized(running))
    assert running.phase == "Running"
    running.files.remove()
    running.proc.end(QEMU)
    await look_until(running, lambda: running.phase == "Failed")
    assert running.status["reason"] == "LauncherGone"


async def test_a_handler_without_a_pod_list_takes_no_launcher_for_lost(node: Node) -> None:
    node.pods.synced = False
    node.api.store(vmi_object("Running"))
    await asyncio.sleep(0.05)
    assert node.phase == "Running"
    node.pods.synced = True
    node.vmis.put(node.api.objects[KEY])
    await until(lambda: node.phase == "Failed", "Failed")
    assert node.status["reason"] == "LauncherGone"


async def test_a_running_guest_of_an_unknown_vmi_makes_it_running_again(running: Node) -> None:
    running.api.store({**vmi_object("Unknown"), "status": {**running.status, "phase": "Unknown"}})
    await until(lambda: running.phase == "Running", "Running")
    assert running.libvirtd.asked == []


async def test_an_undefined_domain_ends_the_run(running: Node) -> None:
    running.libvirtd.guest = None
    running.libvirtd.tell(LifecycleChanged("domain", "undefined"))
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "GuestLost"
