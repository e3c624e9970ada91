# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP connection: wraps aiohttp's protocol and adds the limits that aiohttp lacks. Listener counts connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from aiohttp import web

FIRST_REQUEST_SECONDS = 30.0
"""From the handshake to the end of the first request's header. API servers may open a connection ahead of its use."""
MAX_HEADER_BYTES = 64 * 1024
"""All headers of a request. The front proxy forwards a user's groups and extras, which may be long."""


class Connection(asyncio.Protocol):
    """Ends the connection when its header is too large or its first request takes too long."""

    def __init__(self, protocol: web.RequestHandler, lost: Callable[[Connection], None]) -> None:
        """lost: called when a connection that was made has ended."""
        self.protocol = protocol
        self.handshake: asyncio.Task[None] | None = None
        self.is_authenticated = False
        """The peer has a client certificate that the handshake verified."""
        self.is_unread = False
        """A response waits for the peer to read what was sent."""
        self.lost = asyncio.Event()
        """The connection, once made, has ended."""
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._request: web.BaseRequest | None = None
        self._header_bytes = 0
        self._is_upgraded = False

    @property
    def is_idle(self) -> bool:
        return self._request is None

    @property
    def was_made(self) -> bool:
        """The handshake has succeeded; connection_lost will follow."""
        return self._transport is not None

    def begin(self, request: web.BaseRequest) -> None:
        """Note that the header of a request is complete."""
        self._request, self._header_bytes = request, 0
        if self._deadline is not None:
            self._deadline.cancel()

    def finish(self) -> None:
        """Note that the response is written."""
        self._request = None

    def upgrade(self) -> None:
        """Note that the response was a switch to another protocol: what follows is no header."""
        self._is_upgraded = True

    def abort(self) -> None:
        """End the connection, or its handshake, without waiting for the peer."""
        if self._transport is not None:
            self._transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        # Writing waits for the peer to read everything: responses limits for how long.
        self._transport.set_write_buffer_limits(high=1)
        self.is_authenticated = bool(transport.get_extra_info("peercert"))
        self._deadline = asyncio.get_running_loop().call_later(FIRST_REQUEST_SECONDS, self.abort)
        self.protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self.protocol.connection_lost(exc)
        self.lost.set()
        self._lost(self)

    def data_received(self, data: bytes) -> None:
        # aiohttp limits the number and the size of headers, but not their sum. Requests that are sent ahead of a
        # response count as well.
        if not self._is_upgraded and (self._request is None or self._request.content.is_eof()):
            if self._header_bytes > MAX_HEADER_BYTES:
                self.abort()
                return
            self._header_bytes += len(data)
        self.protocol.data_received(data)

    def eof_received(self) -> None:
        self.protocol.eof_received()

    def pause_writing(self) -> None:
        self.is_unread = True
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.is_unread = False
        self.protocol.resume_writing()


CONNECTION = web.RequestKey("connection", Connection)
"""The connection of a request."""
