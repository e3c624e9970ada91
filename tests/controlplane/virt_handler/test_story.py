# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry, sessions and reconciler together: a VMI from hand-over to its end, with faults at every step."""

from __future__ import annotations

import asyncio
import json

import pytest

from controlplane.api.launch_plan import WATCHDOG_EXPIRED
from controlplane.domain.state import Life, State
from controlplane.engine.errors import Unavailable
from controlplane.hypervisor.events import LifecycleChanged
from tests.controlplane.virt_handler.builders import VMI_UID, ended, pod_object, vmi_object
from tests.controlplane.virt_handler.fakes import (
    until,
)
from tests.controlplane.virt_handler.stage import KEY, POD, Node

pytestmark = pytest.mark.root  # sockets of uid 107

CRASHED = State(Life.SHUT_OFF, "crashed")


async def test_a_vmi_starts_step_by_step_with_its_pod(node: Node) -> None:
    node.api.store(vmi_object("Scheduling"))
    node.pods.put(pod_object(phase="Pending"))
    await asyncio.sleep(0)
    node.files.make_directory()
    cached = node.files.run / "cache/libvirt/qemu/cache/capabilities/q.xml"
    await until(cached.exists, "the capability cache")
    node.files.report()
    node.files.listen()
    await until(lambda: bool(node.network.wanted), "the network, before the hand-over")
    assert node.libvirtd.defined == []
    await node.start()
    assert len(node.libvirtd.defined) == 1
    assert node.status["interfaces"][0]["ipAddress"] == "10.244.0.7"


async def test_a_start_costs_one_status_write_one_event_and_one_quorum_read(running: Node) -> None:
    assert len(running.api.patches) == 1
    assert [event.reason for event in running.told] == ["Started"]


async def test_a_vmi_handed_over_before_its_launcher_is_up_starts_later(node: Node) -> None:
    node.hand_over()
    node.pods.put(pod_object())
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    await until(lambda: node.phase == "Running", "Running")
    assert len(node.network.wanted) == 1


async def test_a_stale_cache_does_not_start_a_deleted_vmi(up: Node) -> None:
    up.api.is_lagging = True
    up.api.store(vmi_object("Scheduled", deleting=True))
    gets = len(up.api.gets)
    up.vmis.put(vmi_object("Scheduled"))
    await until(lambda: len(up.api.gets) > gets, "the quorum read")
    await asyncio.sleep(0.01)
    assert up.libvirtd.defined == []


async def test_nothing_starts_while_the_api_server_is_unavailable(up: Node) -> None:
    up.api.is_lagging = True
    up.api.store(vmi_object("Scheduled"))
    up.api.error = Unavailable("no answer")
    up.vmis.put(vmi_object("Scheduled"))
    await asyncio.sleep(0.05)
    assert up.libvirtd.defined == []
    up.api.error = None
    up.api.is_lagging = False
    up.api.store(vmi_object("Scheduled"))
    await until(lambda: up.phase == "Running", "Running", clock=up.clock)


async def test_a_killed_qemu_fails_the_vmi_at_once(running: Node) -> None:
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "GuestCrashed"
    assert [event.reason for event in running.told] == ["Started", "Stopped"]
    assert running.told[-1].message == "The VirtualMachineInstance crashed."


async def test_a_kernel_panic_fails_the_vmi_with_its_own_event(running: Node) -> None:
    """As libvirt does: first the event with the cause, then the end of QEMU."""
    assert running.libvirtd.guest is not None
    running.libvirtd.tell(LifecycleChanged(VMI_UID, "crashed", "panicked"))
    running.libvirtd.guest.become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "GuestPanicked"
    assert [event.reason for event in running.told] == ["Started", "GuestPanicked", "Stopped"]
    assert running.told[-1].message == "The VirtualMachineInstance crashed."


