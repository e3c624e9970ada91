# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepts WebSockets, and ends those whose peer is gone. A peer that pings gets its pong from aiohttp."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from controlplane.http_server.connection import CONNECTION

MESSAGE_LIMIT_BYTES = 256 * 1024
"""Of one message. Clients send what they read at once, 32 KiB or less."""
HEARTBEAT_SECONDS = 60.0
"""The peer gets a ping this often, and has half of this time to answer it."""
CLOSE_SECONDS = 2.0
"""How long to wait for the peer's close frame."""


class NotAWebSocketError(Exception):
    """The request does not ask for a WebSocket."""


def check_websocket(request: web.BaseRequest) -> None:
    """Check that a request asks for a WebSocket, before anything is done for it. Raises NotAWebSocketError."""
    if not web.WebSocketResponse().can_prepare(request):
        raise NotAWebSocketError("use a WebSocket: send the headers Connection, Upgrade and Sec-WebSocket-Key")


async def accept_websocket(request: web.BaseRequest, protocols: Sequence[str] = ()) -> web.WebSocketResponse:
    """Switch the connection of a request to a WebSocket. Raises NotAWebSocketError.

    protocols: subprotocols to choose from. A client that names others, or none, gets none.
    """
    check_websocket(request)
    websocket = web.WebSocketResponse(
        protocols=protocols,
        heartbeat=HEARTBEAT_SECONDS,
        timeout=CLOSE_SECONDS,
        max_msg_size=MESSAGE_LIMIT_BYTES,
        compress=False,  # a compressed message could expand a thousandfold
    )
    await websocket.prepare(request)
    request[CONNECTION].upgrade()
    return websocket
