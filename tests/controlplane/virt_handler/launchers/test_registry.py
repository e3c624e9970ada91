# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry of launchers: its Pods, and the traces that a node has of a missing Pod. Sessions: test_story."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from controlplane.api.objects.resources import Key
from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.ports import CannotLook, NoContact, OperationInputs
from controlplane.virt_handler.vmi.world import NodeTrouble, PrepareNetwork, Traces
from controlplane.virt_node.launcher_dir import PodsDirectory
from tests.controlplane.virt_handler.builders import POD_UID, VMI_UID, a_vmi, pod_object
from tests.controlplane.virt_handler.fakes import (
    FakeCache,
    FakeClock,
    FakeLibvirtd,
    FakeNetwork,
    FakeProc,
    LauncherFiles,
    until,
)
from tests.controlplane.virt_handler.node.virt_node import VirtNode, linked

POD = Key("default", f"virt-launcher-web-{POD_UID[:4]}")
VMI = Key("default", "web")


class Node:
    def __init__(self, root: Path) -> None:
        (root / "pods").mkdir()
        self.pods, self.clock = FakeCache(), FakeClock()
        self.proc = FakeProc(root / "proc")
        self.files = LauncherFiles(root / "pods")
        self.directory = PodsDirectory(str(root / "pods"))
        self.network = FakeNetwork()
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.virt_node = VirtNode(self.directory, self, self.proc)  # type: ignore[arg-type]
        self.client = NodeClient(self.virt_node.dial)
        tools = Tools(self.client, self.clock, FakeLibvirtd(VMI_UID).connect)
        self.woken: list[Key] = []
        self.registry = Registry(self.pods, tools, self.woken.append)

    def set_up(self, namespace: AbstractContextManager[int], wanted: Masquerade) -> PodInterface:
        """Set up a Pod's network once may_end is set."""
        self.has_begun.set()
        self.may_end.wait(5)
        return self.network.set_up(namespace, wanted)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(tmp_path)
    async with linked(node.client):
        await until(lambda: node.client.is_connected, "contact with virt-node")
        yield node
    await node.virt_node.close()
    node.directory.close()


@pytest.fixture
async def registry(node: Node) -> AsyncIterator[Registry]:
    """Run the node's registry."""
    task = asyncio.create_task(node.registry.run())
    await asyncio.sleep(0)
    yield node.registry
    node.may_end.set()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_pods_are_known_once_they_are_listed_and_processed(node: Node) -> None:
    assert not node.registry.synced
    task = asyncio.create_task(node.registry.run())
    await asyncio.sleep(0)
    assert node.registry.synced
    node.pods.synced = False
    assert not node.registry.synced
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_pod_replaced_under_its_name_is_gone(node: Node, registry: Registry) -> None:
    """A watch that missed the deletion shows the new Pod in place of the old one."""
    old, new = pod_object(), pod_object("another")
    new["metadata"]["name"] = old["metadata"]["name"]
    node.pods.put(old)
    node.pods.put(new)
    gone = {launcher.pod.uid: launcher.is_gone for launcher in registry.launchers_of(VMI_UID)}
    assert gone == {POD_UID: True, "another": False}


async def test_a_launcher_without_its_owner_still_belongs_to_its_vmi_until_its_pod_is_gone(
    node: Node, registry: Registry
) -> None:
    """After `kubectl delete vmi --cascade=orphan` it was remembered for ever as running."""
    node.pods.put(pod_object())
    for phase, is_over in (("Running", False), ("Succeeded", True)):
        orphaned = pod_object(phase=phase)
        del orphaned["metadata"]["ownerReferences"]
        node.pods.put(orphaned)
        assert [launcher.pod.is_over for launcher in registry.launchers_of(VMI_UID)] == [is_over]
        assert [launcher.pod.uid for launcher in registry.launchers_named(VMI)] == [POD_UID]
    node.woken.clear()
    node.pods.remove(POD)
    assert node.woken == [VMI]
    await until(lambda: len(registry) == 0, "nothing of it")


async def test_a_launcher_is_found_by_namespace_and_name_of_its_vmi(node: Node, registry: Registry) -> None:
    """Guests of a name without an owner are ended."""
    node.pods.put(pod_object())
    assert registry.launchers_named(Key("another", "web")) == ()


async def test_a_pod_that_never_had_an_owner_is_no_launcher(node: Node, registry: Registry) -> None:
    body = pod_object()
    del body["metadata"]["ownerReferences"]
    node.pods.put(body)
    assert len(registry) == 0


