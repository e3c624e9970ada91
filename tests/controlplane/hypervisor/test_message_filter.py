# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which messages reach libvirt before and after a connection is open, and the reaction to all others.

An event that comes too early crashes the process of libvirt's client. Therefore those tests run in a separate process.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from controlplane.hypervisor import transport
from controlplane.hypervisor.message_filter import MessageFilter
from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import (
    EVENT,
    EVENT_OF_START,
    KEEPALIVE,
    REPLY,
    Caller,
    Spawn,
    message,
)
from tests.controlplane.virt_handler.fakes import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWER = message(hostile.OPEN, REPLY, 1, b"")
PING = message(1, EVENT, 0, b"", KEEPALIVE)
LONG = message(hostile.XML, REPLY, 1, bytes(1 << 20))

OPEN_ONE = """
import asyncio, sys
from controlplane.hypervisor.connection import open_connection, register_event_loop
from controlplane.hypervisor.errors import HypervisorError

async def main():
    register_event_loop()
    try:
        made = await open_connection(sys.argv[1])
    except HypervisorError:
        print("refused")
    else:
        await made.close()
        print("open")

asyncio.run(main())
"""


def early(procedure: int, data: bytes) -> hostile.Behaviour:
    """Send this data before the answer to a call, then the answer."""

    def behave(caller: Caller, _program: int, called: int, _serial: int) -> bool:
        if called == procedure:
            caller.transport.sendall(data)
        return False

    return behave


@pytest.mark.parametrize("procedure", [hostile.AUTHENTICATE, hostile.FEATURE, hostile.OPEN])
async def test_an_event_before_the_connection_is_open_closes_the_connection(spawn: Spawn, procedure: int) -> None:
    server = spawn(early(procedure, EVENT_OF_START))
    done = await asyncio.to_thread(hostile.in_own_process, OPEN_ONE, server.uri)
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


async def test_a_keepalive_while_the_connection_opens_is_answered(spawn: Spawn) -> None:
    server = spawn(early(hostile.OPEN, PING))
    done = await asyncio.to_thread(hostile.in_own_process, OPEN_ONE, server.uri)
    assert (done.returncode, done.stdout) == (0, "open\n"), done.stderr


@dataclass
class Between:
    """A message filter with the sockets at both of its ends."""

    message_filter: MessageFilter
    libvirt: socket.socket
    other: socket.socket
    refused: list[bool] = field(default_factory=list)

    async def read(self, count: int) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.libvirt, count)

    async def read_all(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += await self.read(count - len(data))
        return data


@pytest_asyncio.fixture(loop_scope="session")
async def between() -> AsyncIterator[Between]:
    libvirt, peer = socket.socketpair()
    libvirt.setblocking(False)
    refused: list[bool] = []

    def run(callback: Callable[[], None]) -> None:
        callback()

    loop = asyncio.get_running_loop()
    message_filter = MessageFilter(loop, libvirt.fileno(), run=run, refuse=lambda: refused.append(True))
    with libvirt, peer:
        yield Between(message_filter, libvirt, peer, refused)
        message_filter.end()


async def test_answers_pass_when_they_are_complete(between: Between) -> None:
    between.other.sendall(ANSWER + PING + ANSWER[:10])
    assert await between.read(1000) == ANSWER + PING
    between.other.sendall(ANSWER[10:])
    assert await between.read(1000) == ANSWER


async def test_data_from_libvirt_passes(between: Between) -> None:
    between.libvirt.send(b"anything")
    between.other.setblocking(False)
    assert await asyncio.get_running_loop().sock_recv(between.other, 100) == b"anything"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(EVENT_OF_START, id="an event"),
        pytest.param(ANSWER + EVENT_OF_START[:28], id="the head of one behind an answer"),
        pytest.param(message(hostile.OPEN, 0, 1, b""), id="a call"),
        pytest.param(message(hostile.OPEN, 3, 1, b""), id="a part of a stream"),
        pytest.param(message(hostile.OPEN, 5, 1, b""), id="an answer with descriptors"),
        pytest.param(message(hostile.OPEN, REPLY, 1, b"", 0x1234), id="of another program"),
        pytest.param(message(hostile.OPEN, REPLY, 1, bytes(64 << 10)), id="a long answer"),
        pytest.param(bytes(4) + ANSWER[4:], id="an answer of no length"),
    ],
)
async def test_an_unexpected_message_closes_an_unopened_connection(between: Between, data: bytes) -> None:
    between.other.sendall(data)
    assert await between.read(1000) == b""