async def test_a_poweroff_by_the_watchdog_fails_the_vmi(running: Node) -> None:
    assert running.libvirtd.guest is not None
    running.libvirtd.tell(LifecycleChanged(VMI_UID, "watchdog", "watchdog"))
    running.libvirtd.guest.become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")
    messages = [
        condition["message"] for condition in running.status["conditions"] if condition["type"] == "Synchronized"
    ]
    assert (running.status["reason"], messages) == ("GuestCrashed", [WATCHDOG_EXPIRED])


async def test_a_panic_that_the_guest_survives_does_not_explain_a_later_end(running: Node) -> None:
    """The guest boots a crash kernel; a user shuts it down later."""
    assert running.libvirtd.guest is not None
    running.libvirtd.tell(LifecycleChanged(VMI_UID, "crashed", "panicked"))
    running.libvirtd.guest.become(State(Life.SHUT_OFF, "shutdown"), "stopped")
    await until(lambda: running.phase == "Succeeded", "Succeeded")


async def test_a_guest_that_powers_off_succeeds(running: Node) -> None:
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(State(Life.SHUT_OFF, "shutdown"), "stopped")
    await until(lambda: running.phase == "Succeeded", "Succeeded")


async def test_a_killed_libvirtd_changes_nothing_and_is_reconnected(running: Node) -> None:
    running.files.close()
    running.libvirtd.is_listening = False
    running.libvirtd.hang_up()
    await until(lambda: running.libvirtd.dials > 1, "a new attempt")
    assert running.phase == "Running"
    running.libvirtd.is_listening = True
    running.files.listen()
    await until(lambda: running.libvirtd.connections[-1].is_open, "contact")
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")


async def test_the_pod_status_explains_qemu_and_libvirtd_killed_together(running: Node) -> None:
    running.libvirtd.is_listening = False
    running.libvirtd.hang_up()
    running.files.close()
    await asyncio.sleep(0.02)
    assert running.phase == "Running"
    running.pods.put(pod_object(phase="Failed", **ended(1, "QEMU was killed")))
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["conditions"][-1]["message"] == "QEMU was killed"


async def test_a_restarted_handler_repairs_the_network_once_and_writes_nothing(running: Node) -> None:
    """Otherwise rules of an older version, or lost rules, would stay for the whole run."""
    await running.end()
    patches = len(running.api.patches)
    assert len(running.network.wanted) == 1
    running.begin()
    await until(lambda: len(running.network.wanted) == 2, "its network")
    await asyncio.sleep(0.02)
    running.libvirtd.hang_up()
    await until(lambda: running.registry is not None and running.registry.connected == 1, "contact")
    await asyncio.sleep(0.02)
    assert len(running.network.wanted) == 2
    assert len(running.api.patches) == patches
    assert running.libvirtd.asked == []
    assert running.libvirtd.guest is not None
    assert running.libvirtd.guest.starts == 1


async def test_a_handler_killed_between_start_and_status_writes_running_after_its_restart(up: Node) -> None:
    up.api.error = None
    up.api.is_lagging = True
    up.hand_over()
    up.vmis.put(up.api.objects[KEY])
    await until(lambda: up.libvirtd.guest is not None and up.libvirtd.guest.starts == 1, "a start")
    await up.end()
    up.api.is_lagging = False
    up.hand_over()
    up.begin()
    await until(lambda: up.phase == "Running", "Running")
    assert up.libvirtd.guest is not None
    assert up.libvirtd.guest.starts == 1
    assert up.status["interfaces"][0]["ipAddress"] == "10.244.0.7"


async def test_a_deleted_vmi_is_shut_down(running: Node) -> None:
    running.api.store({**vmi_object("Running", deleting=True), "status": running.status})
    await until(lambda: running.phase == "Succeeded", "Succeeded")
    assert running.libvirtd.asked == ["shutdown"]


async def test_a_deaf_guest_is_destroyed_after_its_grace_period(running: Node) -> None:
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.is_deaf = True
    running.api.store({**vmi_object("Running", deleting=True), "status": running.status})
    await until(lambda: running.libvirtd.asked == ["shutdown"], "a request")
    running.clock.seconds += 31
    running.vmis.put(running.api.objects[KEY])
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.libvirtd.asked == ["shutdown", "destroy"]
    assert running.status["reason"] == "ShutdownTimedOut"


