# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies bytes between a WebSocket and a far end until one of the two ends, or somebody ends the stream.

virt-api copies between a client and a virt-handler or a port of a guest, virt-handler between virt-api and a device.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from aiohttp import WSMsgType, web
from kubevirt_api.close_codes import ENDED, LOST, TOO_SLOW

from controlplane.links.streams import CHUNK_BYTES


@dataclass(frozen=True, slots=True)
class Close:
    """Why a stream ends: a code of kubevirt_api.close_codes, and a sentence for the client."""

    code: int
    reason: str


CLIENT_GONE = Close(LOST, "the client is gone")


@dataclass(slots=True)
class Transferred:
    """Bytes of a stream."""

    to_client: int = 0
    from_client: int = 0


class Pauses:
    """Lets others run after every few messages: a peer may have sent ten thousands of tiny ones ahead."""

    MESSAGES = 8

    def __init__(self) -> None:
        self._count = 0

    async def next(self) -> None:
        """Note that a message was handled."""
        self._count += 1
        if self._count % self.MESSAGES == 0:
            await asyncio.sleep(0)


class FarEnd(Protocol):
    """What a stream leads to."""

    stall_seconds: float
    """How long a client may read nothing while there is more for it than the buffers hold."""
    input_seconds: float
    """How long the guest may take nothing of what the client sent. A client that is gone is not noticed meanwhile."""

    async def receive(self) -> bytes | Close:
        """Return the next bytes, or why there are no more."""

    async def send(self, data: bytes) -> None:
        """Send bytes; wait while the far end does not read. Once it has ended, they are dropped."""

    async def close(self) -> None:
        """Disconnect, within seconds, whatever the far end does."""


class SocketEnd:
    """A far end that is a connected socket."""

    input_seconds = 60.0

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stall_seconds: float) -> None:
        writer.transport.set_write_buffer_limits(high=0)  # what was sent is not lost by close
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
        if self._writer.is_closing():  # receive says why; uvloop's transports refuse to write now
            return
        with suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def close(self) -> None:
        self._writer.transport.abort()


async def relay(
    client: web.WebSocketResponse, far: FarEnd, ended: asyncio.Future[Close], transferred: Transferred
) -> Close:
    """Copy until an end, and return it. ended: set to end the stream from outside. transferred: counts the bytes."""
    sender = _Sender(far.stall_seconds)
    directions = {
        asyncio.create_task(_to_client(client, far, sender, transferred)),
        asyncio.create_task(_from_client(client, far, sender, transferred)),
    }
    try:
        done, _unused = await asyncio.wait({*directions, sender.stalled, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await sender.stop(directions)
    return ended.result() if ended in done else done.pop().result()


class _Sender:
    """Waits until the client has taken a message, and notices one that it does not take in time.

    A message that was begun is not given up: aiohttp could not wait for any later one, and so not for the close frame.
    A timer for each message costs less than a task for each.
    """

    def __init__(self, stall_seconds: float) -> None:
        self._stall_seconds = stall_seconds
        self._loop = asyncio.get_running_loop()
        self._sending: set[asyncio.Task[Close] | None] = set()
        self.is_stopped = False
        self.stalled: asyncio.Future[Close] = self._loop.create_future()
        """Set when the client does not take a message in time."""

    async def send(self, message: Awaitable[None]) -> None:
        """Send a message. Raises ConnectionError."""
        timer, direction = self._loop.call_later(self._stall_seconds, self._stall), asyncio.current_task()
        self._sending.add(direction)
        try:
            await message
        finally:
            self._sending.discard(direction)
            timer.cancel()

    async def stop(self, directions: set[asyncio.Task[Close]]) -> None:
        """Stop both directions. One that sends a message ends after it, or with the connection."""
        self.is_stopped = True
        idle = directions - self._sending
        for direction in idle:
            direction.cancel()
        if idle:
            await asyncio.wait(idle)

    def _stall(self) -> None:
        if not self.stalled.done():
            text = f"you did not read for {self._stall_seconds:.0f} s what the guest wrote"
            self.stalled.set_result(Close(TOO_SLOW, text))


async def _to_client(client: web.WebSocketResponse, far: FarEnd, sender: _Sender, transferred: Transferred) -> Close:
    pauses = Pauses()
    while not sender.is_stopped:
        data = await far.receive()
        if isinstance(data, Close):
            return data
        try:
            await sender.send(client.send_bytes(data))
        except ConnectionError:
            break
        transferred.to_client += len(data)
        await pauses.next()
    return CLIENT_GONE


async def _from_client(client: web.WebSocketResponse, far: FarEnd, sender: _Sender, transferred: Transferred) -> Close:
    """Copy binary messages; texts are ignored, as upstream."""
    pauses, loop = Pauses(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as timeout:
            while not sender.is_stopped:
                message = await client.receive()
                match message.type:
                    case WSMsgType.BINARY:
                        timeout.reschedule(loop.time() + far.input_seconds)
                        await far.send(message.data)
                        timeout.reschedule(None)
                        transferred.from_client += len(message.data)
                    case WSMsgType.PING:
                        await sender.send(client.pong(message.data))
                    case WSMsgType.TEXT | WSMsgType.PONG:
                        pass
                    case WSMsgType.CLOSE:
                        return Close(ENDED, "the client has closed the stream")
                    case _:
                        break
                await pauses.next()
    except TimeoutError:
        return Close(LOST, f"the guest did not take for {far.input_seconds:.0f} s what you sent")
    except ConnectionError:
        pass
    return CLIENT_GONE
