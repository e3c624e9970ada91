# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may be connected: a bounded number, shared fairly by peers. What is asked on a connection is the caller's.

A connection costs memory and a descriptor before anybody has said who it is; whoever reaches the port can open them.
So they are counted as they are accepted, before anything is made for them: asyncio's own server makes the TLS of a
connection first and tells of it only after the handshake, which a peer that says nothing never ends.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from controlplane.http_server.connection import Connection
from controlplane.http_server.quotas import Shares
from controlplane.http_server.response_writer import until_written, write
from controlplane.http_server.sockets import bind
from controlplane.process.descriptors import connection_limit

log = logging.getLogger(__name__)

HANDSHAKE_SECONDS = 5.0
FIRST_REQUEST_SECONDS = 30.0
"""From the handshake to the end of the first request's headers. API servers may open a connection ahead of its use."""
IDLE_SECONDS = 120.0
"""From an answer to the end of the next request's headers. An API server leaves idle connections after 90: were we the
first, a request could be under way that nobody answers."""
ACCEPTED_AT_ONCE = 64
"""Then the loop does other things."""
PAUSE_SECONDS = 1.0
"""After a connection that could not be accepted, for want of descriptors mostly: it stays in the queue."""

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener(web.Server):
    """Listens until closed: accepts, counts, makes a protocol per connection, ends those that say nothing."""

    def __init__(self, handle: Handle, connections: int, tls: ssl.SSLContext | None = None) -> None:
        """connections: so many, twice that with all peers' shares; fewer where descriptors are short.

        A peer that has none gets one all the same: whoever has proved nothing and has been idle, or at its handshake,
        for longest makes room. Else many addresses that say nothing, or one thing a minute, keep out the one that has
        something to ask: a kubelet, without whose probes a process is ended. While all are being answered, whoever has
        most and has proved nothing ends one.
        """
        # Nobody sends us compressed bodies; what is, may be a thousand times as long as what was sent.
        super().__init__(self._serve, access_log=None, auto_decompress=False, keepalive_timeout=IDLE_SECONDS)
        self._handle = handle
        self._tls = tls
        self._room = Shares(connection_limit(connections))
        self._peers: dict[Connection, str] = {}
        self._silent: dict[RequestHandler, asyncio.TimerHandle] = {}
        self._beginning: set[asyncio.Task[None]] = set()
        self._handshakes: dict[Connection, asyncio.Task[None] | None] = {}
        """Those that have begun and not ended, the oldest first."""
        self._idle: dict[Connection, None] = {}
        """Connections that have proved nothing and ask for nothing, those that do so for longest first."""
        self._sockets: list[socket.socket] = []

    def __call__(self) -> Connection:
        return Connection(self, loop=asyncio.get_running_loop(), **self._kwargs)

    async def listen(self, address: str, port: int) -> int:
        """Listen on an address, "" for every one. Returns the port. Raises OSError when it is taken."""
        self._sockets = await bind(address, port)
        for one in self._sockets:
            self._resume(one)
        return int(self._sockets[0].getsockname()[1])

    async def close(self, seconds: float) -> None:
        """Accept no more; requests under way get so long to end."""
        for one in self._sockets:
            asyncio.get_running_loop().remove_reader(one)
            one.close()
        await asyncio.sleep(0)  # what was accepted is in a task's hands, what has arrived begins to be handled
        for task in self._beginning:
            task.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)
        self.pre_shutdown()
        await self.shutdown(seconds)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        loop = asyncio.get_running_loop()
        self._silent[handler] = loop.call_later(FIRST_REQUEST_SECONDS, transport.abort)
        self._is_idle(cast("Connection", handler))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._silent.pop(handler).cancel()
        self._idle.pop(cast("Connection", handler), None)
        self._give_back(cast("Connection", handler))

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)  # we make no other
        timer = self._silent.get(connection)
        if timer is not None:
            timer.cancel()
        self._idle.pop(connection, None)
        try:
            with until_written(request) as held:
                held.callback(connection.answered)
                return await write(connection, request, await self._handle(request))
        finally:
            self._is_idle(connection)

    def _is_idle(self, connection: Connection) -> None:
        if connection in self._silent and not connection.is_proven:
            self._idle[connection] = None

    def _resume(self, listening: socket.socket) -> None:
        if listening.fileno() >= 0:  # not closed meanwhile
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _unused in range(ACCEPTED_AT_ONCE):
            try:
                connection, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("cannot accept connections", extra={"because": error})
                loop = asyncio.get_running_loop()
                loop.remove_reader(listening)
                loop.call_later(PAUSE_SECONDS, self._resume, listening)
                return
            self._admit(connection, str(address[0]))

    def _admit(self, connection: socket.socket, peer: str) -> None:
        if not self._room.take(peer, 1) and not self._makes_room(peer):
            connection.close()
            return
        connection.setblocking(False)
        handler = self()
        self._peers[handler] = peer
        task = asyncio.get_running_loop().create_task(self._begin(connection, handler))
        self._beginning.add(task)
        task.add_done_callback(self._beginning.discard)

    def _makes_room(self, peer: str) -> bool:
        """End a connection for a peer that has none, and give it what that held; False when there is none to end."""
        if peer in self._peers.values():
            return False
        ended = next(iter(self._idle), None) or next(iter(self._handshakes), None) or self._last_of_most()
        if ended is None:
            return False
        self._room.hand_over(self._peers.pop(ended), peer, 1)
        self._idle.pop(ended, None)
        if (task := self._handshakes.pop(ended, None)) is not None:
            task.cancel()
        elif ended.wire is not None:
            ended.wire.abort()
        return True

    def _last_of_most(self) -> Connection | None:
        """Find the last connection of who has proved nothing and has most; None when nobody has more than one."""
        unproven = {one: peer for one, peer in self._peers.items() if not one.is_proven}
        ((most, number),) = Counter(unproven.values()).most_common(1) or [("", 0)]
        return next(one for one in reversed(unproven) if unproven[one] == most) if number > 1 else None

    async def _begin(self, connection: socket.socket, handler: Connection) -> None:
        """See a connection through its handshake; from there on it is the handler's."""
        seconds = HANDSHAKE_SECONDS if self._tls is not None else None
        self._handshakes[handler] = asyncio.current_task()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: handler, connection, ssl=self._tls, ssl_handshake_timeout=seconds
            )
        except OSError as error:
            log.debug("no handshake", extra={"because": error, "peer": self._peers.get(handler)})
        finally:
            self._handshakes.pop(handler, None)
            if handler not in self._silent:  # it never was connected, or is no more
                self._give_back(handler)

    def _give_back(self, handler: Connection) -> None:
        peer = self._peers.pop(handler, None)
        if peer is not None:
            self._room.give_back(peer, 1)
