# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepts WebSockets, and ends those whose peer is gone or does not read.

Pings are messages like others: aiohttp would answer any number of them without a pause. The reader answers them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, TypeVar

from aiohttp import web

from controlplane.http_server.connection import CONNECTION, Connection

MESSAGE_LIMIT_BYTES = 256 * 1024
"""Of one message. Clients send what they read at once, 32 KiB or less."""
HEARTBEAT_SECONDS = 60.0
"""The peer gets a ping this often, and has half of this time to answer it."""
CLOSE_SECONDS = 2.0
"""How long to wait until the peer has read what was sent, and then for its close frame."""
T = TypeVar("T")
_CONNECTION = web.ResponseKey("connection", Connection)
logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)  # it warns of each client that names other subprotocols


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
        autoping=False,
        compress=False,  # a compressed message could expand a thousandfold
    )
    await websocket.prepare(request)
    websocket[_CONNECTION] = request[CONNECTION]
    request[CONNECTION].upgrade()
    return websocket


def is_gone(websocket: web.WebSocketResponse) -> bool:
    """Tell whether the peer has ended the connection, even if nothing was read or written since."""
    return websocket[_CONNECTION].lost.is_set()


async def while_connected(request: web.BaseRequest, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work, which is cancelled when the peer goes. Raises ConnectionResetError then."""
    task, lost = asyncio.ensure_future(work), asyncio.ensure_future(request[CONNECTION].lost.wait())
    try:
        await asyncio.wait({task, lost}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ConnectionResetError("the client is gone")
        return task.result()
    finally:
        lost.cancel()
        task.cancel()
        await asyncio.wait({task, lost})


async def close_websocket(websocket: web.WebSocketResponse, code: int, reason: bytes) -> None:
    """Say why the connection ends, and end it: within seconds, even if the peer reads nothing. It may have ended."""
    if not await is_closed_in_time(websocket.close(code=code, message=reason)):
        websocket[_CONNECTION].abort()


async def is_closed_in_time(closing: Awaitable[object]) -> bool:
    """Wait for aiohttp to close a WebSocket. False when the peer does not read the close frame."""
    try:
        async with asyncio.timeout(2 * CLOSE_SECONDS):
            await closing
    except TimeoutError:
        return False
    except asyncio.CancelledError:
        # If a message before was given up, aiohttp cannot wait either. It has begun to close, which TLS bounds.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
    return True
