# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registry, sessions and reconciler together: a VMI from hand-over to its end, with faults at every step.

The directory, the socket and inotify are real; libvirt, the API server and the Pod's network are fakes with behaviour.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.domain.state import Life, State
from controlplane.engine.backoff import BackOff
from controlplane.engine.errors import Unavailable
from controlplane.engine.ports import Json
from controlplane.engine.queue import Queue
from controlplane.engine.runner import Runner
from controlplane.hypervisor.errors import HypervisorError, InvalidDomain
from controlplane.hypervisor.events import LifecycleChanged
from controlplane.virt_handler.inotify import Inotify
from controlplane.virt_handler.launcher_dir import PodsDirectory
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.session import Tools
from controlplane.virt_handler.vmi.reconciler import Told, VmiReconciler
from tests.controlplane.virt_handler.builders import NODE, POD_UID, VMI_UID, domain_text, ended, pod_object, vmi_object
from tests.controlplane.virt_handler.fakes import (
    FakeApi,
    FakeCache,
    FakeClock,
    FakeConnection,
    FakeLibvirtd,
    FakeNetwork,
    FakeProc,
    LauncherFiles,
    until,
)

pytestmark = pytest.mark.root  # sockets of uid 107

KEY = Key("default", "web")
CRASHED = State(Life.SHUT_OFF, "crashed")


@dataclass
class Node:
    """A node with one launcher Pod, and virt-handler on it."""

    pods: FakeCache
    vmis: FakeCache
    api: FakeApi
    clock: FakeClock
    libvirtd: FakeLibvirtd
    files: LauncherFiles
    network: FakeNetwork
    directory: PodsDirectory
    proc: FakeProc
    told: list[Told] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    registry: Registry | None = None

    def begin(self) -> None:
        """Start virt-handler."""
        self._task = asyncio.create_task(self._run())

    async def end(self) -> None:
        """Kill virt-handler; the launcher does not notice."""
        if self._task is not None:
            self._task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await self._task
        self.libvirtd.hang_up()

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.api.objects[KEY]["status"])

    @property
    def phase(self) -> str:
        return str(self.status["phase"])

    def hand_over(self, **fields: Any) -> None:
        self.api.store(vmi_object("Scheduled", **fields))

    async def start(self) -> None:
        self.hand_over()
        await until(lambda: self.phase == "Running", "Running")

    async def _run(self) -> None:
        inotify = Inotify()
        tools = Tools(
            self.directory,
            inotify,
            self.clock,
            self.libvirtd.connect,
            self.network.set_up,
            lambda _unused: {"q.xml": b"<x/>"},
            str(self.proc.root),
        )
        # pylint: disable-next=unnecessary-lambda
        registry = self.registry = Registry(self.pods, tools, lambda key: runner.add(key))  # noqa: PLW0108 - made below
        reconciler = VmiReconciler(NODE, self.vmis, registry, self.api, self.clock, tell=self._tell)
        real = asyncio.get_running_loop()

        class Running(FakeClock):  # delays of the queue are real, and short
            def monotonic(self) -> float:
                return real.time()

        runner: Runner[Any, Any, Any] = Runner("vmi", reconciler, Queue(BackOff(random.Random(1).random)), Running())
        self.vmis.subscribe(lambda key, before, after: runner.add(key))
        for key in self.vmis.keys():  # noqa: SIM118
            runner.add(key)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(registry.run())
                group.create_task(runner.run())
        finally:
            inotify.close()

    async def _tell(self, about: Json, told: Told) -> None:
        self.told.append(told)


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    (tmp_path / "pods").mkdir()
    monkeypatch.chdir(tmp_path)
    vmis = FakeCache()
    made = Node(
        pods=FakeCache(),
        vmis=vmis,
        api=FakeApi(vmis),
        clock=FakeClock(),
        libvirtd=FakeLibvirtd(VMI_UID),
        files=LauncherFiles(tmp_path / "pods"),
        network=FakeNetwork(),
        directory=PodsDirectory(str(tmp_path / "pods")),
        proc=FakeProc(tmp_path / "proc"),
    )
    made.begin()
    await asyncio.sleep(0)
    yield made
    await made.end()
    made.files.close()
    made.directory.close()


@pytest.fixture
async def up(node: Node) -> Node:
    """A node whose launcher is prepared and waits."""
    node.api.store(vmi_object("Scheduling"))
    node.pods.put(pod_object(phase="Pending"))
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    await until(lambda: bool(node.network.wanted), "the network")
    return node


@pytest.fixture
async def running(up: Node) -> Node:
    await up.start()
    return up


async def test_a_vmi_is_started_step_by_step_as_its_pod_comes_up(node: Node) -> None:
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
    assert [one.reason for one in running.told] == ["Started"]


async def test_a_hand_over_before_the_launcher_is_up_is_started_when_it_is(node: Node) -> None:
    node.hand_over()
    node.pods.put(pod_object())
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    await until(lambda: node.phase == "Running", "Running")
    assert len(node.network.wanted) == 1


