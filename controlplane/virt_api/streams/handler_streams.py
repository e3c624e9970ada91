# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The far end of a console or a screen: a WebSocket to the guest's virt-handler.

A compromised node may send anything: messages are limited, and of an end only known codes and a sanitized sentence
reach the client.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress

import aiohttp
from aiohttp import WSMsgType
from kubevirt_api.close_codes import ENDED, LOST, MOVED, REPLACED, TAKEN_OVER, TOO_SLOW

from controlplane.api.objects.pod import sanitize
from controlplane.http_server.websocket import CLOSE_SECONDS, HEARTBEAT_SECONDS, MESSAGE_LIMIT_BYTES, is_closed_in_time
from controlplane.links import streams as link
from controlplane.links.handler import LinkError, NotDone, server_name
from controlplane.links.node.messages import GuestDevice
from controlplane.links.relay import Close, Pauses
from controlplane.links.streams import OpenStream
from controlplane.virt_api.streams.preconditions import StreamRefusedError
from controlplane.virt_api.subresources.handler_client import CONNECT_SECONDS, HandlerClient, NotSentError

_STATUS_CODES = {"absent": 404, "refused": 400, "busy": 503, "lost": 500, "overdue": 500}
_CLOSE_CODES = frozenset({ENDED, LOST, TAKEN_OVER, MOVED, TOO_SLOW, REPLACED})


class HandlerStream:
    """An open stream to a virt-handler."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse, device: GuestDevice) -> None:
        self.stall_seconds = link.STALL_SECONDS[device]
        self.input_seconds = link.INPUT_SECONDS
        self._websocket = websocket
        self._pauses = Pauses()

    async def receive(self) -> bytes | Close:
        while True:
            message = await self._websocket.receive()
            match message.type:
                case WSMsgType.BINARY:
                    data: bytes = message.data
                    return data
                case WSMsgType.PING:
                    with suppress(ConnectionError):
                        await self._websocket.pong(message.data)
                case WSMsgType.TEXT | WSMsgType.PONG:
                    pass
                case _:
                    code, reason = self._websocket.close_code, sanitize(str(message.extra or ""))
                    if code in _CLOSE_CODES:
                        return Close(code, reason or "its virt-handler gives no reason")
                    return Close(LOST, "the connection to the guest's virt-handler broke")
            await self._pauses.next()

    async def send(self, data: bytes) -> None:
        with suppress(ConnectionError):
            await self._websocket.send_bytes(data)

    async def close(self) -> None:
        await _close(self._websocket)


async def open_handler_stream(handlers: HandlerClient, opening: OpenStream) -> HandlerStream:
    """Open a device of a guest. Raises StreamRefusedError, ApiError."""
    node = opening.guest.node
    try:
        endpoint, context = await handlers.find(node)
    except NotSentError as error:
        raise StreamRefusedError(503, str(error)) from error
    try:
        async with AsyncExitStack() as undo, asyncio.timeout(CONNECT_SECONDS + link.OPEN_SECONDS):
            websocket = await handlers.session.ws_connect(
                endpoint.url(link.PATH),
                ssl=context,
                server_hostname=server_name(node),
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                max_msg_size=MESSAGE_LIMIT_BYTES,
                heartbeat=HEARTBEAT_SECONDS,  # a node without power closes nothing
                autoping=False,
            )
            undo.push_async_callback(_close, websocket)
            await websocket.send_str(link.encode(opening))
            answer = link.read_answer(await websocket.receive_str())
            if isinstance(answer, NotDone):
                text = sanitize(answer.text) or "its virt-handler gives no reason"
                raise StreamRefusedError(_STATUS_CODES[answer.kind], text)
            undo.pop_all()
            return HandlerStream(websocket, opening.device)
    except (aiohttp.ClientError, OSError, TimeoutError, TypeError, LinkError) as error:
        text = f"virt-handler of node {node} did not open the stream: {str(error) or 'it does not answer'}"
        raise StreamRefusedError(503, sanitize(text)) from error


async def _close(websocket: aiohttp.ClientWebSocketResponse) -> None:
    """Close within seconds: a virt-handler that reads nothing, or sends forever, cannot delay it."""
    await is_closed_in_time(websocket.close())  # else aiohttp has closed the connection
