# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile virt-node: whatever it sends, virt-handler keeps its event loop, its descriptors and its other work."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from controlplane.links.node.messages import (
    PROTOCOL,
    Done,
    Failed,
    FromNode,
    Hello,
    KvmFinding,
    Masquerade,
    NetworkReady,
    NodeState,
    Opened,
    PodInterface,
    ProtocolError,
    TracesFound,
    encode,
    read_from_handler,
)
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeError
from controlplane.virt_handler.node.virt_node_client import NodeClient
from tests.controlplane.links.node.lingering import others_closed
from tests.controlplane.links.node.packets import DESCRIPTORS, NONSENSE, held_open, opened, send
from tests.controlplane.virt_handler.builders import POD_UID
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.node.virt_node import linked

__all__ = ["others_closed"]

pytestmark = pytest.mark.usefixtures("others_closed")
MESSAGES: tuple[FromNode, ...] = (
    Hello(PROTOCOL),
    NodeState(KvmFinding(is_usable=True, reason="x"), ("kvm",), ("kvm",), ("kvm",)),
    Opened(1),
    Done(1),
    NetworkReady(1, PodInterface(("10.244.0.7",), 1450)),
    TracesFound(1, has_directory=True, processes=1, emulators=1),
    Failed(1, "refused", "x"),
)
Ask = Callable[[NodeClient], Awaitable[object]]
ASKS: tuple[Ask, ...] = (
    lambda one: one.open_socket(POD_UID),
    lambda one: one.read_report(POD_UID),
    lambda one: one.give_capabilities(POD_UID, with_kvm=True),
    lambda one: one.set_up_network(POD_UID, Masquerade("10.0.2.0/24")),
    lambda one: one.find_traces(POD_UID),
)


@dataclass
class Hostile:
    """virt-node's end of every connection. It says hello, or not, and answers with these packets."""

    greets: bool = True
    packets: Sequence[bytes] = ()
    descriptors: list[int] = field(default_factory=list)
    ends: list[socket.socket] = field(default_factory=list)

    async def dial(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.setblocking(False)
        self.ends.append(theirs)
        if self.greets:
            theirs.send(encode(Hello(PROTOCOL)))
        return ours

    def answer(self, numbers: Iterable[int]) -> None:
        """Send each packet once per request number, and close."""
        for packet, number in itertools.product(self.packets, numbers):
            send(self.ends[-1], packet.replace(b'"id":1', b'"id":%d' % number), self.descriptors)
        self.close()

    def asked(self) -> list[int]:
        """Return the numbers of the requests on the newest connection."""
        numbers = []
        with suppress(OSError, ProtocolError):
            while data := self.ends[-1].recv(65536):
                numbers.append(getattr(read_from_handler(data), "id", 0))
        return [number for number in numbers if number]

    def close(self) -> None:
        for end in self.ends:
            end.close()


async def no_pause(_seconds: float) -> None:
    await asyncio.sleep(0)


@pytest.fixture
async def descriptors_before(others_closed: None) -> AsyncIterator[None]:
    """Check that the test leaves no descriptor open."""
    await asyncio.to_thread(int)  # the loop's worker threads stay, with their descriptors
    before = held_open()
    yield
    await until(lambda: held_open() == before, "everything closed")


async def survive(hostile: Hostile) -> None:
    """Send every request, let it be answered like this, and expect another connection attempt."""
    client = NodeClient(hostile.dial, no_pause)
    async with linked(client):
        await until(lambda: client.is_connected, "contact")
        asking = [asyncio.create_task(ask(client)) for ask in ASKS]  # type: ignore[arg-type]
        for _unused in range(3):
            await asyncio.sleep(0)
        hostile.answer(hostile.asked())
        connections = len(hostile.ends)
        await until(lambda: len(hostile.ends) > connections, "another connection")
        for request in asking:
            request.cancel()
        for result in await asyncio.gather(*asking, return_exceptions=True):
            if isinstance(result, LauncherSocket):
                result.close()
            elif isinstance(result, BaseException):
                assert isinstance(result, NodeError | asyncio.CancelledError), repr(result)
    hostile.close()


@pytest.mark.usefixtures("descriptors_before")
@pytest.mark.parametrize("kind", DESCRIPTORS)
async def test_no_descriptor_does_harm(kind: str) -> None:
    """With every message, valid or not, requested or not."""
    with opened(kind) as numbers:
        for packet in [*map(encode, MESSAGES), *NONSENSE]:
            await survive(Hostile(packets=[packet, packet], descriptors=numbers))


@pytest.mark.usefixtures("descriptors_before")
@pytest.mark.parametrize("message", [NodeState(), Done(99)], ids=lambda case: type(case).__name__)
async def test_a_flood_does_not_block_the_event_loop(message: FromNode) -> None:
    """Other tasks run between two packets, however many packets wait."""
    hostile, turns = Hostile(packets=[encode(message)]), 0
    client = NodeClient(hostile.dial, no_pause)
    async with linked(client):
        await until(lambda: client.is_connected, "contact")
        await until(lambda: hostile.asked() == [], "its greeting")  # closing with unread data would drop the packets
        hostile.answer(range(100))
        while client.is_connected:
            turns += 1
            await asyncio.sleep(0)
    hostile.close()
    assert turns >= 50


@pytest.mark.usefixtures("descriptors_before")
@pytest.mark.parametrize("message", [Hello(PROTOCOL), NodeState(), Done(1)], ids=lambda case: type(case).__name__)
async def test_a_connection_without_exactly_one_hello_is_closed(message: FromNode) -> None:
    """Each hello wakes up all waiters. A virt-node without a hello may have another version."""
    is_first = not isinstance(message, Hello)
    hostile = Hostile(greets=not is_first)
    changes: list[bool] = []
    client = NodeClient(hostile.dial, no_pause)
    client.subscribe(lambda: changes.append(client.is_connected))
    async with linked(client):
        await until(lambda: bool(hostile.ends) and (is_first or client.is_connected), "a connection")
        first = hostile.ends[0]
        for _unused in range(3):
            send(first, encode(message), [])
        await until(lambda: len(hostile.ends) > 1, "another connection")
        assert changes[:2] == ([] if is_first else [True, False])
    hostile.close()
