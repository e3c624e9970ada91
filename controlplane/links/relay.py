# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies bytes between a WebSocket and a far end until one of the two ends, or somebody ends the stream.

virt-api copies between a client and a virt-handler or a port of a guest, virt-handler between virt-api and a device.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from aiohttp import WSMsgType, web

from controlplane.links.streams import CHUNK_BYTES, ENDED, LOST, TOO_SLOW


@dataclass(frozen=True, slots=True)
class Close:
    """Why a stream ends: a close code of links.streams, and a sentence for the client."""

    code: int
    reason: str


@dataclass(slots=True)
class Transferred:
    """Bytes of a stream."""

    to_client: int = 0
    from_client: int = 0


class FarEnd(Protocol):
    """What a stream leads to."""

    stall_seconds: float
    """How long a client may read nothing while there is more for it than the buffers hold."""

    async def receive(self) -> bytes | Close:
        """Return the next bytes, or why there are no more."""

    async def send(self, data: bytes) -> None:
        """Send bytes; wait while the far end does not read. Once it has ended, they are dropped."""

    async def close(self) -> None: ...


class SocketEnd:
    """A far end that is a connected socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stall_seconds: float) -> None:
        writer.transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self.stall_seconds = stall_seconds
        self._reader = reader
        self._writer = writer

    async def explain_end(self, *, is_reset: bool) -> Close:
        """Say why the peer has ended the connection."""
        return Close(LOST if is_reset else ENDED, f"the guest has {'reset' if is_reset else 'closed'} the connection")

    async def receive(self) -> bytes | Close:
        try:
            data = await self._reader.read(CHUNK_BYTES)
        except OSError:
            return await self.explain_end(is_reset=True)
        return data or await self.explain_end(is_reset=False)

    async def send(self, data: bytes) -> None:
        with suppress(OSError):  # receive says why
            self._writer.write(data)
            await self._writer.drain()

    async def close(self) -> None:
        self._writer.transport.abort()


async def relay(client: web.WebSocketResponse, far: FarEnd, ended: asyncio.Future[Close]) -> tuple[Close, Transferred]:
    """Copy until an end; return it, and the bytes that were copied. ended: set to end the stream from outside."""
    transferred = Transferred()
    directions = {
        asyncio.create_task(_to_client(client, far, transferred)),
        asyncio.create_task(_from_client(client, far, transferred)),
    }
    try:
        done, _unused = await asyncio.wait({*directions, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in directions:
            task.cancel()
        await asyncio.wait(directions)
    return (ended.result() if ended in done else done.pop().result()), transferred


async def _to_client(client: web.WebSocketResponse, far: FarEnd, transferred: Transferred) -> Close:
    while True:
        data = await far.receive()
        if isinstance(data, Close):
            return data
        try:
            async with asyncio.timeout(far.stall_seconds):
                await client.send_bytes(data)
        except TimeoutError:
            return Close(TOO_SLOW, f"you did not read for {far.stall_seconds:.0f} s what the guest wrote")
        except ConnectionError:
            return Close(LOST, "the client is gone")
        transferred.to_client += len(data)


async def _from_client(client: web.WebSocketResponse, far: FarEnd, transferred: Transferred) -> Close:
    """Copy binary messages; others are ignored, as upstream."""
    async for message in client:
        if message.type is WSMsgType.BINARY:
            await far.send(message.data)
            transferred.from_client += len(message.data)
    return Close(ENDED, "the client has closed the stream")
