# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import suppress
from typing import Any

import pytest

from controlplane.virt_handler.migration import byte_copy as pump_module
from controlplane.virt_handler.migration.byte_copy import TunnelSocket, copy_both_ways, secure
from controlplane.virt_handler.migration.peer import certificate_host, client_tls_context, server_tls_context
from tests.controlplane.virt_handler.migration.ends import SECONDS, SOURCE, TARGET, open_things, pair_of

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Path:
    """left - pump - TLS - pump - right: both ends as others have them."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> tuple[Streams, Streams]:
        mine, near = socket.socketpair()
        far, theirs = socket.socketpair()
        caller, called = tcp_pair()
        one = secure(
            caller, client_tls_context(pair_of(SOURCE), pair_of(TARGET).der), server_name=certificate_host(TARGET)
        )
        other = secure(called, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der))
        await asyncio.gather(one.prove(), other.prove())
        self.tasks = [
            asyncio.create_task(copy_both_ways(TunnelSocket(near), one)),
            asyncio.create_task(copy_both_ways(other, TunnelSocket(far))),
        ]
        return await asyncio.open_connection(sock=mine), await asyncio.open_connection(sock=theirs)

    async def ended(self) -> None:
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*self.tasks)


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        caller = socket.create_connection(server.getsockname())
        called, _unused = server.accept()
    return caller, called


async def test_every_byte_gets_there_in_its_order_both_ways_at_once() -> None:
    path = Path()
    left, right = await path.open()
    there, back = os.urandom(3 << 20), os.urandom(2 << 20)

    async def say(streams: Streams, data: bytes) -> None:
        streams[1].write(data)
        await streams[1].drain()
        streams[1].write_eof()

    async with asyncio.timeout(SECONDS):
        heard = await asyncio.gather(right[0].read(-1), left[0].read(-1), say(left, there), say(right, back))
    assert heard[0] == there
    assert heard[1] == back
    await path.ended()
    left[1].close()
    right[1].close()


async def test_who_has_said_all_still_hears_the_answer() -> None:
    path = Path()
    left, right = await path.open()
    left[1].write(b"a question")
    left[1].write_eof()
    async with asyncio.timeout(SECONDS):
        assert await right[0].read(-1) == b"a question"
        right[1].write(b"an answer")
        right[1].write_eof()
        assert await left[0].read(-1) == b"an answer"
    await path.ended()
    left[1].close()
    right[1].close()


async def test_who_takes_nothing_gets_no_more_than_fits() -> None:
    path = Path()
    left, right = await path.open()
    right[1].transport.pause_reading()  # type: ignore[attr-defined]
    sent = 0
    with suppress(TimeoutError):
        while sent < 256 << 20:
            left[1].write(bytes(1 << 16))
            async with asyncio.timeout(0.3):
                await left[1].drain()
            sent += 1 << 16
    assert sent < 64 << 20
    left[1].transport.abort()
    right[1].transport.abort()
    await path.ended()


@pytest.mark.parametrize("which", ["left", "right"])
async def test_an_end_that_breaks_breaks_the_other_and_leaves_nothing(which: str) -> None:
    before = open_things()
    path = Path()
    left, right = await path.open()
    breaks, stays = (left, right) if which == "left" else (right, left)
    breaks[1].transport.abort()
    stays[1].write(bytes(8 << 20))
    await path.ended()
    async with asyncio.timeout(SECONDS):
        with suppress(OSError):  # it was about to say more
            assert await stays[0].read(-1) == b""
    stays[1].transport.abort()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert open_things() == before


async def test_one_that_is_given_up_leaves_nothing() -> None:
    before = open_things()
    path = Path()
    left, right = await path.open()
    for task in path.tasks:
        task.cancel()
    await asyncio.gather(*path.tasks, return_exceptions=True)
    async with asyncio.timeout(SECONDS):
        assert await left[0].read(-1) == await right[0].read(-1) == b""
    left[1].close()
    right[1].close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert open_things() == before


async def test_what_is_read_at_a_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pump_module, "BUFFER_BYTES", 1000)
    path = Path()
    left, right = await path.open()
    left[1].write(bytes(100_000))
    left[1].write_eof()
    async with asyncio.timeout(SECONDS):
        assert len(await right[0].read(-1)) == 100_000
        right[1].write_eof()
        await left[0].read(-1)
    await path.ended()
    left[1].close()
    right[1].close()


async def test_a_fast_connection_leaves_others_their_turn() -> None:
    """A source that always has bytes for a target that always takes them never waits for its sockets."""
    turns = 0

    class Fast:
        def __init__(self) -> None:
            self.left = 100

        async def receive(self, _unused: memoryview) -> int:
            self.left -= 1
            return 1 if self.left >= 0 else 0

        async def send(self, data: memoryview) -> None: ...
        def finish(self) -> None: ...
        def close(self) -> None: ...

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    made: Any = Fast(), Fast()
    await copy_both_ways(*made)
    task.cancel()
    assert turns > 50


async def test_a_line_is_read_and_nothing_after_it() -> None:
    here, there = socket.socketpair()
    end = TunnelSocket(here)
    there.sendall(b"one\ntwo")
    assert await end.read_line(10) == b"one\n"
    into = memoryview(bytearray(10))
    assert await end.receive(into) == 3
    end.close()
    there.close()


@pytest.mark.parametrize(("said", "ends"), [(b"x" * 20, False), (b"short", True)])
async def test_a_line_that_is_too_long_or_does_not_end_is_none(said: bytes, ends: bool) -> None:
    here, there = socket.socketpair()
    end = TunnelSocket(here)
    there.sendall(said)
    if ends:
        there.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(SECONDS):
        with pytest.raises(ValueError, match="does not begin with a line"):
            await end.read_line(10)
    end.close()
    there.close()


async def test_a_connection_that_cannot_be_wrapped_is_closed() -> None:
    caller, called = tcp_pair()
    with called, pytest.raises(ssl.SSLError):
        secure(caller, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), server_name="of a server")
    assert caller.fileno() == -1


async def test_small_pieces_are_not_kept_until_those_before_them_are_acknowledged() -> None:
    """What asks in two pieces and waits for the answer would stand still for 40 ms, each time."""
    caller, called = tcp_pair()
    descriptors = [one.fileno() for one in (caller, called)]  # they stay what they are
    ends = [
        secure(caller, client_tls_context(pair_of(SOURCE), pair_of(TARGET).der), server_name=certificate_host(TARGET)),
        secure(called, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der)),
    ]
    for descriptor in descriptors:
        with socket.socket(fileno=os.dup(descriptor)) as same:
            assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    for end in ends:
        end.close()
