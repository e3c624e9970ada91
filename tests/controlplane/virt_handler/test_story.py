# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry, sessions, reconciler and node recovery together: one story for each path through their wiring."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable

import pytest

from controlplane.api.objects.resources import Key
from controlplane.domain.state import Life, State
from controlplane.engine.errors import Unavailable
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.events import LifecycleChanged
from controlplane.virt_handler.launchers.ports import Failed, TransferRequest
from controlplane.virt_handler.vmi.migration_source import RESTARTED
from tests.controlplane.virt_handler.builders import (
    NODE,
    OFF,
    OTHER,
    POD_UID,
    RUNNING,
    VMI_UID,
    domain_text,
    pod_object,
    vmi_object,
)
from tests.controlplane.virt_handler.fakes import (
    LEASE_SECONDS,
    FakeConnection,
    FakeGuest,
    FakeLibvirtd,
    LauncherFiles,
    until,
)
from tests.controlplane.virt_handler.migrating import BY_MIGRATION, WHOLE, migrating_object
from tests.controlplane.virt_handler.stage import KEY, POD, Node

pytestmark = pytest.mark.root  # sockets of uid 107

CRASHED = State(Life.SHUT_OFF, "crashed")
QEMU = 4711
NEXT, NEXT_UID, NEXT_POD = Key("default", "next"), "0000dddd-1111", "dddd0000-1111"


def guest_of(node: Node) -> FakeGuest:
    assert node.libvirtd.guest is not None
    return node.libvirtd.guest


def condition(node: Node, kind: str = "Synchronized") -> str:
    """Return reason and message of a condition, or ""."""
    found = [item for item in node.status.get("conditions", ()) if item["type"] == kind]
    return "".join(f"{item['reason']}: {item['message']}" for item in found)


async def test_a_vmi_starts_step_by_step_with_one_write_and_one_event(node: Node) -> None:
    node.api.store(vmi_object("Scheduling"))
    node.pods.put(pod_object(phase="Pending"))
    await asyncio.sleep(0)
    node.files.make_directory()
    cached = node.files.run / "cache/libvirt/qemu/cache/capabilities/q.xml"
    await until(cached.exists, "the capability cache")
    node.files.report()
    node.files.listen()
    await until(lambda: bool(node.network.wanted), "the network, before the hand-over")
    await asyncio.sleep(0.02)
    assert (node.libvirtd.dials, node.libvirtd.defined) == (0, [])
    await node.start()
    assert (node.libvirtd.dials, len(node.libvirtd.defined)) == (1, 1)
    assert node.status["interfaces"][0]["ipAddress"] == "10.244.0.7"
    assert len(node.api.patches) == 1
    assert [event.reason for event in node.events] == ["Started"]


async def test_before_the_hand_over_a_vmi_is_read_once_and_by_its_uid(node: Node) -> None:
    node.api.store({**vmi_object("Scheduling"), "metadata": {**vmi_object()["metadata"], "uid": "another"}})
    node.make_launcher()
    node.pods.put(pod_object(phase="Pending"))
    await until(lambda: bool(node.api.gets), "the read")
    node.pods.put(pod_object())
    await asyncio.sleep(0.02)
    assert (len(node.api.gets), node.network.wanted, node.libvirtd.dials) == (1, [], 0)


async def test_a_start_without_virt_node_reports_that_and_continues_when_it_is_back(node: Node) -> None:
    assert node.virt_node is not None
    await node.virt_node.kill()
    node.make_launcher()
    node.pods.put(pod_object())
    body = vmi_object("Scheduled")
    body["status"]["phaseTransitionTimestamps"] = [
        {"phase": "Scheduled", "phaseTransitionTimestamp": "2023-11-14T22:12:49Z"}
    ]
    node.api.store(body)
    await until(lambda: condition(node).startswith("VirtNodeNotReady"), "the condition")
    node.virt_node.is_up = True
    await until(lambda: node.phase == "Running", "Running", clock=node.clock)
    assert condition(node) == ""


async def test_a_failed_network_setup_is_reported_and_retried(node: Node) -> None:
    node.network.error = LookupError("the Pod has no interface eth0")
    node.hand_over()
    node.pods.put(pod_object())
    node.make_launcher()
    await until(lambda: "no interface eth0" in condition(node), "the condition")
    node.network.error = None
    await until(lambda: node.phase == "Running", "Running", clock=node.clock)