async def test_many_small_writes_close_an_unopened_connection(between: Between) -> None:
    with suppress(BrokenPipeError):
        for byte in ANSWER * 20:
            between.other.send(bytes([byte]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    received = 0
    while part := await between.read(1000):
        received += len(part)
        assert received <= 256


async def test_events_and_partial_messages_pass_after_the_connection_is_open(between: Between) -> None:
    between.other.sendall(ANSWER[:10])
    between.message_filter.open()
    between.other.sendall(ANSWER[10:] + EVENT_OF_START + LONG[:1000])
    expected = ANSWER + EVENT_OF_START + LONG[:1000]
    assert await between.read_all(len(expected)) == expected
    rest = LONG[1000:] + PING
    sending = asyncio.create_task(asyncio.to_thread(between.other.sendall, rest))
    assert await between.read_all(len(rest)) == rest
    await sending
    assert not between.refused


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(message(hostile.STATE, 5, 1, bytes(4)), id="an answer with descriptors"),
        pytest.param(message(hostile.STATE, 5, 1, bytes(4), KEEPALIVE), id="a keepalive with descriptors"),
        pytest.param(message(1, REPLY, 0, b"", KEEPALIVE), id="an answer to a keepalive"),
        pytest.param(message(1, EVENT, 0, bytes(4), KEEPALIVE), id="a keepalive with a payload"),
        pytest.param(message(hostile.STATE, 3, 1, b""), id="a part of a stream"),
        pytest.param(message(hostile.STATE, 0, 1, b""), id="a call"),
        pytest.param(message(6, EVENT, 0, b"", hostile.QEMU), id="an event of QEMU's"),
        pytest.param(message(hostile.STATE, REPLY, 1, b"", 0x1234), id="of another program"),
        pytest.param(bytes(4) + ANSWER[4:], id="an answer of no length"),
    ],
)
async def test_other_messages_than_answers_and_events_close_an_open_connection(between: Between, data: bytes) -> None:
    between.message_filter.open()
    between.other.sendall(EVENT_OF_START + data)
    while await between.read(1000):
        pass
    assert between.refused


PART = hostile.part(1, bytes(262_120))


async def test_a_part_of_a_screenshot_passes_while_one_is_taken(between: Between) -> None:
    between.message_filter.open()
    with between.message_filter.stream_allowed():
        sending = asyncio.create_task(asyncio.to_thread(between.other.sendall, PART + PING))
        assert await between.read_all(len(PART + PING)) == PART + PING
        await sending
    assert not between.refused
    between.other.sendall(PART[:1000])
    assert await between.read(1000) == b""
    assert between.refused


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(hostile.part(1, bytes((256 << 10) + 1)), id="longer than libvirtd sends"),
        pytest.param(message(hostile.STATE, hostile.STREAM, 1, b""), id="of another call"),
        pytest.param(message(hostile.SCREENSHOT, hostile.STREAM, 1, b"", hostile.QEMU), id="of another program"),
        pytest.param(message(hostile.SCREENSHOT, 6, 1, b""), id="a hole"),
    ],
)
async def test_other_parts_of_streams_close_the_connection_meanwhile(between: Between, data: bytes) -> None:
    between.message_filter.open()
    with between.message_filter.stream_allowed():
        between.other.sendall(data[:4096])
        assert await between.read(1000) == b""
    assert between.refused


async def test_the_filter_does_not_read_for_a_peer_that_does_not_read(between: Between) -> None:
    between.message_filter.open()
    between.other.setblocking(False)
    sends = 0
    while await sent(between.libvirt, b"x" * 65536) or sends == 0:
        sends += 1
    received = 0
    with suppress(BlockingIOError):
        while received < sends:
            received += len(between.other.recv(1 << 20))
            await asyncio.sleep(0)
    assert received, "kept data is sent as soon as there is room"


async def sent(end: socket.socket, data: bytes) -> bool:
    """Send if there is room within a few turns of the loop. Return whether it was sent."""
    for _unused in range(20):
        with suppress(BlockingIOError):
            end.send(data)
            return True
        await asyncio.sleep(0)
    return False


async def test_a_shutdown_by_libvirt_reaches_the_peer(between: Between) -> None:
    between.libvirt.shutdown(socket.SHUT_RDWR)
    between.other.setblocking(False)
    assert await asyncio.get_running_loop().sock_recv(between.other, 100) == b""


async def test_a_cut_with_unread_data_ends_the_filter(between: Between) -> None:
    while await sent(between.libvirt, b"x" * 65536):
        pass
    between.message_filter.cut()
    between.other.setblocking(False)
    loop = asyncio.get_running_loop()
    while await loop.sock_recv(between.other, 1 << 20):
        pass
    await until(lambda: between.message_filter.is_over)


async def test_the_end_of_a_filter_is_charged_and_may_cut_again() -> None:
    libvirt, other = socket.socketpair()
    libvirt.setblocking(False)
    charged: list[Callable[[], None]] = []

    def run(callback: Callable[[], None]) -> None:
        callback()
        charged.append(callback)
        message_filter.cut()

    message_filter = MessageFilter(asyncio.get_running_loop(), libvirt.fileno(), run=run, refuse=lambda: None)
    with libvirt, other:
        message_filter.cut()
        await until(lambda: message_filter.is_over)
        for _unused in range(20):
            await asyncio.sleep(0)
    assert 1 <= len(charged) <= 3, "each end may report the shutdown"


async def test_a_transport_without_a_filter_is_cut_at_once() -> None:
    libvirt, other = socket.socketpair()
    with libvirt, other:
        unfiltered = transport.Transport()
        unfiltered.attach(libvirt.fileno())

        def make() -> MessageFilter:
            raise OSError(errno.EMFILE, "Too many open files")

        unfiltered.install_filter(make)
        assert "Too many open files" in unfiltered.because
        assert other.recv(1) == b""