async def test_an_undecodable_pod_still_exists(node: Node, registry: Registry) -> None:
    """It was taken for gone, and its guest for an orphan."""
    node.pods.put(pod_object())
    body = pod_object()
    body["status"]["phase"] = ["not", "a", "word"]
    node.pods.put(body)
    assert [launcher.is_gone for launcher in registry.launchers_of(VMI_UID)] == [False]
    node.pods.remove(POD)
    await until(lambda: len(registry) == 0, "nothing of it")


async def begin_an_operation(node: Node, registry: Registry) -> None:
    """Create a Pod and start to set up its network."""
    node.pods.put(pod_object())
    session = registry.session(POD_UID)
    assert session is not None
    session.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))
    await until(node.has_begun.is_set, "the network")


async def test_a_pod_that_is_listed_again_keeps_its_operation(node: Node, registry: Registry) -> None:
    """The operation was started once more for each time that the Pod was listed."""
    await begin_an_operation(node, registry)
    for _unused in range(3):
        node.pods.remove(POD)
        await asyncio.sleep(0)
        node.pods.put(pod_object())
        await asyncio.sleep(0)
    again = registry.session(POD_UID)
    assert again is not None
    assert again.launcher().operation == "prepare network"
    with pytest.raises(NoContact, match="busy"):
        again.perform(PrepareNetwork(POD_UID, "test"), OperationInputs(a_vmi()))
    node.may_end.set()
    await until(lambda: again.launcher().operation == "", "its end")
    assert again.launcher().status.is_network_ready
    assert len(node.network.wanted) == 1


async def test_a_removed_pod_is_forgotten_after_its_operation(node: Node, registry: Registry) -> None:
    await begin_an_operation(node, registry)
    node.pods.remove(POD)
    await asyncio.sleep(0.01)
    assert [launcher.is_gone for launcher in registry.launchers_of(VMI_UID)] == [True]
    node.may_end.set()
    await until(lambda: len(registry) == 0, "nothing of it")
    assert registry.session(POD_UID) is None


async def test_a_pod_that_is_removed_at_once_leaves_nothing(node: Node, registry: Registry) -> None:
    node.pods.put(pod_object())
    node.pods.remove(POD)
    await until(lambda: len(registry) == 0, "nothing of it")


async def test_a_pod_that_was_listed_twice_and_removed_leaves_no_task(node: Node, registry: Registry) -> None:
    before = len(asyncio.all_tasks())
    node.pods.put(pod_object())
    await asyncio.sleep(0.01)
    node.pods.remove(POD)
    node.pods.put(pod_object())
    await asyncio.sleep(0.01)
    assert len(asyncio.all_tasks()) > before
    node.pods.remove(POD)
    await until(lambda: len(asyncio.all_tasks()) == before, "nobody")
    assert len(registry) == 0


async def test_a_finished_pod_leaves_no_task(node: Node, registry: Registry) -> None:
    before = len(asyncio.all_tasks())
    node.pods.put(pod_object())
    await asyncio.sleep(0.01)
    node.pods.put(pod_object(phase="Failed"))
    await until(lambda: len(asyncio.all_tasks()) == before, "nobody")
    assert [launcher.pod.is_over for launcher in registry.launchers_of(VMI_UID)] == [True], "it is listed on"


async def test_a_run_is_remembered_when_its_pod_is_listed_again(node: Node, registry: Registry) -> None:
    """The guest never starts a second time in this Pod."""
    node.pods.put(pod_object())
    session = registry._sessions[POD_UID]
    session.record.publish(has_run=True)
    node.pods.remove(POD)
    node.pods.put(pod_object())
    assert [launcher.status.has_run for launcher in registry.launchers_of(VMI_UID)] == [True]


class Reached(NodeClient):
    """A node on which every launcher has its socket."""

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        return LauncherSocket(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC))

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """Save nothing."""


@pytest.fixture
async def reached(node: Node) -> AsyncIterator[tuple[Registry, FakeLibvirtd]]:
    """Return a registry with one connected launcher."""
    libvirtd = FakeLibvirtd(VMI_UID)
    tools = Tools(Reached(node.virt_node.dial), FakeClock(), libvirtd.connect)
    registry = Registry(node.pods, tools, lambda _unused: None)
    task = asyncio.create_task(registry.run())
    await asyncio.sleep(0)
    node.pods.put(pod_object())
    session = registry.session(POD_UID)
    assert session is not None
    session.admit()
    await until(lambda: registry.connected == 1, "contact")
    yield registry, libvirtd
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_removed_pod_stays_connected_until_libvirtd_closes(
    node: Node, reached: tuple[Registry, FakeLibvirtd]
) -> None:
    """Its guest may still run, and only a connected launcher can be told to end it."""
    registry, libvirtd = reached
    node.pods.remove(POD)
    for _unused in range(5):
        await asyncio.sleep(0)
    assert registry.connected == 1
    libvirtd.hang_up()
    await until(lambda: len(registry) == 0, "its end")


