# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler gone wrong: whatever it says, virt-node answers others, holds nothing of it and touches nothing for it.

The node has one launcher with a report, and beside it what must never be opened or changed.
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
        """Everything below the node's directory that is not the launcher's own: mode, owner and size."""
        return {
            str(path): (found.st_mode, found.st_uid, found.st_size)
            for path in sorted(self.root.rglob("*"))
            if POD_UID not in str(path) and (found := path.lstat())
        }

    async def dial(self) -> socket.socket:
        connection = await self.virt_node.dial()
        connection.setblocking(False)
        return connection

    async def answers(self) -> bool:
        """Ask as a virt-handler does that means no harm."""
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
    made = Node(tmp_path, network, VirtNode(directory, network, FakeProc(tmp_path / "proc")))
    files = LauncherFiles(pods)
    files.make_directory()
    files.report()
    assert await made.answers()
    yield made
    await made.virt_node.close()
    files.close()
    directory.close()


@pytest.fixture
async def nothing_is_left(others_closed: None, node: Node) -> AsyncIterator[None]:
    """No descriptor, no thread, no file, no change; and the next one is answered."""

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
    """Send packets on a connection of their own, let them be heard, and go."""
    connection = await node.dial()
    if greets:
        send(connection, encode(Hello(PROTOCOL)), [])
    for packet in packets:
        send(connection, packet, descriptors)
    connection.shutdown(socket.SHUT_WR)
    with suppress(OSError, TimeoutError):  # until it is left
        async with asyncio.timeout(5):
            while (await asyncio.get_running_loop().sock_recv(connection, 65536)) != b"":
                pass
    connection.close()


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: type(one).__name__)
async def test_no_request_does_harm(node: Node, message: FromHandler) -> None:
    """Fields of every wrong type and size, and none; half a message, one and a half, and two. Each ends it at once."""
    for packet in variants(message):
        await say(node, [packet], [])


@pytest.mark.usefixtures("old_kernel", "nothing_is_left")
@pytest.mark.parametrize("kind", DESCRIPTORS)
async def test_no_descriptor_does_harm(node: Node, kind: str) -> None:
    """With every message, right or none. Nothing that virt-handler sends comes with one."""
    with opened(kind) as found:
        for packet in [*map(encode, MESSAGES), *NONSENSE]:
            await say(node, [packet, packet], found)
            await say(node, [packet], found, greets=False)


PATHS = ("..", ".", "../pods", f"{POD_UID}/..", ELSEWHERE, ELSEWHERE.upper(), "a" * 64, "0", "-", "%2e%2e")


@pytest.mark.usefixtures("nothing_is_left")
@pytest.mark.parametrize("uid", PATHS)
async def test_nothing_but_a_launchers_directory_is_entered(node: Node, uid: str) -> None:
    """Whatever it calls a Pod: nothing is opened, nothing made, nothing set up."""
    for template in MESSAGES[1:6]:
        await say(node, [encode(template).replace(POD_UID.encode(), uid.encode())], [])


def requests(count: int) -> Iterator[bytes]:
    for number in range(1, count + 1):
        yield encode(OpenReport(number, POD_UID))


@pytest.mark.usefixtures("nothing_is_left")
async def test_whoever_asks_and_does_not_listen_holds_up_nobody_and_leaves_nothing(node: Node) -> None:
    """Hundreds of answers with a descriptor each, of which none is taken."""
    connection = await node.dial()
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, encode(Hello(PROTOCOL)))
    for packet in requests(600):
        async with asyncio.timeout(5):
            await loop.sock_sendall(connection, packet)
    assert await node.answers()
    connection.close()


@pytest.mark.usefixtures("nothing_is_left")
async def test_whoever_takes_back_what_it_asks_leaves_nothing(node: Node) -> None:
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
async def test_who_says_nothing_holds_up_nobody(node: Node) -> None:
    silent = [await node.dial() for _unused in range(4)]
    for item in silent[:2]:
        send(item, encode(Hello(PROTOCOL)), [])
    assert await node.answers()
    for entry in silent:
        entry.close()


async def test_what_is_asked_rightly_is_answered(node: Node) -> None:
    """So what ends the others is what is wrong with them."""
    with await node.dial() as connection:
        for message in (Hello(PROTOCOL), OpenReport(1, POD_UID), OpenReport(2, ELSEWHERE)):
            send(connection, encode(message), [])
        heard = [await hear(connection) for _unused in range(4)]
    assert heard[:2] == [Hello(PROTOCOL), NodeState()]
    assert Opened(1) in heard
    assert Failed(2, "missing", "it does not exist (yet)") in heard
