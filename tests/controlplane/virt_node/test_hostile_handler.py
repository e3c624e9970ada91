# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile virt-handler: virt-node still answers others, keeps no resource and changes nothing for it.

The node has one launcher with a report, and files that virt-node must never open or change.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane.links.node.messages import (
    PROTOCOL,
    Cancel,
    Failed,
    FindTraces,
    FromHandler,
    GiveCapabilities,
    Hello,
    Masquerade,
    NodeState,
    Opened,
    OpenReport,
    OpenSocket,
    Port,
    SetUpNetwork,
    TracesFound,
    encode,
    read_from_node,
)
from controlplane.virt_node.launcher_dir import PodsDirectory
from tests.controlplane.links.node.lingering import old_kernel, others_closed
from tests.controlplane.links.node.packets import DESCRIPTORS, NONSENSE, held_open, opened, send, variants
from tests.controlplane.virt_handler.builders import POD_UID
from tests.controlplane.virt_handler.fakes import FakeNetwork, FakeProc, LauncherFiles, until
from tests.controlplane.virt_handler.node.virt_node import VirtNode

__all__ = ["old_kernel", "others_closed"]
PLAIN = Masquerade("10.0.2.0/24", (Port("tcp", 80),))
MESSAGES: tuple[FromHandler, ...] = (
    Hello(PROTOCOL),
    OpenSocket(1, POD_UID),
    OpenReport(1, POD_UID),
    GiveCapabilities(1, POD_UID, with_kvm=False),
    SetUpNetwork(1, POD_UID, PLAIN),
    FindTraces(1, POD_UID),
    Cancel(1),
)
ELSEWHERE = "cccc0000-1111-2222-3333-444444444444"


@dataclass
class Node:
    root: Path
    network: FakeNetwork
    virt_node: VirtNode

    def census(self) -> dict[str, tuple[int, int, int]]:
        """Return mode, owner and size of everything below the node's directory that is not the launcher's."""
        return {
            str(path): (status.st_mode, status.st_uid, status.st_size)
            for path in sorted(self.root.rglob("*"))
            if POD_UID not in str(path) and (status := path.lstat())
        }

    async def dial(self) -> socket.socket:
        connection = await self.virt_node.dial()
        connection.setblocking(False)
        return connection

    async def answers(self) -> bool:
        """Send a request like a regular virt-handler and return whether virt-node answers."""
        with await self.dial() as connection:
            send(connection, encode(Hello(PROTOCOL)), [])
            send(connection, encode(FindTraces(7, POD_UID)), [])
            return TracesFound(7, has_directory=True, processes=0, emulators=0) in [
                await hear(connection) for _unused in range(3)
            ]


async def hear(connection: socket.socket) -> object:
    async with asyncio.timeout(5):
        return read_from_node(await asyncio.get_running_loop().sock_recv(connection, 65536))


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    monkeypatch.chdir(tmp_path)
    pods = tmp_path / "pods"
    pods.mkdir()
    (tmp_path / "secret").write_text("of the node")
    (pods / ELSEWHERE / "volumes" / "kubernetes.io~secret").mkdir(parents=True)
    directory, network = PodsDirectory(str(pods)), FakeNetwork()
    new = Node(tmp_path, network, VirtNode(directory, network, FakeProc(tmp_path / "proc")))
    files = LauncherFiles(pods)
    files.make_directory()
    files.report()
    assert await new.answers()
    yield new
    await new.virt_node.close()
    files.close()
    directory.close()


@pytest.fixture
async def nothing_is_left(others_closed: None, node: Node) -> AsyncIterator[None]:
    """After the test no descriptor, thread, file or change remains, and virt-node answers the next request."""

    def is_calm() -> bool:
        working = any(thread.name.startswith("launcher ") for thread in threading.enumerate())
        return not working and not node.virt_node.open

    await until(is_calm, "an end of what came before")
    before, files = held_open(), node.census()
    yield
    await until(lambda: is_calm() and held_open() == before, "nothing held")
    assert node.census() == files
    assert {*node.network.wanted} <= {PLAIN}
    assert await node.answers()


