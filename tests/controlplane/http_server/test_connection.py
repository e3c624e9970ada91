# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of one connection: header sizes, bodies, pipelined requests. On real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from controlplane.http_server.connection import MAX_HEADER_BYTES
from controlplane.http_server.listener import Handle, Listener

HEADER = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
FIELD = b"X-A: " + b"a" * 4000 + b"\r\n"
READ_BYTES = 256 * 1024
"""The size of one read of asyncio."""
MUCH = 64 * 1024 * 1024
"""More than the kernel buffers for a connection."""


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b"body: " + await request.read())


@asynccontextmanager
async def listening(handle: Handle = echo) -> AsyncIterator[int]:
    server = Listener(handle, 4)
    try:
        yield await server.listen("127.0.0.1", 0)
    finally:
        await server.close(0.1)


async def exchange(port: int, data: bytes) -> bytes:
    """Send the data and return everything that the server sends until the connection ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def send_until_closed(port: int, data: bytes, piece: bytes, limit: int) -> int:
    """Send the data and then pieces until the connection ends or the limit is reached. Return the bytes in pieces."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    sent = 0
    try:
        while sent < limit and not reader.at_eof() and reader.exception() is None:
            writer.write(piece)
            sent += len(piece)
            await writer.drain()
            await asyncio.sleep(0)
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()
    return sent


async def test_headers_over_the_limit_close_the_connection() -> None:
    """aiohttp alone would buffer a megabyte for each connection."""
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEADER)
        for _unused in range(MAX_HEADER_BYTES // len(FIELD) + 1):
            writer.write(FIELD)
            await asyncio.sleep(0.001)
        writer.write(FIELD)
        async with asyncio.timeout(10):
            with suppress(ConnectionResetError):
                assert await reader.read() == b"", "closed without a response"
        writer.close()


async def test_the_header_limit_applies_to_each_request_separately() -> None:
    fields = FIELD * (MAX_HEADER_BYTES // len(FIELD) - 1)
    async with listening() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _unused in range(3):
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
            async with asyncio.timeout(10):
                await reader.readuntil(b"body: ")
        writer.close()


async def test_pipelined_requests_are_limited() -> None:
    never = asyncio.Event()

    async def wait(_request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with listening(wait) as port:
        sent = await send_until_closed(port, GET, GET[:-2] + FIELD + b"\r\n", 64 * READ_BYTES)
    assert sent < 32 * READ_BYTES


async def test_an_unread_body_is_not_buffered() -> None:
    never = asyncio.Event()

    async def wait(_request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    async with listening(wait) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEADER + b"Content-Length: 100000000\r\n\r\n")
        sent = 0
        try:
            async with asyncio.timeout(0.5):
                while sent < MUCH:
                    writer.write(b"x" * READ_BYTES)
                    await writer.drain()
                    sent += READ_BYTES
        except TimeoutError:
            pass
        assert sent < MUCH
        assert not reader.at_eof(), "the connection stays open"
        writer.transport.abort()


async def test_a_malformed_request_is_answered_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise a peer could fill the node's logs."""
    async with listening() as port:
        assert b" 400 Bad Request" in await exchange(port, b"GET / HTTP/1.1\r\nno header\r\n\r\n")
    assert not caplog.records


async def test_an_internal_error_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_request: web.BaseRequest) -> web.StreamResponse:
        raise ZeroDivisionError

    async with listening(fail) as port:
        assert (await exchange(port, HEADER + b"\r\n")).startswith(b"HTTP/1.1 500 ")
    assert "ZeroDivisionError" in caplog.text


async def test_a_request_is_completed_after_its_peer_disconnects() -> None:
    started, may_go_on, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def carry_out(_request: web.BaseRequest) -> web.StreamResponse:
        started.set()
        await may_go_on.wait()
        done.set()
        return web.Response()

    async with listening(carry_out) as port, asyncio.timeout(10):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET)
        await started.wait()
        writer.transport.abort()
        await asyncio.sleep(0.01)
        may_go_on.set()
        await done.wait()


@pytest.mark.parametrize(
    "request_header",
    [
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n",
    ],
    ids=["CONNECT", "Upgrade"],
)
async def test_protocol_switches_are_ignored(request_header: bytes) -> None:
    """The data that follows is not parsed as requests, and little of it is buffered."""
    paths: list[str] = []

    async def note(request: web.BaseRequest) -> web.StreamResponse:
        paths.append(request.method)
        return web.Response()

    async with listening(note) as port:
        await send_until_closed(port, request_header + b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", FIELD, 2 * READ_BYTES)
    assert paths == [request_header.split()[0].decode()]
