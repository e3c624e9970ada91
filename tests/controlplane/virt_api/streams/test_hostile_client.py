# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile client of a console hurts its own session only: another user's goes on, and nothing is left of it."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from controlplane.http_server import websocket
from controlplane.links import streams as link
from controlplane.virt_api.streams import handler_streams
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.streams.device import Device
from tests.controlplane.virt_api.served import serving
from tests.controlplane.virt_api.streams.raw_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    RawClient,
    frame,
)
from tests.controlplane.virt_api.streams.stage import NETWORK, Socket, Streaming, echoing
from tests.controlplane.virt_api.subresources.stage import a_vmi
from tests.controlplane.virt_handler.fakes import until

ROUND_TRIPS = 20
SOME = 100
"""Bursts of tiny frames: all that the buffers hold is read before the end of a connection is."""


class Shared(Streaming):
    """A virt-api with a user at a port of the guest, and a hostile one at its console."""

    async def answer(self, neighbour: Socket) -> None:
        await neighbour.send_bytes(b"k")
        assert await neighbour.receive_bytes() == b"k"

    async def connect(self) -> RawClient:
        client = await RawClient.connect(self.served, self.proxy, "console")
        await until(lambda: len(self.device.connections) > self.device.closed, "the connection to the device")
        return client

    def remains(self) -> tuple[int, int, list[str]]:
        """Return the numbers of sessions in virt-api and in virt-handler, and the threads."""
        assert self.served.server is not None
        used = self.served.server.streams.by_machine.used_by("ns/web")
        return used, len(self.endpoint._sessions), sorted(thread.name for thread in threading.enumerate())


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
async def shared(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Shared]:
    async with serving(tmp_path) as served:
        shared = Shared(served, pair, tmp_path)
        await shared.open()
        shared.put_vmi(a_vmi(interfaces=NETWORK))
        (await shared.connect()).vanish()  # with its first stream, an event loop opens descriptors for itself
        await until(lambda: not shared.endpoint._sessions, "the end of the session")
        yield shared
        await shared.endpoint.close()
        await shared.device.close()


async def never_reads(client: RawClient, shared: Shared) -> None:
    while not shared.device.writer.is_closing():
        shared.device.write(b"x" * 65536)
        with suppress(ConnectionError):
            await shared.device.writer.drain()
        await asyncio.sleep(0)


async def floods(client: RawClient, _shared: Shared) -> None:
    await client.flood(frame(BINARY, b"x" * 32768), SOME)


async def sends_single_bytes(client: RawClient, _shared: Shared) -> None:
    for _unused in range(1000):
        client.send(frame(BINARY, b"x"))
        await asyncio.sleep(0)


async def sends_only_texts(client: RawClient, _shared: Shared) -> None:
    await client.flood(frame(TEXT, b"x" * 50) * 100, SOME)


async def sends_only_pings(client: RawClient, _shared: Shared) -> None:
    reading = asyncio.create_task(client.frames())
    await client.flood(frame(PING, b"x" * 50) * 100, SOME)
    await reading


async def sends_pings_and_reads_no_pong(client: RawClient, _shared: Shared) -> None:
    await client.flood(frame(PING, b"x" * 125) * 100, SOME)


async def sends_only_pongs(client: RawClient, _shared: Shared) -> None:
    await client.flood(frame(PONG, b"x" * 50) * 100, SOME)


async def sends_a_message_without_end(client: RawClient, _shared: Shared) -> None:
    client.send(frame(BINARY, is_last=False))
    await client.flood(frame(CONTINUATION, b"x" * 1000, is_last=False))


async def sends_a_huge_message(client: RawClient, _shared: Shared) -> None:
    client.send(frame(BINARY, b"x" * 1_000_000))
    await client.frames()


async def sends_nonsense(client: RawClient, _shared: Shared) -> None:
    client.send(b"\xff" * 1000)
    await client.frames()


async def closes_half(client: RawClient, _shared: Shared) -> None:
    os_socket = client.writer.get_extra_info("socket")
    with socket.socket(fileno=os.dup(os_socket.fileno())) as below_tls:
        below_tls.shutdown(socket.SHUT_WR)


async def disappears_without_fin(client: RawClient, _shared: Shared) -> None:
    """Its machine has lost its power: nothing answers a ping."""
    await client.frames()


async def closes_and_goes_on(client: RawClient, _shared: Shared) -> None:
    client.send(frame(CLOSE, b"\x03\xe8"))
    await client.flood(frame(BINARY, b"x" * 1000))


async def closes_and_reads_no_answer(client: RawClient, shared: Shared) -> None:
    shared.device.write(b"x" * (1 << 20))
    client.send(frame(CLOSE, b"\x03\xe8"))


ALL = (
    never_reads,
    floods,
    sends_single_bytes,
    sends_only_texts,
    sends_only_pings,
    sends_pings_and_reads_no_pong,
    sends_only_pongs,
    sends_a_message_without_end,
    sends_a_huge_message,
    sends_nonsense,
    closes_half,
    disappears_without_fin,
    closes_and_goes_on,
    closes_and_reads_no_answer,
)
ENDS_BY_ITSELF = {
    never_reads,
    sends_a_message_without_end,
    sends_a_huge_message,
    sends_nonsense,
    closes_half,
    disappears_without_fin,
    closes_and_goes_on,
    closes_and_reads_no_answer,
}
"""virt-api ends these sessions, although the client keeps its connection. The others end with it."""
Behaviour = Callable[[RawClient, Shared], Awaitable[None]]


@pytest.mark.parametrize("behaviour", ALL, ids=lambda behaviour: behaviour.__name__)
async def test_only_its_own_session_is_hurt(
    shared: Shared, behaviour: Behaviour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(link.STALL_SECONDS, "serial", 0.1)
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(handler_streams, "CLOSE_SECONDS", 0.1)
    async with echoing() as port, shared.stream(f"portforward/{port}") as neighbour:
        await shared.answer(neighbour)
        before, open_before = shared.remains(), descriptors()
        if behaviour is disappears_without_fin:
            monkeypatch.setattr(websocket, "HEARTBEAT_SECONDS", 0.2)
        client = await shared.connect()
        behaving = asyncio.ensure_future(behaviour(client, shared))
        for _unused in range(ROUND_TRIPS):
            await shared.answer(neighbour)
        if behaviour in ENDS_BY_ITSELF:
            await until(lambda: shared.remains() == before, "the end of the session")
        client.vanish()
        behaving.cancel()
        await asyncio.wait({behaving})
        await until(lambda: shared.remains() == before, "the end of the session")
        await until(lambda: descriptors() <= open_before, "the descriptors")
        await shared.answer(neighbour)


async def test_a_client_that_is_gone_is_noticed_while_its_guest_takes_nothing(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end is behind what it has sent."""
    monkeypatch.setattr(link, "INPUT_SECONDS", 1.0)
    monkeypatch.setattr(Device, "input_seconds", 1.0)
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(handler_streams, "CLOSE_SECONDS", 0.1)
    before = shared.remains()
    client = await shared.connect()
    shared.device.writer.transport.pause_reading()
    flooding = asyncio.create_task(client.flood(frame(BINARY, b"x" * 32768)))
    # A slow machine may not fill the buffers before the session ends.
    buffers = client.writer.transport
    await until(lambda: buffers.get_write_buffer_size() > 0 or shared.remains() == before, "full buffers")
    client.vanish()
    await flooding
    await until(lambda: shared.remains() == before, "the end of the session")