async def say(node: Node, packets: list[bytes], descriptors: list[int], *, greets: bool = True) -> None:
    """Send packets on a new connection, wait until virt-node closes it, and close it."""
    connection = await node.dial()
    if greets:
        send(connection, encode(Hello(PROTOCOL)), [])
    for packet in packets:
        send(connection, packet, descriptors)
    connection.shutdown(socket.SHUT_WR)
    with suppress(OSError, TimeoutError):  # until virt-node closes the connection
        async with asyncio.timeout(5):
            while (await asyncio.get_running_loop().sock_recv(connection, 65536)) != b"":
                pass
    connection.close()


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("message", MESSAGES, ids=lambda value: type(value).__name__)
async def test_no_request_does_harm(node: Node, message: FromHandler) -> None:
    """Fields missing or of every wrong type and size; half a message, one and a half, two. Each ends the connection."""
    for packet in variants(message):
        await say(node, [packet], [])


@pytest.mark.usefixtures("old_kernel", "nothing_is_left")
@pytest.mark.parametrize("kind", DESCRIPTORS)
async def test_no_descriptor_does_harm(node: Node, kind: str) -> None:
    """With every message, valid or not. No message of virt-handler has a descriptor."""
    with opened(kind) as descriptors:
        for packet in [*map(encode, MESSAGES), *NONSENSE]:
            await say(node, [packet, packet], descriptors)
            await say(node, [packet], descriptors, greets=False)


PATHS = ("..", ".", "../pods", f"{POD_UID}/..", ELSEWHERE, ELSEWHERE.upper(), "a" * 64, "0", "-", "%2e%2e")


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("uid", PATHS)
async def test_only_a_launchers_directory_is_entered(node: Node, uid: str) -> None:
    """For any other Pod UID nothing is opened, made or set up."""
    for template in MESSAGES[1:6]:
        await say(node, [encode(template).replace(POD_UID.encode(), uid.encode())], [])


def requests(count: int) -> Iterator[bytes]:
    for number in range(1, count + 1):
        yield encode(OpenReport(number, POD_UID))


@pytest.mark.usefixtures("nothing_is_left")
async def test_a_handler_that_reads_no_answers_blocks_no_other(node: Node) -> None:
    """There are hundreds of unread answers with a descriptor each."""
    connection = await node.dial()
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, encode(Hello(PROTOCOL)))
    for packet in requests(600):
        async with asyncio.timeout(5):
            await loop.sock_sendall(connection, packet)
    assert await node.answers()
    connection.close()


@pytest.mark.usefixtures("nothing_is_left")
async def test_cancelled_requests_leave_nothing_behind(node: Node) -> None:
    connection = await node.dial()
    loop = asyncio.get_running_loop()
    for packet in [encode(Hello(PROTOCOL)), *requests(200)]:
        await loop.sock_sendall(connection, packet)
        if packet.startswith(b'{"type":"OpenReport"'):
            number = packet.split(b'"id":')[1].split(b",")[0]
            await loop.sock_sendall(connection, b'{"type":"Cancel","id":%s}' % number)
    assert await node.answers()
    connection.close()


@pytest.mark.usefixtures("nothing_is_left")
async def test_silent_connections_block_no_other(node: Node) -> None:
    silent = [await node.dial() for _unused in range(4)]
    for connection in silent[:2]:
        send(connection, encode(Hello(PROTOCOL)), [])
    assert await node.answers()
    for silent_connection in silent:
        silent_connection.close()


async def test_valid_requests_are_answered(node: Node) -> None:
    """Shows that the other connections end because of their malformed packets."""
    with await node.dial() as connection:
        for message in (Hello(PROTOCOL), OpenReport(1, POD_UID), OpenReport(2, ELSEWHERE)):
            send(connection, encode(message), [])
        replies = [await hear(connection) for _unused in range(4)]
    assert replies[:2] == [Hello(PROTOCOL), NodeState()]
    assert Opened(1) in replies
    assert Failed(2, "missing", "it does not exist (yet)") in replies
