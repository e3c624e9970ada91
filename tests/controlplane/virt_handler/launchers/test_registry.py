# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node says of a Pod that nobody lists, and when it knows its Pods at all. Sessions: test_story."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.session import Tools
from controlplane.virt_handler.node_client import NodeClient
from controlplane.virt_handler.vmi.ports import CannotLook
from controlplane.virt_handler.vmi.world import Traces
from controlplane.virt_node.launcher_dir import PodsDirectory
from tests.controlplane.virt_handler.builders import POD_UID, VMI_UID, pod_object
from tests.controlplane.virt_handler.fakes import (
    FakeCache,
    FakeClock,
    FakeLibvirtd,
    FakeNetwork,
    FakeProc,
    LauncherFiles,
    until,
)
from tests.controlplane.virt_handler.virt_node import VirtNode


class Node:
    def __init__(self, root: Path) -> None:
        (root / "pods").mkdir()
        self.pods = FakeCache()
        self.proc = FakeProc(root / "proc")
        self.files = LauncherFiles(root / "pods")
        self.directory = PodsDirectory(str(root / "pods"))
        self.virt_node = VirtNode(self.directory, FakeNetwork(), self.proc)
        self.client = NodeClient(self.virt_node.dial)
        tools = Tools(self.client, FakeClock(), FakeLibvirtd(VMI_UID).connect)
        self.registry = Registry(self.pods, tools, lambda _unused: None)


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    made = Node(tmp_path)
    link = asyncio.create_task(made.client.run())
    await until(lambda: made.client.is_connected, "contact with virt-node")
    yield made
    link.cancel()
    with suppress(asyncio.CancelledError):
        await link
    await made.virt_node.close()
    made.directory.close()


async def test_pods_are_known_when_they_were_listed_and_taken_in(node: Node) -> None:
    assert not node.registry.synced
    task = asyncio.create_task(node.registry.run())
    await asyncio.sleep(0)
    assert node.registry.synced
    node.pods.synced = False
    assert not node.registry.synced
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_pod_that_another_replaced_under_its_name_is_gone(node: Node) -> None:
    """A watch that lost the deletion shows the new Pod in the old one's place."""
    task = asyncio.create_task(node.registry.run())
    await asyncio.sleep(0)
    old, new = pod_object(), pod_object("another")
    new["metadata"]["name"] = old["metadata"]["name"]
    node.pods.put(old)
    node.pods.put(new)
    known = {one.pod.uid: one.is_gone for one in node.registry.launchers_of(VMI_UID)}
    assert known == {POD_UID: True, "another": False}
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_node_without_a_trace_of_a_pod_says_so(node: Node) -> None:
    assert await node.registry.find_traces(POD_UID) == Traces(has_directory=False, processes=0)


async def test_directory_and_processes_are_traces(node: Node) -> None:
    node.files.make_directory()
    node.proc.add(100, f"0::/kubepods/pod{POD_UID}/abc\n")
    assert await node.registry.find_traces(POD_UID) == Traces(has_directory=True, processes=1)


async def test_what_is_in_the_way_of_a_look_is_no_absence(node: Node) -> None:
    node.files.run.parent.mkdir(parents=True)
    node.files.run.symlink_to("/nowhere")
    with pytest.raises(CannotLook, match="is a link"):
        await node.registry.find_traces(POD_UID)


async def test_a_node_whose_processes_are_hidden_says_nothing(node: Node) -> None:
    node.proc.see_mounts("1", "handler")
    with pytest.raises(CannotLook, match="hostPID"):
        await node.registry.find_traces(POD_UID)


async def test_a_node_that_cannot_be_asked_says_nothing(node: Node) -> None:
    await node.virt_node.kill()
    await until(lambda: not node.client.is_connected, "the loss")
    with pytest.raises(CannotLook, match="virt-node is not there"):
        await node.registry.find_traces(POD_UID)
