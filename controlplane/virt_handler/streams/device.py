# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a guest's device. A hostile launcher may listen in QEMU's place."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

from controlplane.domain.layout import CONSOLE_BACKLOG_BYTES
from controlplane.links.relay import Close, SocketEnd
from controlplane.links.streams import CHUNK_BYTES, INPUT_SECONDS
from controlplane.process.fd_passing import refuse_descriptors
from controlplane.virt_handler.launchers.console_backlog import without_repetition

CONNECT_SECONDS = 5.0
_PAUSE_SECONDS = 0.05

Explain = Callable[[], Awaitable[Close]]


class Device(SocketEnd):
    """The connection to a guest's device."""

    input_seconds = INPUT_SECONDS

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stall_seconds: float, explain: Explain
    ) -> None:
        """explain: says why QEMU has closed the device."""
        super().__init__(reader, writer, stall_seconds)
        self._explain = explain
        self._first: list[bytes] = []

    async def begin_with(self, backlog: bytes) -> None:
        """Begin with a backlog that was read after the device was connected."""
        early = b""
        with suppress(TimeoutError, OSError):  # nothing has come yet; `receive` reports errors
            async with asyncio.timeout(0):
                early = await self._reader.read(CONSOLE_BACKLOG_BYTES)
        self._first = [part for part in (backlog, without_repetition(backlog, early)) if part]

    async def receive(self) -> bytes | Close:
        return self._first.pop(0) if self._first else await super().receive()

    async def explain_end(self, *, is_reset: bool) -> Close:
        del is_reset  # QEMU ends in either way
        return await self._explain()


async def connect(path: str, stall_seconds: float, explain: Explain) -> Device:
    """Connect to a device's socket. Raises OSError, TimeoutError."""
    async with asyncio.timeout(CONNECT_SECONDS):
        connection = await _dial(path)
    return Device(*await asyncio.open_unix_connection(sock=connection, limit=CHUNK_BYTES), stall_seconds, explain)


async def _dial(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.setblocking(False)
        refuse_descriptors(connection)  # one that the launcher sends could block our close(2), and all streams
        while True:
            try:
                connection.connect(path)
                return connection
            except BlockingIOError:  # its queue is full; asyncio's own function would take this for a connection
                await asyncio.sleep(_PAUSE_SECONDS)
    except BaseException:
        connection.close()
        raise