async def test_a_stale_cache_does_not_start_what_the_api_server_has_taken_back(up: Node) -> None:
    up.api.is_lagging = True
    up.api.store(vmi_object("Scheduled", deleting=True))
    gets = up.api.gets
    up.vmis.put(vmi_object("Scheduled"))
    await until(lambda: up.api.gets > gets, "the quorum read")
    await asyncio.sleep(0.01)
    assert up.libvirtd.defined == []


async def test_without_an_answer_from_the_api_server_nothing_is_started(up: Node) -> None:
    up.api.is_lagging = True
    up.api.store(vmi_object("Scheduled"))
    up.api.error = Unavailable("no answer")
    up.vmis.put(vmi_object("Scheduled"))
    await asyncio.sleep(0.05)
    assert up.libvirtd.defined == []
    up.api.error = None
    up.api.is_lagging = False
    up.api.store(vmi_object("Scheduled"))
    await until(lambda: up.phase == "Running", "Running")


async def test_killed_qemu_makes_the_vmi_failed_at_once(running: Node) -> None:
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(CRASHED, "stopped")
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "GuestCrashed"
    assert [one.reason for one in running.told] == ["Started", "Stopped"]
    assert running.told[-1].message == "The VirtualMachineInstance crashed."


async def test_a_guest_that_powers_off_makes_the_vmi_succeeded(running: Node) -> None:
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(State(Life.SHUT_OFF, "shutdown"), "stopped")
    await until(lambda: running.phase == "Succeeded", "Succeeded")


async def test_a_killed_libvirtd_changes_nothing_and_is_found_again(running: Node) -> None:
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


async def test_qemu_and_libvirtd_killed_together_is_told_by_the_pod(running: Node) -> None:
    running.libvirtd.is_listening = False
    running.libvirtd.hang_up()
    running.files.close()
    await asyncio.sleep(0.02)
    assert running.phase == "Running"
    running.pods.put(pod_object(phase="Failed", **ended(1, "QEMU was killed")))
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["conditions"][-1]["message"] == "QEMU was killed"


async def test_a_restarted_handler_finds_the_guest_and_writes_nothing(running: Node) -> None:
    await running.end()
    patches = len(running.api.patches)
    running.begin()
    await until(lambda: running.registry is not None and running.registry.connected == 1, "contact")
    await asyncio.sleep(0.02)
    assert len(running.api.patches) == patches
    assert running.libvirtd.asked == []
    assert running.libvirtd.guest is not None
    assert running.libvirtd.guest.starts == 1


async def test_a_handler_that_died_between_start_and_status_says_running_when_it_is_back(up: Node) -> None:
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


async def test_a_deaf_guest_is_ended_when_its_grace_period_is_over(running: Node) -> None:
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


POD = Key("default", f"virt-launcher-web-{POD_UID[:4]}")
QEMU = 4711


def lose_pod(node: Node) -> None:
    """Remove the Pod by force while virt-handler and libvirtd are cut off; QEMU goes on."""
    node.proc.add(QEMU, f"0::/kubepods/besteffort/pod{POD_UID}/abc\n")
    node.libvirtd.is_listening = False
    node.files.close()
    node.pods.remove(POD)
    node.libvirtd.hang_up()


async def look_again(node: Node) -> None:
    """Let the time of the next look come."""
    await asyncio.sleep(0.05)
    node.clock.seconds += 20
    node.vmis.put(node.api.objects[KEY])
    await asyncio.sleep(0.05)


def synchronized(node: Node) -> str:
    return next((one["message"] for one in node.status["conditions"] if one["type"] == "Synchronized"), "")


@pytest.mark.parametrize("first", ["directory", "processes"])
async def test_a_lost_launcher_counts_as_running_until_the_node_has_nothing_of_it(running: Node, first: str) -> None:
    lose_pod(running)
    await look_again(running)
    await until(lambda: "its directory and 1 processes of it" in synchronized(running), "a look")
    assert running.phase == "Running"
    ends = [running.files.remove, lambda: running.proc.end(QEMU)]
    for index, end in enumerate(ends if first == "directory" else reversed(ends)):
        assert running.phase == "Running", f"after {index} of two ends"
        end()
        await look_again(running)
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "LauncherGone"
    assert POD_UID in synchronized(running)


async def test_a_restarted_handler_does_not_take_an_unlisted_launcher_for_dead(running: Node) -> None:
    await running.end()
    lose_pod(running)
    running.begin()
    await look_again(running)
    await until(lambda: "processes of it" in synchronized(running), "a look")
    assert running.phase == "Running"
    running.files.remove()
    running.proc.end(QEMU)
    await look_again(running)
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "LauncherGone"


async def test_a_handler_that_does_not_know_its_pods_yet_takes_none_for_lost(node: Node) -> None:
    node.pods.synced = False
    node.api.store(vmi_object("Running"))
    await asyncio.sleep(0.05)
    assert node.phase == "Running"
    node.pods.synced = True
    node.vmis.put(node.api.objects[KEY])
    await until(lambda: node.phase == "Failed", "Failed")
    assert node.status["reason"] == "LauncherGone"


