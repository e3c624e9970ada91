# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses: written within a time limit, in pieces. What is reserved for a response is released once it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import ExitStack

from aiohttp import hdrs, web

WRITING_SECONDS = 10.0
"""From the first byte of a response until all of it is on its way to the peer."""
PIECE_BYTES = 32 * 1024
"""A TLS transport accepts a single write of any size, and only the next write waits for the peer to read."""
_SCOPE = web.RequestKey("response_scope", ExitStack)


def response_scope(request: web.BaseRequest) -> ExitStack:
    """Return the stack that is closed once the response is written, or cannot be."""
    if _SCOPE not in request:
        request[_SCOPE] = ExitStack()
    return request[_SCOPE]


async def write_response(request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """Write a response, and return what aiohttp keeps of it. TimeoutError when the peer does not read in time."""
    kept, pieces = _split(request, response)
    async with asyncio.timeout(WRITING_SECONDS):
        try:
            await kept.prepare(request)
            for piece in pieces:
                await kept.write(piece)
            await kept.write_eof()
        except ConnectionError:
            pass  # the peer has closed the connection
    return kept


def _split(request: web.BaseRequest, response: web.StreamResponse) -> tuple[web.StreamResponse, Iterable[memoryview]]:
    """Split a large body into pieces; aiohttp keeps the last response of a connection, and so without its body."""
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes) or len(body) <= PIECE_BYTES or request.method == hdrs.METH_HEAD:
        return response, ()
    kept = web.StreamResponse(status=response.status, reason=response.reason, headers=response.headers)
    kept.content_length = len(body)
    if response.keep_alive is False:
        kept.force_close()
    return kept, (memoryview(body)[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))
