# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may be connected: a bounded number, shared fairly by peers. What is asked on a connection is server's.

A connection costs memory and a descriptor before anybody has said who it is; whoever reaches the port can open them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from controlplane.virt_api.fair import Shares

CONNECTIONS = 2048
"""An API server opens one for each request that it has under way, at most some hundreds."""

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listener(web.Server):
    """Makes a protocol per connection, and ends the connections that are too many."""

    def __init__(self, handle: Handle, connections: int = CONNECTIONS) -> None:
        # A review is never compressed; what is, may be a thousand times as long as what was sent.
        super().__init__(handle, access_log=None, auto_decompress=False)
        self._room = Shares(connections)
        self._peers: dict[RequestHandler, str] = {}

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        peer = str((transport.get_extra_info("peername") or ("",))[0])
        if self._room.take(peer, 1):
            self._peers[handler] = peer
        else:
            transport.abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        peer = self._peers.pop(handler, None)
        if peer is not None:
            self._room.give_back(peer, 1)
