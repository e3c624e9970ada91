# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target's end of one migration's tunnel: accepts TLS connections of one peer, for this migration only.

It runs in the copy thread. A client has five seconds for the TLS handshake and five for the first line. Only then this
server connects it to a socket of the launcher. The unauthenticated connections of one host are limited to a sixth of
all, so that no host can keep the source out.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from controlplane.virt_handler.migration.acceptor import Acceptor
from controlplane.virt_handler.migration.byte_copy import TunnelSocket, TunnelSockets, copy_both_ways, secure
from controlplane.virt_handler.migration.handshake import (
    LINE_LIMIT_BYTES,
    MOST,
    Channel,
    HandshakeError,
    MigrationIdentity,
    read,
)

log = logging.getLogger(__name__)

PROOF_SECONDS = 5.0
"""Timeout of the TLS handshake, and of the first line."""
CONNECTIONS = 64
"""Limit of connections at a time, unauthenticated ones included."""
UNAUTHENTICATED = sum(MOST.values())
"""Limit of unauthenticated connections from one address: as many as a source opens. Its CPU may be busy."""

Dial = Callable[[Channel], Awaitable[socket.socket]]
"""Connects to the socket of a channel in the target's launcher. OSError, TimeoutError."""


class TunnelServer:
    """The tunnel's end at the target of one migration."""

    def __init__(self, identity: MigrationIdentity, context: ssl.SSLContext, dial: Dial) -> None:
        self._identity = identity
        self._context = context
        self._dial = dial
        self._acceptor: Acceptor | None = None
        self._open: Counter[Channel] = Counter()
        self._unauthenticated: Counter[str] = Counter()
        self._sockets = TunnelSockets()

    async def open(self, address: str) -> int:
        """Listen on a free port; return it. OSError."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, 0), family=family, backlog=CONNECTIONS)
        port: int = listening.getsockname()[1]
        self._acceptor = Acceptor(listening, self._serve, most=CONNECTIONS)
        return port

    def cut(self) -> None:
        """End the TLS connections, from any thread: the peer can block the copy thread."""
        self._sockets.cut()

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._acceptor is not None:
            await self._acceptor.close()

    async def _serve(self, connection: socket.socket) -> None:
        try:
            host = connection.getpeername()[0]
            if self._unauthenticated[host] < UNAUTHENTICATED:
                await self._admit(connection, host)
        except (HandshakeError, TimeoutError, OSError, ValueError) as error:
            log.warning(
                "rejected a migration connection", extra={"uid": self._identity.migration, "because": str(error)}
            )

    async def _admit(self, connection: socket.socket, host: str) -> None:
        """Authenticate a client, and connect it to its channel. HandshakeError, TimeoutError, OSError, ValueError."""
        client = secure(connection, self._context)
        self._sockets.add(client)
        try:
            self._unauthenticated[host] += 1
            try:
                channel = await self._authenticate(client)
            finally:
                self._unauthenticated -= Counter((host,))
            if self._open[channel] >= MOST[channel]:
                raise HandshakeError(f"it has more connections for {channel} than it needs")
            self._open[channel] += 1
            try:
                await copy_both_ways(client, TunnelSocket(await self._dial(channel)))
            finally:
                self._open[channel] -= 1
        finally:
            self._sockets.discard(client)
            client.close()

    async def _authenticate(self, client: TunnelSocket) -> Channel:
        """Authenticate the client as the source, and read its channel. Errors as for `_admit`."""
        async with asyncio.timeout(PROOF_SECONDS):
            await client.prove()
        async with asyncio.timeout(PROOF_SECONDS):
            return read(await client.read_line(LINE_LIMIT_BYTES), self._identity)


async def dial_socket(path: str) -> socket.socket:
    """Connect to a socket by a path that names its inode. OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, path)
    except BaseException:
        with suppress(OSError):
            connection.close()
        raise
    return connection
