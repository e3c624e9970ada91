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
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web
from kubevirt_api.close_codes import ENDED, LOST, TAKEN_OVER

from controlplane.http_server.websocket import close_websocket, is_gone
from controlplane.links.handler import Guest, LinkError, NotDone, bounded_text
from controlplane.links.node.messages import GuestDevice
from controlplane.links.relay import Close, Transferred, relay
from controlplane.links.streams import STALL_SECONDS, OpenStream, StreamOpened, close_reason, encode, read_opening
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.streams.device import Device, connect
from controlplane.virt_handler.streams.guest_sockets import StreamRefused

log = logging.getLogger(__name__)

SESSIONS = 128
"""Open sessions of this node."""
FIRST_MESSAGE_SECONDS = 5.0
RunInMainLoop = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""Runs a coroutine in the main loop."""


class Sockets(Protocol):
    """The devices' sockets, in the main loop."""

    async def open(self, opening: OpenStream) -> LauncherSocket:
        """StreamRefused."""

    async def read_backlog(self, guest: Guest) -> bytes: ...

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

    def __init__(self, sockets: Sockets, run_in_main_loop: RunInMainLoop) -> None:
        self._sockets = sockets
        self._run_in_main_loop = run_in_main_loop
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
            await close_websocket(websocket, LOST, close_reason(f"no request for a stream: {error}"))
            return
        session = Session(websocket, opening, asyncio.get_running_loop().create_future(), asyncio.Event())
        try:
            with suppress(ConnectionError):  # virt-api is gone
                end = await self._serve_device(session)
                await close_websocket(websocket, end.code, close_reason(end.reason))
        except StreamRefused as refusal:
            with suppress(ConnectionError):
                await websocket.send_str(encode(refusal.answer))
            await close_websocket(websocket, ENDED, b"")

    async def _serve_device(self, session: Session) -> Close:
        """Open the device, and copy until an end. Raises StreamRefused, ConnectionError."""
        opening = session.opening
        self._check_free(opening)
        with ExitStack() as resources:
            socket: LauncherSocket = await self._run_in_main_loop(self._sockets.open(opening))
            resources.callback(socket.close)
            if is_gone(session.websocket):  # it ends no session of another user
                raise ConnectionResetError("virt-api is gone")
            with self._enter(session) as former:
                if former is not None:  # QEMU serves one connection
                    former.end_with(Close(TAKEN_OVER, f"taken over by {opening.user}"))
                    await former.closed.wait()
                device = await self._connect(opening, socket)
                resources.close()
                try:
                    return await self._copy(session, device)
                finally:
                    await device.close()

    @contextmanager
    def _enter(self, session: Session) -> Iterator[Session | None]:
        """Register the session of its device inside the block. Yields the former one. Raises StreamRefused."""
        self._check_free(session.opening)  # others may have come while the socket was opened
        key = _key(session.opening)
        former = self._sessions.get(key)
        self._sessions[key] = session
        try:
            yield former
        finally:
            session.closed.set()
            if self._sessions.get(key) is session:
                del self._sessions[key]

    def _check_free(self, opening: OpenStream) -> None:
        former = self._sessions.get(_key(opening))
        if former is None and len(self._sessions) >= SESSIONS:
            text = f"this node has {SESSIONS} open consoles and screens; close one of them"
            raise StreamRefused(NotDone("busy", text))
        if opening.keep_existing and former is not None:
            raise StreamRefused(NotDone("busy", f"it is in use by {former.opening.user}"))

    async def _connect(self, opening: OpenStream, socket: LauncherSocket) -> Device:
        try:
            return await connect(socket.path, STALL_SECONDS[opening.device], lambda: self._explain_end(opening.guest))
        except (OSError, TimeoutError) as error:
            text = f"cannot connect to the guest's device: {str(error) or 'it does not answer'}"
            raise StreamRefused(NotDone("lost", bounded_text(text))) from error

    async def _copy(self, session: Session, device: Device) -> Close:
        began, transferred, end = time.monotonic(), Transferred(), Close(LOST, "virt-handler ends")
        try:
            await session.websocket.send_str(encode(StreamOpened()))
            if session.opening.with_backlog and session.opening.device == "serial":
                await device.begin_with(await self._run_in_main_loop(self._sockets.read_backlog(session.opening.guest)))
            end = await relay(session.websocket, device, session.end, transferred)
            return end
        finally:
            opening = session.opening
            extra = {"uid": opening.guest.vmi_uid, "device": opening.device, "user": opening.user}
            sizes = {"bytes_to_client": transferred.to_client, "bytes_from_client": transferred.from_client}
            seconds = round(time.monotonic() - began, 1)
            log.info("stream ended", extra={**extra, **sizes, "because": end.reason, "seconds": seconds})

    async def _explain_end(self, guest: Guest) -> Close:
        close: Close = await self._run_in_main_loop(self._sockets.explain_end(guest))
        return close


def _key(opening: OpenStream) -> tuple[str, GuestDevice]:
    return opening.guest.pod_uid, opening.device
