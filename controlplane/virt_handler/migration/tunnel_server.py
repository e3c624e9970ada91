# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the target of one migration listens with: TLS, one peer, connections of that migration and no others.

It runs in the lane. Whoever connects has five seconds to prove itself and to say what it is of; a launcher's socket is
dialled only then. One host alone has no more than a sixth of the places while it has not done so, and cannot keep the
source out. There is an end to it, whatever anybody does.
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
"""For the handshake, and as long again for the line."""
CONNECTIONS = 64
"""At a time, those included that have proved nothing yet."""
UNPROVEN = sum(MOST.values())
"""Of them from one address: all that the source can have, on a processor that others want as well."""

Dial = Callable[[Channel], Awaitable[socket.socket]]
"""Connect to what listens in the target's launcher. OSError, TimeoutError."""


class TunnelServer:
    """Of one migration."""

    def __init__(self, binding: MigrationIdentity, context: ssl.SSLContext, dial: Dial) -> None:
        self._binding = binding
        self._context = context
        self._dial = dial
        self._reception: Acceptor | None = None
        self._open: Counter[Channel] = Counter()
        self._unproven: Counter[str] = Counter()
        self._ends = TunnelSockets()

    async def open(self, address: str) -> int:
        """Listen on a port of its own; return it. OSError."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, 0), family=family, backlog=CONNECTIONS)
        port: int = listening.getsockname()[1]
        self._reception = Acceptor(listening, self._serve, most=CONNECTIONS)
        return port

    def cut(self) -> None:
        """End what is connected by TLS, from any thread: the lane may be held up by what comes from there."""
        self._ends.cut()

    async def close(self) -> None:
        """Listen no more, and end what is connected."""
        if self._reception is not None:
            await self._reception.close()

    async def _serve(self, connection: socket.socket) -> None:
        try:
            host = connection.getpeername()[0]
            if self._unproven[host] < UNPROVEN:
                await self._let_in(connection, host)
        except (HandshakeError, TimeoutError, OSError, ValueError) as error:
            log.warning("turned away from a migration", extra={"uid": self._binding.migration, "because": str(error)})

    async def _let_in(self, connection: socket.socket, host: str) -> None:
        """Carry what it says. BindingError, TimeoutError, OSError, ValueError."""
        caller = secure(connection, self._context)
        self._ends.add(caller)
        try:
            self._unproven[host] += 1
            try:
                channel = await self._prove(caller)
            finally:
                self._unproven -= Counter((host,))
            if self._open[channel] >= MOST[channel]:
                raise HandshakeError(f"it has more connections for {channel} than it needs")
            self._open[channel] += 1
            try:
                await copy_both_ways(caller, TunnelSocket(await self._dial(channel)))
            finally:
                self._open[channel] -= 1
        finally:
            self._ends.discard(caller)
            caller.close()

    async def _prove(self, caller: TunnelSocket) -> Channel:
        """Have it prove that it is the source, and say what it is of. As `_let_in`."""
        async with asyncio.timeout(PROOF_SECONDS):
            await caller.prove()
        async with asyncio.timeout(PROOF_SECONDS):
            return read(await caller.read_line(LINE_LIMIT_BYTES), self._binding)


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
