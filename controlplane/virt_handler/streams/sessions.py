# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies bytes between virt-api and a guest's device: one session for each device, in the endpoint's thread.

A guest waits when its serial port is connected and nobody reads. So a session whose client does not take what the
guest wrote is ended after a second, and the log has what the client missed. A screen may wait longer: QEMU sends what
is there when the client asks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import WSMsgType, web

from controlplane.links.handler import Guest, LinkError, NotDone
from controlplane.links.node.messages import GuestDevice
from controlplane.links.streams import (
    CHUNK_BYTES,
    LOST,
    TAKEN_OVER,
    TOO_SLOW,
    OpenStream,
    StreamOpened,
    close_reason,
    encode,
    read_opening,
)
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.streams.guest_sockets import End, StreamRefused

log = logging.getLogger(__name__)

SESSIONS = 128
"""Open sessions of this node."""
FIRST_MESSAGE_SECONDS = 5.0
CONNECT_SECONDS = 5.0
STALL_SECONDS: dict[GuestDevice, float] = {"serial": 1.0, "vnc": 30.0}
"""How long a client may read nothing while the guest has more for it than the buffers hold."""

Home = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Runs a coroutine in the main loop."""


class Sockets(Protocol):
    """The devices' sockets, in the main loop."""

    async def open(self, opening: OpenStream) -> LauncherSocket:
        """StreamRefused."""

    def explain_end(self, guest: Guest) -> End: ...


@dataclass(slots=True, eq=False)
class Session:
    """An open stream, or one that is about to be opened."""

    websocket: web.WebSocketResponse
    opening: OpenStream
    end: asyncio.Future[End]
    """Set to end the session from outside."""
    closed: asyncio.Event
    """The device is not connected any more."""

    def end_with(self, end: End) -> None:
        if not self.end.done():
            self.end.set_result(end)


class StreamSessions:
    """The sessions of this node. Use it in one loop."""

    def __init__(self, sockets: Sockets, home: Home) -> None:
        self._sockets = sockets
        self._home = home
        self._sessions: dict[tuple[str, GuestDevice], Session] = {}
        """By Pod UID and device."""

    def __len__(self) -> int:
        return len(self._sessions)

    async def serve(self, websocket: web.WebSocketResponse) -> None:
        """Serve a stream until one end closes it."""
        try:
            async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
                opening = read_opening(await websocket.receive_str())
        except (LinkError, TimeoutError, TypeError) as error:
            await websocket.close(code=LOST, message=close_reason(f"no request for a stream: {error}"))
            return
        session = Session(websocket, opening, asyncio.get_running_loop().create_future(), asyncio.Event())
        began = time.monotonic()
        try:
            socket = await self._open(session)
        except StreamRefused as refusal:
            await websocket.send_str(encode(refusal.answer))
            await websocket.close()
            return
        try:
            end = await self._run(session, socket)
        finally:
            session.closed.set()
            if self._sessions.get(_place(opening)) is session:
                del self._sessions[_place(opening)]
        extra = {"uid": opening.guest.vmi_uid, "device": opening.device, "user": opening.user}
        log.info("stream ended", extra={**extra, "because": end.reason, "seconds": round(time.monotonic() - began, 1)})
        await websocket.close(code=end.code, message=close_reason(end.reason))

    async def _open(self, session: Session) -> LauncherSocket:
        """Open the socket, and take the device over from its former session. StreamRefused."""
        place = _place(session.opening)
        if place not in self._sessions and len(self._sessions) >= SESSIONS:
            raise StreamRefused("busy", f"this node has {SESSIONS} open consoles and screens; close one of them")
        self._check_free(session.opening)
        socket: LauncherSocket = await self._home(self._sockets.open(session.opening))
        try:
            self._check_free(session.opening)
        except StreamRefused:
            socket.close()
            raise
        former = self._sessions.get(place)
        self._sessions[place] = session
        if former is not None:
            former.end_with(End(TAKEN_OVER, f"taken over by {session.opening.user}"))
            await former.closed.wait()
        return socket

    def _check_free(self, opening: OpenStream) -> None:
        former = self._sessions.get(_place(opening))
        if opening.keep_existing and former is not None:
            raise StreamRefused("busy", f"it is in use by {former.opening.user}")

    async def _run(self, session: Session, socket: LauncherSocket) -> End:
        """Connect, and copy until an end. QEMU serves one connection: the former session's is closed by now."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(socket.path, limit=CHUNK_BYTES)
        except (OSError, TimeoutError) as error:
            text = f"cannot connect to the guest's device: {error or 'it does not answer'}"
            await session.websocket.send_str(encode(NotDone("lost", text[:1024])))
            return End(LOST, text)
        finally:
            socket.close()
        try:
            writer.transport.set_write_buffer_limits(high=CHUNK_BYTES)
            await session.websocket.send_str(encode(StreamOpened()))
            return await self._copy(session, reader, writer)
        except ConnectionError:
            return End(LOST, "the client is gone")
        finally:
            writer.transport.abort()

    async def _copy(self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> End:
        directions = {
            asyncio.create_task(self._from_guest(session, reader)),
            asyncio.create_task(_from_client(session.websocket, writer)),
        }
        try:
            done, _unused = await asyncio.wait({*directions, session.end}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in directions:
                task.cancel()
            await asyncio.wait(directions)
        return session.end.result() if session.end in done else done.pop().result()

    async def _from_guest(self, session: Session, reader: asyncio.StreamReader) -> End:
        stall = STALL_SECONDS[session.opening.device]
        with suppress(ConnectionError):  # QEMU was killed
            while data := await reader.read(CHUNK_BYTES):
                try:
                    async with asyncio.timeout(stall):
                        await session.websocket.send_bytes(data)
                except TimeoutError:
                    return End(TOO_SLOW, f"you did not read what the guest wrote for {stall:.0f} s: see its log")
                except ConnectionError:
                    return End(LOST, "the client is gone")
        end: End = await self._home(self._explain_end(session.opening.guest))
        return end

    async def _explain_end(self, guest: Guest) -> End:
        return self._sockets.explain_end(guest)


async def _from_client(websocket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> End:
    """Copy binary messages to the guest. Other messages are ignored, as upstream."""
    async for message in websocket:
        if message.type is WSMsgType.BINARY:
            try:
                writer.write(message.data)
                await writer.drain()
            except ConnectionError:
                await asyncio.Event().wait()  # the other direction sees the end, and says why
    return End(websocket.close_code or LOST, "the client has closed the stream")


def _place(opening: OpenStream) -> tuple[str, GuestDevice]:
    return opening.guest.pod_uid, opening.device