async def test_a_pod_removed_by_force_takes_its_guest_with_it(running: Node) -> None:
    running.pods.remove(POD)
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.libvirtd.asked == ["destroy"]
    assert running.status["reason"] == "PodRemoved"


async def test_a_pod_that_is_listed_again_is_the_same_launcher(running: Node) -> None:
    """A user removes the Pod's label and virt-controller restores it. The guest keeps running and obeys."""
    raw = running.pods.get(POD)
    assert raw is not None
    running.api.objects[POD] = json.loads(raw)
    running.pods.remove(POD)
    await until(lambda: POD in running.api.gets, "a question")
    running.pods.put(json.loads(raw))
    running.api.store({**vmi_object("Running", deleting=True), "status": running.status})
    await until(lambda: running.libvirtd.asked == ["shutdown"], "a request")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LookupError("the Pod has no interface eth0"), "no interface eth0"),
        (TimeoutError(), "it did not end in time"),
    ],
    ids=["with words", "without"],
)
async def test_a_failed_network_setup_is_reported_and_retried(node: Node, error: Exception, said: str) -> None:
    node.network.error = error
    node.hand_over()
    node.pods.put(pod_object())
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    await until(lambda: bool(node.status.get("conditions")), "a condition")
    assert said in node.status["conditions"][-1]["message"]
    node.network.error = None
    await until(lambda: node.phase == "Running", "Running", clock=node.clock)


async def begin_again(node: Node, *, resync_seconds: float) -> None:
    """Restart virt-handler and wait until it has set up the guest's network."""
    await node.end()
    node.resync_seconds = resync_seconds
    node.begin()
    await until(lambda: len(node.network.wanted) == 2, "its network")


def trouble_of(node: Node) -> str:
    """Return reason and message of a false Synchronized condition, or ""."""
    conditions = [
        condition
        for condition in node.status["conditions"]
        if (condition["type"], condition["status"]) == ("Synchronized", "False")
    ]
    return "".join(f"{condition['reason']}: {condition['message']}" for condition in conditions)


async def test_the_network_of_a_running_guest_is_set_up_again_periodically(running: Node) -> None:
    """No event tells that the rules were flushed."""
    await begin_again(running, resync_seconds=0.02)
    patches = len(running.api.patches)
    await until(lambda: len(running.network.wanted) >= 4, "its network", clock=running.clock)
    assert len(set(running.network.wanted)) == 1
    assert len(running.api.patches) == patches


async def test_a_network_that_cannot_be_repaired_is_reported_until_it_is(running: Node) -> None:
    await begin_again(running, resync_seconds=0.02)
    running.network.error = LookupError("the Pod has no interface eth0")
    await until(lambda: trouble_of(running) != "", "a condition", clock=running.clock)
    assert trouble_of(running) == "NetworkNotReady: cannot set up the Pod's network: the Pod has no interface eth0"
    assert running.phase == "Running"
    running.network.error = None
    await until(lambda: trouble_of(running) == "", "no condition", clock=running.clock)
    assert running.phase == "Running"


async def test_a_pod_without_an_owner_is_no_launcher(node: Node) -> None:
    """Its labels match, but no VMI controls it."""
    forged = pod_object()
    del forged["metadata"]["ownerReferences"]
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.pods.put(forged)
    node.hand_over()
    await asyncio.sleep(0.02)
    assert node.libvirtd.dials == 0
    assert [path.name for path in node.files.run.iterdir() if path.name == "cache"] == []


async def test_a_restarted_virt_node_costs_no_connection(running: Node) -> None:
    """Descriptors from virt-node stay open. Only the next launcher waits for it."""
    node = running.virt_node
    assert node is not None
    await node.kill()
    running.libvirtd.hang_up()
    await until(lambda: node.dials > 1, "another attempt")
    assert running.phase == "Running"
    node.is_up = True
    await until(lambda: running.registry is not None and running.registry.connected == 1, "contact")
    assert running.phase == "Running"