async def test_a_start_that_keeps_failing_is_reported_and_fails_the_vmi(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no space left on device")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 1, "another attempt", clock=up.clock)
    await until(lambda: "no space left" in condition(up), "the condition")
    assert up.phase == "Scheduled"
    up.clock.seconds += 2
    await until(lambda: up.phase == "Failed", "Failed", clock=up.clock)
    assert up.status["reason"] == "StartFailed"


async def test_a_kernel_panic_fails_the_vmi_with_its_own_event(running: Node) -> None:
    """As libvirt does: first the event with the cause, then the end of QEMU."""
    running.libvirtd.tell(LifecycleChanged(VMI_UID, "crashed", "panicked"))
    guest_of(running).become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "GuestPanicked"
    assert [event.reason for event in running.events] == ["Started", "GuestPanicked", "Stopped"]


async def test_a_killed_libvirtd_changes_nothing_and_is_reconnected(running: Node) -> None:
    running.files.close()
    running.libvirtd.is_listening = False
    running.libvirtd.hang_up()
    await until(lambda: running.libvirtd.dials > 1, "a new attempt")
    assert running.phase == "Running"
    running.libvirtd.is_listening = True
    running.files.listen()
    await until(lambda: running.libvirtd.connections[-1].is_open, "a connection")
    guest_of(running).become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")


async def test_a_restarted_handler_repairs_the_network_once_and_writes_nothing(running: Node) -> None:
    """Otherwise rules of an older version, or lost rules, would stay for the whole run."""
    await running.end()
    patches = len(running.api.patches)
    running.begin()
    await until(lambda: len(running.network.wanted) == 2, "the network")
    await asyncio.sleep(0.02)
    assert (len(running.network.wanted), len(running.api.patches)) == (2, patches)
    assert (running.libvirtd.asked, guest_of(running).starts) == ([], 1)


async def test_a_handler_killed_between_start_and_status_writes_running_after_its_restart(up: Node) -> None:
    up.api.is_lagging = True
    up.hand_over()
    up.vmis.put(up.api.objects[KEY])
    await until(lambda: up.libvirtd.guest is not None and up.libvirtd.guest.starts == 1, "a start")
    await up.end()
    up.api.is_lagging = False
    up.hand_over()
    up.begin()
    await until(lambda: up.phase == "Running", "Running")
    assert guest_of(up).starts == 1
    assert up.status["interfaces"][0]["ipAddress"] == "10.244.0.7"


async def test_a_deaf_guest_is_destroyed_after_its_grace_period(running: Node) -> None:
    guest_of(running).is_deaf = True
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
    """A user removes the Pod's label and virt-controller restores it."""
    raw = running.pods.get(POD)
    assert raw is not None
    running.api.objects[POD] = json.loads(raw)
    running.pods.remove(POD)
    await until(lambda: POD in running.api.gets, "the read")
    running.pods.put(json.loads(raw))
    running.api.store({**vmi_object("Running", deleting=True), "status": running.status})
    await until(lambda: running.libvirtd.asked == ["shutdown"], "a request")


async def test_a_restarted_virt_node_costs_no_connection(running: Node) -> None:
    """Descriptors from virt-node stay open. Only the next connection waits for it."""
    virt_node = running.virt_node
    assert virt_node is not None
    await virt_node.kill()
    running.libvirtd.hang_up()
    await until(lambda: virt_node.dials > 1, "another attempt")
    assert running.phase == "Running"
    virt_node.is_up = True
    await until(lambda: running.registry is not None and running.registry.connected == 1, "a connection")
    assert running.phase == "Running"


async def look_again(node: Node) -> None:
    """Let the next search for traces become due."""
    await asyncio.sleep(0.05)
    node.clock.seconds += 20
    node.vmis.put(node.api.objects[KEY])
    await asyncio.sleep(0.05)


async def look_until(node: Node, is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await look_again(node)


@pytest.mark.parametrize("restarts", [True, False], ids=["restarted handler", "same handler"])
async def test_a_lost_launcher_counts_as_running_while_the_node_has_traces(running: Node, restarts: bool) -> None:
    running.proc.add(QEMU, f"0::/kubepods/besteffort/pod{POD_UID}/abc\n")
    running.libvirtd.is_listening = False
    running.files.close()
    if restarts:
        await running.end()
    running.pods.remove(POD)
    running.libvirtd.hang_up()
    if restarts:
        running.begin()
    await look_until(running, lambda: "its directory and 1 processes of it" in condition(running))
    running.files.remove()
    await look_again(running)
    assert running.phase == "Running"
    running.proc.end(QEMU)
    await look_until(running, lambda: running.phase == "Failed")
    assert running.status["reason"] == "LauncherGone"


async def test_a_launcher_affects_only_the_vmi_that_owns_its_pod(node: Node) -> None:
    """Its domain has another name, its metadata name another VMI, and its events are about another domain."""
    other = vmi_object("Scheduled")
    other["metadata"] |= {"name": NEXT.name, "uid": NEXT_UID}
    other["status"]["activePods"] = {NEXT_POD: NODE}
    pod = pod_object(NEXT_POD, owner_uid=NEXT_UID)
    pod["metadata"]["ownerReferences"][0]["name"] = NEXT.name
    node.pods.put(pod)
    node.api.store(other)
    before = copy.deepcopy(node.api.objects[NEXT]["status"])
    node.libvirtd.names = {VMI_UID, NEXT_UID}
    theirs = domain_text().replace(VMI_UID, NEXT_UID).replace(POD_UID, NEXT_POD).replace('"web"', '"next"')
    guest = await FakeConnection(node.libvirtd).define(theirs)
    guest.life = RUNNING
    node.make_launcher()
    node.hand_over()
    node.pods.put(pod_object())
    await until(lambda: guest.descriptions == 1, "a look")
    for word in ("started", "stopped", "crashed"):
        node.libvirtd.tell(LifecycleChanged(NEXT_UID, word))
        await asyncio.sleep(0.01)
    assert node.phase == "Scheduled"

    (await FakeConnection(node.libvirtd).define(domain_text())).life = RUNNING
    node.libvirtd.hang_up()
    await until(lambda: node.phase == "Running", "its own guest")
    assert node.api.objects[NEXT]["status"] == before


@pytest.mark.parametrize("restarts", [True, False], ids=["restarted handler", "same handler"])
async def test_an_orphan_ends_before_the_next_guest_starts(running: Node, restarts: bool) -> None:
    """No VMI grants the orphan's Pod the run, so no VMI makes a restarted virt-handler dial it."""
    running.proc.add(QEMU, f"0::/kubepods/besteffort/pod{POD_UID}/abc\n", comm="qemu-system-x86")

    async def destroy() -> None:
        running.libvirtd.asked.append("destroy")

    guest_of(running).destroy = guest_of(running).kill = destroy  # type: ignore[method-assign]
    if restarts:
        await running.end()
    else:
        running.heard.is_cut_off, running.api.error = True, Unavailable("cut off")
        running.clock.seconds += LEASE_SECONDS + 1
    moved = vmi_object("Running", node=OTHER)
    moved["metadata"]["uid"] = "0000eeee"
    moved["status"]["activePods"] = {"eeee0000": OTHER}
    running.api.is_lagging = True
    running.api.store(moved)
    running.api.is_lagging, running.api.error = False, None
    running.vmis.remove(KEY)
    if restarts:
        running.begin()
    libvirtd = running.others[NEXT_POD] = FakeLibvirtd(NEXT_UID)
    files = LauncherFiles(running.files.run.parents[3], NEXT_POD)
    files.make_directory()
    files.report()
    files.listen()
    pod = pod_object(NEXT_POD, owner_uid=NEXT_UID)
    pod["metadata"]["ownerReferences"][0]["name"] = NEXT.name
    vmi = vmi_object()
    vmi["metadata"] |= {"name": NEXT.name, "uid": NEXT_UID}
    vmi["status"]["activePods"] = {NEXT_POD: NODE}
    running.api.store(vmi)
    running.pods.put(pod)
    await until(lambda: len(running.network.wanted) == 2, "the network of the next guest")
    await until(lambda: running.libvirtd.asked == ["destroy"], "the orphan's end")
    await asyncio.sleep(0.05)
    assert libvirtd.guest is None
    running.proc.end(QEMU)
    guest_of(running).become(OFF, "stopped")
    await until(lambda: libvirtd.guest is not None and libvirtd.guest.starts > 0, "the next guest")
    files.close()


@pytest.mark.parametrize("restarts", [True, False], ids=["restarted handler", "same handler"])
@pytest.mark.parametrize("stopped", [BY_MIGRATION, WHOLE], ids=lambda state: state.reason)
async def test_a_guest_paused_by_a_failed_migration_resumes(running: Node, stopped: State, restarts: bool) -> None:
    is_stopping, is_broken = asyncio.Event(), asyncio.Event()

    async def send(request: TransferRequest) -> None:
        await request.writes.begin()
        await is_stopping.wait()
        await request.writes.stop()
        guest_of(running).become(stopped, "suspended")
        await is_broken.wait()
        raise Failed("the tunnel broke")

    def state() -> dict[str, object]:
        return dict(running.status["migrationState"])

    await running.end()
    running.send = send
    running.begin()
    ready = migrating_object(targetNodeAddress="10.244.1.9", targetDirectMigrationNodePorts={"4711": 0})
    status = {**running.status, "migrationState": ready["status"]["migrationState"]}
    running.api.store({**running.api.objects[KEY], "status": status})
    await until(lambda: state().get("mode") == "PreCopy", "the start")
    is_stopping.set()
    await until(lambda: condition(running, "Paused").startswith("PausedByMigrationMonitor"), "the pause")
    assert state()["mode"] == "Paused"
    if restarts:
        await running.end()
        assert guest_of(running).life == stopped
        running.begin()
    else:
        is_broken.set()
    await until(lambda: state().get("failed") is True, "the end of the migration")
    assert guest_of(running).life.life is Life.RUNNING
    assert state()["failureReason"] == (RESTARTED if restarts else "the tunnel broke")
    await until(lambda: condition(running, "Paused") == "", "no Paused condition")