async def test_a_pod_listed_at_the_end_of_its_connection_is_connected_again(
    node: Node, reached: tuple[Registry, FakeLibvirtd]
) -> None:
    """The end of a task is noticed a moment later. A Pod listed in between was never connected again."""
    registry, libvirtd = reached
    node.pods.remove(POD)
    contact = registry._tasks[POD_UID]
    libvirtd.hang_up()
    while not contact.done():  # noqa: ASYNC110 - an event would be set only after the end was noticed
        await asyncio.sleep(0)
    assert POD_UID in registry._tasks
    node.pods.put(pod_object())
    await until(lambda: registry.connected == 1, "contact")
    node.pods.remove(POD)
    libvirtd.hang_up()
    await until(lambda: len(registry) == 0, "its end")  # the first end must not be taken for the second one


async def test_all_vmis_are_enqueued_when_virt_node_connects_or_disconnects(node: Node, registry: Registry) -> None:
    """The status was up to 30 s late: no other event enqueues a VMI whose launcher is not up."""
    node.pods.put(pod_object())
    assert registry.node_trouble is None
    node.woken.clear()
    node.clock.seconds = 2000.0
    await node.virt_node.kill()
    await until(lambda: node.woken == [VMI], "the loss")
    assert registry.node_trouble == NodeTrouble("virt-node is not there", since=2000.0)
    node.clock.seconds += 5
    node.virt_node.is_up = True
    await until(lambda: node.woken == [VMI, VMI], "its return")
    assert registry.node_trouble is None
    node.clock.seconds += 5
    await node.virt_node.kill()
    await until(lambda: registry.node_trouble is not None, "the second loss")
    assert registry.node_trouble == NodeTrouble("virt-node is not there", since=2010.0)


async def test_a_node_without_traces_of_a_pod_reports_none(node: Node) -> None:
    assert await node.registry.find_traces(POD_UID) == Traces(has_directory=False, processes=0)


async def test_the_directory_and_processes_are_traces(node: Node) -> None:
    node.files.make_directory()
    node.proc.add(100, f"0::/kubepods/pod{POD_UID}/abc\n")
    node.proc.add(101, f"0::/kubepods/pod{POD_UID}/abc\n", comm="qemu-system-x86")
    assert await node.registry.find_traces(POD_UID) == Traces(has_directory=True, processes=2, emulators=1)


async def test_an_error_while_searching_does_not_count_as_no_traces(node: Node) -> None:
    node.files.run.parent.mkdir(parents=True)
    node.files.run.symlink_to("/nowhere")
    with pytest.raises(CannotLook, match="is a link"):
        await node.registry.find_traces(POD_UID)


async def test_a_node_with_hidden_processes_reports_an_error(node: Node) -> None:
    node.proc.see_mounts("1", "handler")
    with pytest.raises(CannotLook, match="hostPID"):
        await node.registry.find_traces(POD_UID)


async def test_a_node_without_virt_node_reports_an_error(node: Node) -> None:
    await node.virt_node.kill()
    await until(lambda: not node.client.is_connected, "the loss")
    with pytest.raises(CannotLook, match="virt-node is not there"):
        await node.registry.find_traces(POD_UID)


class Slow(NodeClient):
    """A node that takes time to end a cancelled wait for a socket."""

    entered, inside, most = 0, 0, 0

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        self.entered += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            return await super().open_socket(pod_uid)
        finally:
            await asyncio.sleep(0.02)
            self.inside -= 1


async def test_a_pod_listed_again_is_awaited_after_the_first_wait_has_ended(node: Node) -> None:
    slow = Slow(node.virt_node.dial)
    registry = Registry(node.pods, Tools(slow, FakeClock(), FakeLibvirtd(VMI_UID).connect), lambda _unused: None)
    task = asyncio.create_task(registry.run())
    await asyncio.sleep(0)
    node.pods.put(pod_object())
    await until(lambda: slow.inside == 1, "somebody who waits")
    node.pods.remove(POD)
    node.pods.put(pod_object())
    await until(lambda: slow.entered == 2, "the next one")
    assert slow.most == 1
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
