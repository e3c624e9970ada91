# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies bytes between virt-api and a guest's device: one session for each device, in the endpoint's thread.

A guest waits when its serial port is connected and nobody reads. So a session whose client does not take what the
guest wrote is ended (links.streams.STALL_SECONDS).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from aiohttp import web

from controlplane.links.handler import Guest, LinkError, NotDone, bounded_text
from controlplane.links.node.messages import GuestDevice
from controlplane.links.relay import Close, SocketEnd, relay
from controlplane.links.streams import (
    CHUNK_BYTES,
    LOST,
    STALL_SECONDS,
    TAKEN_OVER,
    OpenStream,
    StreamOpened,
    close_reason,
    encode,
    read_opening,
)
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.streams.guest_sockets import StreamRefused

log = logging.getLogger(__name__)

SESSIONS = 128
"""Open sessions of this node."""
FIRST_MESSAGE_SECONDS = 5.0
CONNECT_SECONDS = 5.0
Home = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Runs a coroutine in the main loop."""


class Sockets(Protocol):
    """The devices' sockets, in the main loop."""

    async def open(self, opening: OpenStream) -> LauncherSocket:
        """StreamRefused."""

    async def explain_end(self, guest: Guest) -> Close: ...


@dataclass(slots=True, eq=False)
class Session:
    """An open stream, or one that is about to be opened."""

    websocket: web.WebSocketResponse
    opening: OpenStream
    end: asyncio.Future[Close]
    """Set to end the session from outside."""
    closed: asyncio.Event
    """The device is not connected any more."""

    def end_with(self, end: Close) -> None:
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
            raise StreamRefused(
                NotDone("busy", f"this node has {SESSIONS} open consoles and screens; close one of them")
            )
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
            former.end_with(Close(TAKEN_OVER, f"taken over by {session.opening.user}"))
            await former.closed.wait()
        return socket

    def _check_free(self, opening: OpenStream) -> None:
        former = self._sessions.get(_place(opening))
        if opening.keep_existing and former is not None:
            raise StreamRefused(NotDone("busy", f"it is in use by {former.opening.user}"))

    async def _run(self, session: Session, socket: LauncherSocket) -> Close:
        """Connect, and copy until an end. QEMU serves one connection: the former session's is closed by now."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await asyncio.open_unix_connection(socket.path, limit=CHUNK_BYTES)
        except (OSError, TimeoutError) as error:
            text = f"cannot connect to the guest's device: {error or 'it does not answer'}"
            await session.websocket.send_str(encode(NotDone("lost", bounded_text(text))))
            return Close(LOST, text)
        finally:
            socket.close()
        device = Device(*connection, STALL_SECONDS[session.opening.device], partial(self._explain_end, session))
        try:
            await session.websocket.send_str(encode(StreamOpened()))
            close, _unused = await relay(session.websocket, device, session.end)
            return close
        except ConnectionError:
            return Close(LOST, "the client is gone")
        finally:
            await device.close()

    async def _explain_end(self, session: Session) -> Close:
        close: Close = await self._home(self._sockets.explain_end(session.opening.guest))
        return close


class Device(SocketEnd):
    """The connection to a guest's device."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        stall_seconds: float,
        explain: Callable[[], Awaitable[Close]],
    ) -> None:
        """explain: says why QEMU has closed the device."""
        super().__init__(reader, writer, stall_seconds)
        self._explain = explain

    async def explain_end(self, *, is_reset: bool) -> Close:
        del is_reset  # QEMU ends in either way
        return await self._explain()


def _place(opening: OpenStream) -> tuple[str, GuestDevice]:
    return opening.guest.pod_uid, opening.device
