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

from controlplane.links.handler import server_name
from controlplane.virt_handler.migration.byte_copy import TunnelSocket, copy_both_ways, secure
from controlplane.virt_handler.migration.peer import client_tls_context, server_tls_context
from tests.controlplane.virt_handler.migration.ends import SECONDS, SOURCE, TARGET, open_things, pair_of

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Path:
    """near (left) - copy - TLS - copy - far (right), seen from both ends."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    async def open(self) -> tuple[Streams, Streams]:
        mine, near = socket.socketpair()
        far, theirs = socket.socketpair()
        caller, called = tcp_pair()
        client = secure(
            caller, client_tls_context(pair_of(SOURCE), pair_of(TARGET).der), server_name=server_name(TARGET)
        )
        server = secure(called, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der))
        await asyncio.gather(client.prove(), server.prove())
        self.tasks = [
            asyncio.create_task(copy_both_ways(TunnelSocket(near), client)),
            asyncio.create_task(copy_both_ways(server, TunnelSocket(far))),
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


async def test_bytes_arrive_in_order_in_both_directions() -> None:
    path = Path()
    near, far = await path.open()
    there, back = os.urandom(3 << 20), os.urandom(2 << 20)

    async def say(streams: Streams, data: bytes) -> None:
        streams[1].write(data)
        await streams[1].drain()
        streams[1].write_eof()

    async with asyncio.timeout(SECONDS):
        received = await asyncio.gather(far[0].read(-1), near[0].read(-1), say(near, there), say(far, back))
    assert received[0] == there
    assert received[1] == back
    await path.ended()
    near[1].close()
    far[1].close()


async def test_a_peer_that_reads_nothing_stops_the_sender() -> None:
    path = Path()
    near, far = await path.open()
    far[1].transport.pause_reading()  # type: ignore[attr-defined]
    sent = 0
    with suppress(TimeoutError):
        while sent < 256 << 20:
            near[1].write(bytes(1 << 16))
            async with asyncio.timeout(0.3):
                await near[1].drain()
            sent += 1 << 16
    assert sent < 64 << 20
    near[1].transport.abort()
    far[1].transport.abort()
    await path.ended()


@pytest.mark.parametrize("which", ["left", "right"])
async def test_a_broken_end_closes_the_other_and_leaks_nothing(which: str) -> None:
    before = open_things()
    path = Path()
    near, far = await path.open()
    breaks, stays = (near, far) if which == "left" else (far, near)
    breaks[1].transport.abort()
    stays[1].write(bytes(8 << 20))
    await path.ended()
    async with asyncio.timeout(SECONDS):
        with suppress(OSError):  # its own write may fail
            assert await stays[0].read(-1) == b""
    stays[1].transport.abort()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert open_things() == before


async def test_a_fast_connection_yields_to_other_tasks() -> None:
    """With a fast source and a fast target, no socket ever blocks."""
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
    ends: Any = Fast(), Fast()
    await copy_both_ways(*ends)
    task.cancel()
    assert turns > 50


async def test_a_line_is_read_without_the_bytes_after_it() -> None:
    here, there = socket.socketpair()
    end = TunnelSocket(here)
    there.sendall(b"one\ntwo")
    assert await end.read_line(10) == b"one\n"
    into = memoryview(bytearray(10))
    assert await end.receive(into) == 3
    end.close()
    there.close()


@pytest.mark.parametrize(("said", "ends"), [(b"x" * 20, False), (b"short", True)])
async def test_a_line_that_is_too_long_or_unfinished_is_an_error(said: bytes, ends: bool) -> None:
    here, there = socket.socketpair()
    end = TunnelSocket(here)
    there.sendall(said)
    if ends:
        there.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(SECONDS):
        with pytest.raises(ValueError, match="does not begin with a handshake line"):
            await end.read_line(10)
    end.close()
    there.close()


async def test_a_connection_that_cannot_use_tls_is_closed() -> None:
    caller, called = tcp_pair()
    with called, pytest.raises(ssl.SSLError):
        secure(caller, ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), server_name="of a server")
    assert caller.fileno() == -1


async def test_small_writes_are_sent_without_delay() -> None:
    """With Nagle's algorithm, a request in two writes would wait 40 ms each time."""
    caller, called = tcp_pair()
    descriptors = [connection.fileno() for connection in (caller, called)]  # TLS keeps the descriptors
    ends = [
        secure(caller, client_tls_context(pair_of(SOURCE), pair_of(TARGET).der), server_name=server_name(TARGET)),
        secure(called, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der)),
    ]
    for descriptor in descriptors:
        with socket.socket(fileno=os.dup(descriptor)) as same:
            assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    for end in ends:
        end.close()
