# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one connection can cost whoever reads from it, over real sockets."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from controlplane.kube.certificates import make_authority
from controlplane.listener import Listener
from controlplane.virt_api.tls import ServingTls
from tests.controlplane.kube.pairs import issue_server
from tests.controlplane.virt_api.served import CLIENTS, a_client_pair

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
IN_CHUNKS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"


async def repeat(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=b"it said " + await request.read())


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    one = Listener(repeat, 4, tls)
    try:
        yield await one.listen("127.0.0.1", 0)
    finally:
        await one.close(10)


class Wire(asyncio.Transport):
    """A connection without sockets: packets are those that they are."""

    def __init__(self) -> None:
        super().__init__()
        self.said = b""
        self.is_closed = False

    def write(self, data: object) -> None:
        self.said += bytes(data)  # type: ignore[call-overload]

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


async def answer(port: int, said: bytes, tls: ssl.SSLContext | None = None) -> bytes:
    """Return all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        writer.write(said)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [
        (IN_CHUNKS,),
        (IN_CHUNKS.replace(b"Transfer-E", b"tRANSFER-e"),),
        (IN_CHUNKS.replace(b"Transfer-Encoding: chunked", b"Transfer-Encoding:chunked"),),
        (IN_CHUNKS[:60], IN_CHUNKS[60:]),
        tuple(IN_CHUNKS[one : one + 1] for one in range(len(IN_CHUNKS))),
    ],
    ids=["as usual", "in other letters", "without a space", "in two packets", "letter by letter"],
)
async def test_a_body_in_chunks_of_somebody_who_has_proved_nothing_is_not_read(sent: tuple[bytes, ...]) -> None:
    connection, wire = Listener(repeat, 4)(), Wire()
    connection.connection_made(wire)
    for one in sent:
        connection.data_received(one)
    assert wire.said == b"HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    assert wire.is_closed
    connection.connection_lost(None)


async def test_of_somebody_who_was_refused_nothing_more_is_heard() -> None:
    """What he sent on may be there before the connection has ended."""
    heard: list[str] = []

    async def hear(request: web.BaseRequest) -> web.StreamResponse:
        heard.append(request.path)
        return web.Response()

    connection = Listener(hear, 4)()
    connection.connection_made(Wire())
    connection.data_received(IN_CHUNKS)
    connection.data_received(HEAD + b"Content-Length: 1\r\n\r\ny")
    for _unused in range(10):
        await asyncio.sleep(0)
    assert heard == []
    connection.connection_lost(None)


async def test_chunks_that_never_end_keep_nobody_waiting() -> None:
    """A megabyte of them in a second was all of a processor, and a probe waited for five."""
    async with listening() as port:
        floods = []
        for _unused in range(3):
            _unused_reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 300_000)
            floods.append(writer)
        began = time.process_time()
        assert (await answer(port, HEAD + b"Content-Length: 1\r\n\r\ny")).endswith(b"it said y")
        assert time.process_time() - began < 1.0
        for writer in floods:
            writer.transport.abort()


async def test_a_body_of_a_length_is_read_whatever_words_are_in_it() -> None:
    said = b'{"a": "Transfer-Encoding: chunked",\r\n "b": 1}'
    async with listening() as port:
        whole = await answer(port, HEAD + b"Content-Length: %d\r\n\r\n" % len(said) + said)
    assert whole.endswith(b"it said " + said)


async def test_a_peer_that_has_proved_who_it_is_may_send_chunks(tmp_path: Path) -> None:
    """The front proxy, of a user who did not say how long a body is."""
    now, day = time.time(), timedelta(days=1)
    authority = make_authority("test", now, day)
    serving = ServingTls(authority.certificate)
    serving.use_pair(issue_server(authority, ["localhost"], now, day))
    proven, anybody = (ssl.create_default_context(cadata=authority.certificate.decode()) for _unused in range(2))
    for one in (proven, anybody):
        one.check_hostname = False
    pair = a_client_pair(authority, usage=CLIENTS)
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    proven.load_cert_chain(tmp_path / "pair.pem")

    async with listening(serving.listening) as port:
        assert (await answer(port, IN_CHUNKS, tls=proven)).endswith(b"it said x")
        assert (await answer(port, IN_CHUNKS, tls=anybody)).startswith(b"HTTP/1.1 411 ")


async def test_nonsense_is_answered_and_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    """A traceback for each was a way to fill a node's logs."""
    async with listening() as port:
        assert b" 400 Bad Request" in await answer(port, b"GET / HTTP/1.1\r\nno header\r\n\r\n")
    assert not caplog.records


async def test_a_fault_of_our_own_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def stumble(request: web.BaseRequest) -> web.StreamResponse:
        raise ZeroDivisionError

    one = Listener(stumble, 4)
    port = await one.listen("127.0.0.1", 0)
    assert (await answer(port, HEAD + b"\r\n")).startswith(b"HTTP/1.1 500 ")
    await one.close(10)
    assert "ZeroDivisionError" in caplog.text
