# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever a request says of its body, what it does not have as one is bounded: by what the parser itself does.

A CONNECT has no body, whatever length it names: the parser took the next head to be one, and the count took it to be
the body. So each method is tried with each way to say what follows, and what follows never ends.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from aiohttp import web

from controlplane.http_server.connection import MOST_HEAD_BYTES, MOST_PROVEN_HEAD_BYTES
from controlplane.http_server.header_limits import Heads
from controlplane.http_server.listener import Listener

METHODS = (
    *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "SEARCH", "QUERY"),
    *("PURGE", "PRI", "SOURCE", "M-SEARCH", "SETUP", "NONSENSE"),
)
LENGTHS = ("", "Content-Length: 0", "Content-Length: 5", "Content-Length: 1000000000000", "Content-Length: +5")
CODINGS = ("", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip", "Transfer-Encoding: gzip, chunked")
SWITCHES = (
    "",
    "Connection: upgrade\r\nUpgrade: websocket",
    "Connection: upgrade\r\nUpgrade: h2c",
    "Connection: upgrade\r\nUpgrade: TLS/1.0",
    "Upgrade: websocket",
    "Connection: close",
    "Connection: keep-alive, Upgrade\r\nUpgrade: tcp\r\nExpect: 100-continue",
)
VERSIONS = ("1.1", "1.0")
ENDLESS = b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * 8000 + b"\r\n"
FIELD = b"X-A: " + b"a" * 8000 + b"\r\n"
SENT_AT_ONCE = 8 * 1024
MUCH = 256 * 1024
"""Fewer headers than are too many for the parser."""


@dataclass
class Wire(asyncio.Transport):
    """Says whether somebody reads from it."""

    said: bytes = b""
    is_closed: bool = False
    is_paused: bool = False

    def write(self, data: object) -> None:
        self.said += bytes(data)  # type: ignore[call-overload]

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


async def unaccounted(head: bytes, *, is_proven: bool) -> int:
    """Return how much was taken in after a head that nobody has read as its body, until the connection took no more."""
    of_bodies = 0

    async def read(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal of_bodies
        async for chunk in request.content.iter_any():
            of_bodies += len(chunk)
        return web.Response()

    connection, wire = Listener(read, 4)(), Wire()
    connection.connection_made(wire)
    if is_proven:
        connection.is_proven, connection._heads = True, Heads(MOST_PROVEN_HEAD_BYTES)
    connection.data_received(head)
    await settled()
    sent = 0
    rest = ENDLESS + FIELD * (MUCH // len(FIELD))
    while sent < len(rest) and not wire.is_closed:
        connection.data_received(rest[sent : sent + SENT_AT_ONCE])
        sent += SENT_AT_ONCE
        await settled()
    assert not wire.is_paused, "a body that is read is never held up"
    connection.connection_lost(None)
    await settled()
    return sent - of_bodies


async def settled() -> None:
    for _unused in range(12):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_proven", [False, True], ids=["anybody", "proven"])
@pytest.mark.parametrize("method", METHODS)
async def test_what_is_no_body_is_bounded(method: str, is_proven: bool) -> None:
    """A thousand of them held a gigabyte and more, from one address."""
    most = MOST_PROVEN_HEAD_BYTES if is_proven else MOST_HEAD_BYTES
    unbounded = []
    for version in VERSIONS:
        for fields in ((a, b, c) for a in LENGTHS for b in CODINGS for c in SWITCHES):
            target = "x:1" if method == "CONNECT" else "/"
            said = "\r\n".join(one for one in (f"{method} {target} HTTP/{version}", "Host: x", *fields) if one)
            left = await unaccounted(said.encode() + b"\r\n\r\n", is_proven=is_proven)
            if left > 2 * most:
                unbounded.append((version, *fields, left))
    assert not unbounded


async def test_little_is_taken_in_of_a_body_that_nobody_reads_yet() -> None:
    """Half a megabyte was, of each connection whose peer read no answers: in nobody's count."""
    never = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    connection, wire = Listener(wait, 4)(), Wire()
    connection.connection_made(wire)
    connection.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n")
    taken = 0
    while not wire.is_paused and taken < 900_000:
        connection.data_received(b"x" * SENT_AT_ONCE)
        taken += SENT_AT_ONCE
    assert taken <= 128 * 1024
    connection.connection_lost(None)
    never.set()
    await settled()


@pytest.mark.parametrize(
    "head",
    [
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nhi",
    ],
    ids=["CONNECT with a length", "CONNECT", "Upgrade", "Upgrade after a body"],
)
async def test_a_request_for_another_protocol_is_the_last_of_its_connection(head: bytes) -> None:
    """It is answered, as whoever routes likes: nothing of ours speaks another one. What follows is not kept."""
    heard: list[str] = []

    async def hear(request: web.BaseRequest) -> web.StreamResponse:
        await request.read()
        heard.append(request.method)
        return web.Response()

    connection, wire = Listener(hear, 4)(), Wire()
    connection.connection_made(wire)
    connection.data_received(head + b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n" + FIELD * 3)
    connection.data_received(b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + FIELD * 3)
    assert connection._message_tail == b""
    await settled()
    assert heard == [head.decode().split()[0]]
    assert wire.said.startswith(b"HTTP/1.1 200 OK")
    assert wire.said.count(b"HTTP/1.1 ") == 1, "nor is anything else said of it, least of all within the answer"
    assert wire.is_closed
    connection.connection_lost(None)