async def test_a_guest_that_is_running_is_not_gone_because_virt_controller_lost_its_pod(running: Node) -> None:
    running.api.store({**vmi_object("Unknown"), "status": {**running.status, "phase": "Unknown"}})
    await until(lambda: running.phase == "Running", "Running")
    assert running.libvirtd.asked == []


async def test_before_the_hand_over_a_vmi_is_read_once_and_by_its_uid(node: Node) -> None:
    node.api.store({**vmi_object("Scheduling"), "metadata": {**vmi_object()["metadata"], "uid": "another"}})
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.pods.put(pod_object(phase="Pending"))
    await until(lambda: node.registry is not None and node.registry.connected == 1, "contact")
    node.pods.put(pod_object())
    await asyncio.sleep(0.02)
    assert node.api.gets == 1
    assert node.network.wanted == []
    assert node.libvirtd.defined == []


async def test_an_impossible_domain_fails_with_the_reason(up: Node) -> None:
    up.libvirtd.define_error = InvalidDomain("cannot define: unsupported CPU model")
    up.hand_over()
    await until(lambda: up.phase == "Failed", "Failed")
    assert up.status["reason"] == "InvalidDomain"
    assert "unsupported CPU model" in up.status["conditions"][-1]["message"]


@pytest.mark.parametrize(
    "seen", [State(Life.RUNNING, "booted"), State(Life.PAUSED, "starting_up")], ids=["running", "starting up"]
)
async def test_a_qemu_that_only_flashes_up_never_makes_the_vmi_running(up: Node, seen: State) -> None:
    up.libvirtd.start_error = InvalidDomain("cannot start: could not open kernel file '/img/kernel-boot/nope'")
    up.libvirtd.while_starting = seen
    up.hand_over()
    await until(lambda: up.phase != "Scheduled", "a verdict")
    assert up.phase == "Failed"
    assert up.status["reason"] == "InvalidDomain"
    assert "could not open kernel file" in up.status["conditions"][-1]["message"]
    assert [one.reason for one in up.told] == ["Stopped"]
    assert "could not open kernel file" in up.told[0].message


async def test_a_domain_that_libvirt_knows_no_more_is_the_end_of_a_run(running: Node) -> None:
    running.libvirtd.guest = None
    running.libvirtd.tell(LifecycleChanged("domain", "undefined"))
    await until(lambda: running.phase == "Failed", "Failed")
    assert running.status["reason"] == "GuestLost"


async def test_a_handler_that_comes_back_in_the_middle_of_a_start_waits_for_its_end(up: Node) -> None:
    """libvirtd goes on with a start whose client died; what it shows meanwhile is not a guest yet."""
    guest = await FakeConnection(up.libvirtd).define(domain_text())
    guest.life = State(Life.PAUSED, "starting_up")
    await up.end()
    up.hand_over()
    up.begin()
    await until(lambda: up.registry is not None and up.registry.connected == 1, "contact")
    await asyncio.sleep(0.02)
    assert up.phase == "Scheduled"
    guest.become(State(Life.RUNNING, "booted"), "started")
    await until(lambda: up.phase == "Running", "Running")


async def test_a_start_that_fails_for_long_is_given_up_with_the_reason(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no space left on device")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 3, "some attempts")
    assert up.phase == "Scheduled"
    assert "no space left" in up.status["conditions"][-1]["message"]
    up.clock.seconds += 2
    await until(lambda: up.phase == "Failed", "Failed")
    assert up.status["reason"] == "StartFailed"


async def test_a_start_that_fails_for_a_moment_succeeds_after_all(up: Node) -> None:
    up.libvirtd.start_error = HypervisorError("cannot start: no memory")
    up.hand_over()
    await until(lambda: len(up.libvirtd.defined) > 1, "some attempts")
    up.libvirtd.start_error = None
    await until(lambda: up.phase == "Running", "Running")


async def test_a_lying_report_fails_the_vmi_and_names_it(up: Node) -> None:
    up.files.report("/img/volumes/root/../../etc/shadow")
    up.hand_over()
    await until(lambda: up.phase == "Failed", "Failed")
    assert "outside the image of volume root" in up.status["conditions"][-1]["message"]
    assert up.libvirtd.defined == []


async def test_a_network_that_cannot_be_set_up_is_said_and_tried_again(node: Node) -> None:
    node.network.error = LookupError("the Pod has no interface eth0")
    node.hand_over()
    node.pods.put(pod_object())
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    await until(lambda: bool(node.status.get("conditions")), "a condition")
    assert "no interface eth0" in node.status["conditions"][-1]["message"]
    node.network.error = None
    await until(lambda: node.phase == "Running", "Running")


async def test_a_pod_that_only_looks_like_a_launcher_gets_nothing(node: Node) -> None:
    """Its labels are right, but no VMI controls it."""
    forged = pod_object()
    del forged["metadata"]["ownerReferences"]
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.pods.put(forged)
    node.hand_over()
    await asyncio.sleep(0.02)
    assert node.libvirtd.dials == 0
    assert [one.name for one in node.files.run.iterdir() if one.name == "cache"] == []
