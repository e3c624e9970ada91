# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepts connections on a listening socket, up to a limit at a time and in total. Closes further connections."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""The pause after accept(2) fails, for example for lack of descriptors."""


class Acceptor:
    """Accepts on one socket in the running event loop. It owns the socket from now on."""

    def __init__(
        self,
        listening: socket.socket,
        serve: Callable[[socket.socket], Awaitable[None]],
        *,
        most: int,
        in_all: float = inf,
    ) -> None:
        """serve: handles one connection's socket. most: limit at a time. in_all: limit in total."""
        self._listening = listening
        self._serve = serve
        self._most = most
        self._remaining = in_all
        self._served: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        self._accepting.cancel()
        await asyncio.gather(self._accepting, return_exceptions=True)
        self._listening.close()
        for task in self._served:
            task.cancel()
        await asyncio.gather(*self._served, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _unused = await loop.sock_accept(self._listening)
            except OSError as error:
                log.warning("cannot accept a migration connection", extra={"because": str(error)})
                await asyncio.sleep(AGAIN_SECONDS)
                continue
            if len(self._served) >= self._most or self._remaining <= 0:
                connection.close()
                continue
            self._remaining -= 1
            task = loop.create_task(self._serve_one(connection))
            self._served.add(task)
            task.add_done_callback(self._served.discard)

    async def _serve_one(self, connection: socket.socket) -> None:
        try:
            await self._serve(connection)
        finally:
            with suppress(OSError):
                connection.close()
