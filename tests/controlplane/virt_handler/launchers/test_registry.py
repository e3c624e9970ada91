# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of launchers: which Pods have a session, and how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from controlplane.api.objects.resources import Key
from controlplane.domain.state import Life, State
from controlplane.domain.statistics import Statistics
from controlplane.hypervisor.errors import HypervisorError
from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers import registry as registry_module
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeError
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.ports import CannotLook, NoContact, OperationInputs
from controlplane.virt_handler.vmi.world import NodeTrouble, PrepareNetwork, Traces
from tests.controlplane.virt_handler.builders import POD_UID, VMI_UID, a_vmi, domain_text, pod_object
from tests.controlplane.virt_handler.fakes import FakeCache, FakeClock, FakeGuest, FakeLibvirtd, until
from tests.controlplane.virt_handler.launchers.session_stage import FakeNode
from tests.support.tasks import cancel_task

POD = Key("default", f"virt-launcher-web-{POD_UID[:4]}")
VMI = Key("default", "web")
PREPARE = PrepareNetwork(POD_UID, "test")


class Node(FakeNode):
    """A node on which waits take time to end, and a network setup ends on command."""

    def __init__(self) -> None:
        super().__init__()
        self.why_away = ""
        self.callbacks: list[Callable[[], None]] = []
        self.may_end = asyncio.Event()
        self.waits, self.concurrent_waits, self.most_waits = 0, 0, 0
        self.bugs: dict[str, int] = {}
        """By Pod UID: how often a request raised an unexpected error."""

    @property
    def trouble(self) -> str:
        return self.why_away

    def subscribe(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def change(self, why_away: str) -> None:
        self.why_away = why_away
        for callback in self.callbacks:
            callback()

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        if pod_uid in self.bugs:
            self.bugs[pod_uid] += 1
            raise ZeroDivisionError
        self.waits += 1
        self.concurrent_waits += 1
        self.most_waits = max(self.most_waits, self.concurrent_waits)
        try:
            return await super().open_socket(pod_uid)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
            raise
        finally:
            self.concurrent_waits -= 1

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface:
        interface = await super().set_up_network(pod_uid, wanted)
        await self.may_end.wait()
        return interface

    async def find_traces(self, pod_uid: str) -> Traces:
        raise NodeError("virt-node is not reachable")


class Stage:
    def __init__(self) -> None:
        self.pods, self.clock, self.node, self.libvirtd = FakeCache(), FakeClock(), Node(), FakeLibvirtd(VMI_UID)
        self.enqueued: list[Key] = []
        tools = Tools(self.node, self.clock, self.libvirtd.connect)
        self.registry = Registry(self.pods, tools, self.enqueued.append)

    @property
    def session(self) -> Session:
        session = self.registry.session(POD_UID)
        assert session is not None
        return session

    @property
    def gone(self) -> dict[str, bool]:
        return {launcher.pod.uid: launcher.is_gone for launcher in self.registry.launchers_of(VMI_UID)}

    async def begin_operation(self) -> None:
        """List the Pod, and begin to set up its network."""
        self.pods.put(pod_object())
        self.session.perform(PREPARE, OperationInputs(a_vmi()))
        await until(lambda: bool(self.node.networks), "the network setup")

    async def connect(self) -> None:
        self.pods.put(pod_object())
        self.session.admit()
        await until(lambda: self.registry.connected == 1, "a connection")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Return a stage whose registry runs."""
    stage = Stage()
    assert not stage.registry.synced
    task = asyncio.create_task(stage.registry.run())
    await asyncio.sleep(0)
    yield stage
    await cancel_task(task)


async def test_pods_are_known_once_they_are_listed_and_processed(stage: Stage) -> None:
    assert stage.registry.synced
    stage.pods.synced = False
    assert not stage.registry.synced


async def test_a_pod_replaced_under_its_name_is_gone(stage: Stage) -> None:
    """A watch that missed the deletion shows the new Pod in place of the old one."""
    old, new = pod_object(), pod_object("another")
    new["metadata"]["name"] = old["metadata"]["name"]
    stage.pods.put(old)
    stage.pods.put(new)
    assert stage.gone == {POD_UID: True, "another": False}


async def test_only_a_pod_that_had_an_owner_is_a_launcher(stage: Stage) -> None:
    """`kubectl delete vmi --cascade=orphan` removes the owner. The launcher is still the VMI's until it is gone."""
    ownerless = pod_object()
    del ownerless["metadata"]["ownerReferences"]
    stage.pods.put(ownerless)
    assert len(stage.registry) == 0
    stage.pods.put(pod_object())
    for phase, is_over in (("Running", False), ("Succeeded", True)):
        stage.pods.put({**ownerless, "status": {"phase": phase}})
        assert [launcher.pod.is_over for launcher in stage.registry.launchers_of(VMI_UID)] == [is_over]
        assert [launcher.pod.uid for launcher in stage.registry.launchers_named(VMI)] == [POD_UID]
        assert stage.registry.launchers_named(Key("another", "web")) == ()
    stage.enqueued.clear()
    stage.pods.remove(POD)
    assert stage.enqueued == [VMI]
    await until(lambda: len(stage.registry) == 0, "the end of the session")


async def test_an_undecodable_pod_still_exists(stage: Stage) -> None:
    stage.pods.put(pod_object())
    body = pod_object()
    body["status"]["phase"] = ["not", "a", "word"]
    stage.pods.put(body)
    assert stage.gone == {POD_UID: False}
    stage.pods.remove(POD)
    await until(lambda: len(stage.registry) == 0, "the end of the session")


async def test_a_pod_that_is_listed_again_keeps_its_operation_and_its_run(stage: Stage) -> None:
    await stage.begin_operation()
    stage.session.record.publish(has_run=True)
    for _unused in range(3):
        stage.pods.remove(POD)
        await asyncio.sleep(0)
        stage.pods.put(pod_object())
        await asyncio.sleep(0)
    assert stage.session.launcher().operation == "prepare network"
    with pytest.raises(NoContact, match="busy"):
        stage.session.perform(PREPARE, OperationInputs(a_vmi()))
    stage.node.may_end.set()
    await until(lambda: stage.session.launcher().operation == "", "the end of the operation")
    status = stage.session.launcher().status
    assert (status.is_network_ready, status.has_run, len(stage.node.networks)) == (True, True, 1)


async def test_a_removed_pod_is_forgotten_after_its_operation(stage: Stage) -> None:
    await stage.begin_operation()
    stage.pods.remove(POD)
    await asyncio.sleep(0.01)
    assert stage.gone == {POD_UID: True}
    stage.node.may_end.set()
    await until(lambda: len(stage.registry) == 0, "the end of the session")
    assert stage.registry.session(POD_UID) is None


@pytest.mark.parametrize("ends_by", ["removed", "removed twice", "finished"])
async def test_a_pod_that_ends_leaves_no_task(stage: Stage, ends_by: str) -> None:
    before = len(asyncio.all_tasks())
    stage.node.has_launcher.clear()
    stage.pods.put(pod_object())
    await asyncio.sleep(0.01)
    assert len(asyncio.all_tasks()) > before
    if ends_by == "finished":
        stage.pods.put(pod_object(phase="Failed"))
    else:
        stage.pods.remove(POD)
    if ends_by == "removed twice":
        stage.pods.put(pod_object())
        await until(lambda: stage.node.waits == 2, "another wait for the socket")
        stage.pods.remove(POD)
    await until(lambda: len(asyncio.all_tasks()) == before, "the end of the tasks")
    await until(lambda: len(stage.registry) == (ends_by == "finished"), "the end of the session")
    assert stage.node.most_waits == 1, "the second wait begins after the first has ended"


async def test_a_removed_pod_stays_connected_until_libvirtd_closes(stage: Stage) -> None:
    """Its guest may still run, and only a connected launcher can be told to end it."""
    await stage.connect()
    stage.pods.remove(POD)
    for _unused in range(5):
        await asyncio.sleep(0)
    assert stage.registry.connected == 1
    stage.libvirtd.hang_up()
    await until(lambda: len(stage.registry) == 0, "the end of the session")


async def test_a_pod_listed_at_the_end_of_its_connection_is_connected_again(stage: Stage) -> None:
    """The end of a task is noticed a moment later."""
    await stage.connect()
    stage.pods.remove(POD)
    task = stage.registry._tasks[POD_UID]
    stage.libvirtd.hang_up()
    while not task.done():  # noqa: ASYNC110 - an event would be set only after the end was noticed
        await asyncio.sleep(0)
    assert POD_UID in stage.registry._tasks
    stage.pods.put(pod_object())
    await until(lambda: stage.registry.connected == 1, "a connection")
    stage.pods.remove(POD)
    stage.libvirtd.hang_up()
    await until(lambda: len(stage.registry) == 0, "the end of the session")


async def test_all_vmis_are_enqueued_when_virt_node_connects_or_disconnects(stage: Stage) -> None:
    """No other event enqueues a VMI whose launcher is not up."""
    stage.pods.put(pod_object())
    assert stage.registry.node_trouble is None
    stage.enqueued.clear()
    for seconds, why in ((2000.0, "away"), (2005.0, ""), (2010.0, "away again")):
        stage.clock.seconds = seconds
        stage.node.change(why)
        assert stage.enqueued.pop() == VMI
        assert stage.registry.node_trouble == (NodeTrouble(why, since=seconds) if why else None)
        stage.clock.seconds += 1
        assert stage.registry.node_trouble == (NodeTrouble(why, since=seconds) if why else None)


async def test_an_error_while_searching_is_no_result(stage: Stage) -> None:
    with pytest.raises(CannotLook, match="virt-node is not reachable"):
        await stage.registry.find_traces(POD_UID)


async def test_a_bug_triggered_by_one_launcher_costs_only_its_own_connection(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry_module, "_AFTER_BUG_SECONDS", 0.01)
    stage.node.bugs["bad"] = 0
    stage.pods.put(pod_object("bad"))
    await until(lambda: stage.node.bugs["bad"] >= 3, "other attempts")
    await stage.connect()


async def test_statistics_are_those_of_the_guests_that_are_up_and_answer(stage: Stage) -> None:
    await stage.connect()
    assert await stage.registry.statistics() == {}, "no guest yet"

    guest = await stage.session.connection.require().define(domain_text())
    assert isinstance(guest, FakeGuest)
    guest.become(State(Life.RUNNING, "booted"), "started")
    await stage.session.connection.refresh()
    assert await stage.registry.statistics() == {VMI: Statistics({"cpu.time": 1})}

    guest.counters = HypervisorError("no answer")
    assert await stage.registry.statistics() == {}
