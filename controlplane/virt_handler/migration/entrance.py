# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the target of one migration listens with: TLS, one peer, connections of that migration and no others.

It runs in the lane. Whoever connects has five seconds to prove itself and to say what it is of; a launcher's socket is
dialled only then. There is an end to it, whatever anybody does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from controlplane.virt_handler.migration.binding import LINE_LIMIT_BYTES, MOST, Binding, BindingError, Channel, read
from controlplane.virt_handler.migration.pump import BUFFER_BYTES, pump

log = logging.getLogger(__name__)

PROOF_SECONDS = 5.0
"""For the handshake, and as long again for the line."""
CONNECTIONS = 16
"""At a time, those included that have proved nothing yet."""

Dial = Callable[[Channel], Awaitable[socket.socket]]
"""Connect to what listens in the target's launcher. OSError, TimeoutError."""


class Entrance:
    """Of one migration."""

    def __init__(self, binding: Binding, context: ssl.SSLContext, dial: Dial) -> None:
        self._binding = binding
        self._context = context
        self._dial = dial
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: Counter[Channel] = Counter()

    async def open(self, address: str) -> int:
        """Listen on a port of its own; return it. OSError."""
        self._server = await asyncio.start_server(
            self._connected,
            address,
            0,
            ssl=self._context,
            ssl_handshake_timeout=PROOF_SECONDS,
            limit=BUFFER_BYTES,
            backlog=CONNECTIONS,
        )
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Listen no more, and end what is connected."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._tasks) >= CONNECTIONS:
            writer.close()
            return
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (BindingError, TimeoutError, OSError, ValueError, asyncio.IncompleteReadError) as error:
            log.warning("turned away from a migration", extra={"uid": self._binding.migration, "because": str(error)})
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PROOF_SECONDS):
            line = await reader.readuntil(b"\n")
        if len(line) > LINE_LIMIT_BYTES:
            raise BindingError("its first line is too long")
        channel = read(line, self._binding)
        if self._open[channel] >= MOST[channel]:
            raise BindingError(f"it has more connections for {channel} than it needs")
        self._open[channel] += 1
        try:
            dialled = await self._dial(channel)
            there = await asyncio.open_unix_connection(sock=dialled, limit=BUFFER_BYTES)
            await pump((reader, writer), there)
        finally:
            self._open[channel] -= 1


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
