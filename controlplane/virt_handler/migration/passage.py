# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the source of one migration opens: sockets that QEMU and libvirt dial here, each carried to the target.

It runs in the lane. QEMU's are in its launcher, made by virt-node; libvirt's control connection is virt-handler's own,
and in a directory that no launcher sees.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from controlplane.virt_handler.migration.binding import MOST, Binding, Channel, Greeting, render
from controlplane.virt_handler.migration.pump import BUFFER_BYTES, pump

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Target:
    """Where the target's virt-handler listens for this migration, and how it is proven."""

    host: str
    port: int
    context: ssl.SSLContext
    name: str
    """In its certificate."""


class Passage:
    """Of one migration."""

    def __init__(self, binding: Binding, target: Target, directory: str) -> None:
        """directory: where virt-handler may make files that nobody else sees."""
        self._binding = binding
        self._target = target
        self._home = directory
        self._own = ""
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: Counter[Channel] = Counter()

    async def open(self, listening: dict[Channel, socket.socket]) -> str:
        """Serve sockets that listen in the launcher, by channel, and one of our own; return that one's path. OSError.

        They are closed in the end, whatever comes of it.
        """
        try:
            path = self._own = f"{self._home}/{uuid4().hex}.sock"
            own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            listening = {**listening, "control": own}
            own.bind(path)
            for channel, one in listening.items():
                await self._serve(channel, one)
        except BaseException:
            for one in listening.values():
                one.close()
            await self.close()
            raise
        return path

    async def close(self) -> None:
        """Listen no more, and end what is connected."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._own:
            with suppress(OSError):
                os.unlink(self._own)

    async def _serve(self, channel: Channel, listening: socket.socket) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._carry(channel, reader, writer)

        listening.setblocking(False)
        # start_unix_server would look for the socket by its name, which is the launcher's.
        self._servers.append(
            await asyncio.start_server(connected, sock=listening, limit=BUFFER_BYTES, backlog=MOST[channel])
        )

    async def _carry(self, channel: Channel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self._open[channel] >= MOST[channel]:
            writer.close()
            return
        self._tasks.add(task)
        self._open[channel] += 1
        try:
            there = await self._call()
            there[1].write(render(Greeting(self._binding, channel)))
            await pump((reader, writer), there)
        except (OSError, TimeoutError) as error:
            log.warning("a migration's connection broke", extra={"uid": self._binding.migration, "because": str(error)})
        finally:
            self._open[channel] -= 1
            self._tasks.discard(task)
            writer.close()

    async def _call(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Reach the target's virt-handler, and know that it is. OSError, TimeoutError."""
        target = self._target
        async with asyncio.timeout(2 * CONNECT_SECONDS):
            return await asyncio.open_connection(
                target.host,
                target.port,
                ssl=target.context,
                server_hostname=target.name,
                ssl_handshake_timeout=CONNECT_SECONDS,
                limit=BUFFER_BYTES,
            )
