# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An answer's way out: written within so long, or its connection ends. What is answered is the caller's.

A transport takes at once whatever it is given, and keeps what the kernel does not take until the peer reads. So an
answer is not done with when it is made: who asks for large ones and reads none has us hold them all.

What is kept besides, for as long as a connection is, is its last response and as much memory for TLS as what was once
written in one piece: so a large one goes in pieces, and its body does not stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack

from aiohttp import hdrs, web

from controlplane.http_server.connection import Connection

WRITING_SECONDS = 10.0
"""From an answer to its last byte's way to the kernel."""
FIRST_LOOK_SECONDS = 0.005
MOST_SECONDS_BETWEEN_LOOKS = 0.5
PIECE_BYTES = 32 * 1024
_UNTIL_WRITTEN = web.RequestKey("until_written", ExitStack)


def until_written(request: web.BaseRequest) -> ExitStack:
    """Return what is closed once the request's answer is written, or will not be: for what it is charged."""
    if _UNTIL_WRITTEN not in request:
        request[_UNTIL_WRITTEN] = ExitStack()
    return request[_UNTIL_WRITTEN]


async def write(connection: Connection, request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """Write an answer, and return what may be kept of it. Who does not read it in time is cut off."""
    kept, pieces = _taken_apart(request, response)
    try:
        async with asyncio.timeout(WRITING_SECONDS):
            try:
                await kept.prepare(request)
                for piece in pieces:
                    await kept.write(piece)
                await kept.write_eof()
            except ConnectionError:
                pass  # the peer has gone, or is refused: then it gets what it has been told until now
            connection.handed_over(until_written(request).close)
            await _written(connection)
    except TimeoutError:
        if connection.wire is not None:
            connection.wire.abort()
    return kept


def _taken_apart(
    request: web.BaseRequest, response: web.StreamResponse
) -> tuple[web.StreamResponse, Iterable[memoryview]]:
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes) or len(body) <= PIECE_BYTES or request.method == hdrs.METH_HEAD:
        return response, ()
    kept = web.StreamResponse(status=response.status, reason=response.reason, headers=response.headers)
    kept.content_length = len(body)
    if response.keep_alive is False:
        kept.force_close()
    return kept, (memoryview(body)[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES))


async def _written(connection: Connection) -> None:
    """Look ever less often: asyncio says that a buffer has emptied only to whom it has paused, and not below TLS."""
    seconds = FIRST_LOOK_SECONDS
    while connection.unwritten:
        await asyncio.sleep(seconds)
        seconds = min(2 * seconds, MOST_SECONDS_BETWEEN_LOOKS)
