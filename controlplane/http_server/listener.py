# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listener: accepts connections, limits their number in total and per peer, and serves HTTP on them.

A connection is counted when it is accepted, before its TLS handshake: an open connection costs memory and a descriptor
even if the peer never sends anything.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from controlplane.http_server.connection import CONNECTION, Connection
from controlplane.http_server.quotas import Quota
from controlplane.http_server.responses import WRITING_SECONDS, response_scope, write_response
from controlplane.process.descriptors import connection_limit

HANDSHAKE_SECONDS = 5.0
IDLE_SECONDS = 120.0
"""From a response to the end of the next request's header. An API server closes idle connections after 90 s. If this
process closed them first, it could lose a request that is under way."""
LINGERING_SECONDS = 1.0
"""How long to read the rest of a refused body, so that the peer can read the response."""
READ_BUFFER_BYTES = 32 * 1024
"""Unread bytes of a body that aiohttp buffers for the handler; it stops reading at twice as much."""
BACKLOG = 512
PAUSE_SECONDS = 1.0
"""Pause after a failed accept, which mostly lacks descriptors. The connection stays in the backlog."""
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _NoMalformedRequests(logging.Filter):
    """Drops log records about malformed requests: a peer can send any number of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


log = logging.getLogger(__name__)
log.addFilter(_NoMalformedRequests())


class Listener:
    """Listens until closed. Timeouts end connections that are silent or do not read."""

    def __init__(self, handle: Handle, connections: int, tls: ssl.SSLContext | None = None) -> None:
        """connections: limit for all peers; lower if descriptors are scarce. One peer gets three quarters of it.

        A peer without a connection always gets one while another connection is idle, or its peer does not read the
        response: the longest-idle connection without a client certificate is closed. Otherwise silent connections from
        several addresses would keep out a kubelet's probe.
        """
        self._handle, self._tls = handle, tls
        limit = connection_limit(connections)
        self._quota = Quota(limit, max(1, limit * 3 // 4))
        self._peers: dict[Connection, str] = {}
        """Open connections, the longest-idle first."""
        self._by_protocol: dict[object, Connection] = {}
        self._socket: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._server = web.Server(
            self._serve,
            request_factory=self._make_request,
            logger=log,
            access_log=None,
            auto_decompress=False,  # a compressed body could expand a thousandfold; no client sends one
            keepalive_timeout=IDLE_SECONDS,
            lingering_time=LINGERING_SECONDS,
            read_bufsize=READ_BUFFER_BYTES,
        )

    async def listen(self, address: str, port: int) -> int:
        """Listen on an IP address, "" for all. Return the port. Raises OSError if another process has it."""
        self._socket = _listen(address, port)
        self._socket.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(self._socket))
        return int(self._socket.getsockname()[1])

    async def close(self, seconds: float) -> None:
        """Accept no more connections. Current requests get this many seconds to end."""
        if self._accepting is not None:
            self._accepting.cancel()
            await asyncio.wait({self._accepting})
        if self._socket is not None:
            self._socket.close()
        await asyncio.sleep(0)  # accepted connections begin their handshake, received requests reach their handler
        handshakes = [connection.handshake for connection in self._peers if connection.handshake is not None]
        for task in handshakes:
            task.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)
        self._server.pre_shutdown()
        await self._server.shutdown(seconds)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except ConnectionAbortedError:
                continue
            except OSError as error:
                log.warning("cannot accept connections", extra={"because": error})
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._admit(accepted, str(address[0]))
            await asyncio.sleep(0)  # sock_accept does not yield while connections are pending

    def _admit(self, accepted: socket.socket, peer: str) -> None:
        if not self._quota.take(peer) and not self._make_room(peer):
            accepted.close()
            return
        protocol = self._server()
        connection = self._by_protocol[protocol] = Connection(protocol, self._forget)
        self._peers[connection] = peer
        connection.handshake = asyncio.create_task(self._shake_hands(accepted, connection))

    def _make_room(self, peer: str) -> bool:
        """Close an idle connection for a peer without one, and count the new one; False if none can be closed."""
        closable = [connection for connection in self._peers if not connection.is_authenticated]
        idle = (connection for connection in closable if connection.is_idle)
        unread = (connection for connection in closable if connection.is_unread)
        if self._quota.used_by(peer) or (chosen := next(chain(idle, unread), None)) is None:
            return False
        chosen.abort()
        self._release(chosen)
        return self._quota.take(peer)

    async def _shake_hands(self, accepted: socket.socket, connection: Connection) -> None:
        timeouts: dict[str, Any] = {}
        if self._tls is not None:
            timeouts = {"ssl_handshake_timeout": HANDSHAKE_SECONDS, "ssl_shutdown_timeout": WRITING_SECONDS}
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=self._tls, **timeouts
            )
        except OSError as error:
            log.debug("handshake failed", extra={"because": error, "peer": self._peers.get(connection)})
        finally:
            connection.handshake = None
            if not connection.was_made:
                self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        self._by_protocol.pop(connection.protocol, None)
        self._release(connection)

    def _release(self, connection: Connection) -> None:
        peer = self._peers.pop(connection, None)
        if peer is not None:
            self._quota.give_back(peer)

    def _make_request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        request = web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop())
        connection = request[CONNECTION] = self._by_protocol[protocol]
        connection.begin(request)
        return request

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._by_protocol[request.protocol]
        try:
            with response_scope(request):
                response = await self._handle(request)
                try:
                    return await write_response(request, response)
                except TimeoutError:
                    connection.abort()
                    return response
        finally:
            connection.finish()
            if connection in self._peers:  # move it to the end: it is the least idle one
                self._peers[connection] = self._peers.pop(connection)


def _listen(address: str, port: int) -> socket.socket:
    if address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=BACKLOG)
    try:
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_IPV6:
            raise
        return socket.create_server(("", port), backlog=BACKLOG)  # a node without IPv6
