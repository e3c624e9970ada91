# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers that nobody reads, over real sockets: held for so long, with what they were charged, and no longer."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace

import pytest
from aiohttp import web

from controlplane.http_server import connection
from controlplane.http_server import response_writer as written
from controlplane.http_server.listener import Listener
from controlplane.http_server.response_writer import until_written
from controlplane.kube.certificates import make_ca
from controlplane.virt_api.http.tls import ServingTls
from tests.controlplane.kube.pairs import issue_server

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LARGE = 16 * 1024 * 1024
"""More than the kernel keeps for a connection."""


@dataclass
class Served:
    """Answers with so many bytes, and knows of how many answers something is held."""

    size: int = LARGE
    held: int = 0
    made: int = 0
    port: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        until_written(request).callback(self._release)
        self.held += 1
        self.made += 1
        self.changed.set()
        return web.Response(body=b"x" * self.size)

    def _release(self) -> None:
        self.held -= 1
        self.changed.set()

    async def until(self, *, made: int, held: int) -> None:
        async with asyncio.timeout(5):
            while (self.made, self.held) != (made, held):
                self.changed.clear()
                await self.changed.wait()


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None) -> AsyncIterator[Served]:
    served = Served()
    one = Listener(served.answer, 4, tls)
    served.port = await one.listen("127.0.0.1", 0)
    try:
        yield served
    finally:
        await one.close(0.1)


@pytest.fixture(params=["plain", "TLS"])
async def served(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    now, day = time.time(), timedelta(days=1)
    tls = ServingTls()
    tls.use_pair(issue_server(make_ca("test", now, day), ["localhost"], now, day))
    async with serving(tls.listening if request.param == "TLS" else None) as one:
        one.is_tls = request.param == "TLS"  # type: ignore[attr-defined]
        yield one


class Deaf:
    """Asks, and reads nothing unless told to."""

    def __init__(self, served: Served) -> None:
        self._tls = served.is_tls  # type: ignore[attr-defined]
        self._port = served.port

    async def ask(self, said: bytes = ASK) -> None:
        one = socket.socket()
        one.setblocking(False)
        await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", self._port))
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        tls = {"ssl": context, "server_hostname": "x"} if self._tls else {}
        self.reader, self.writer = await asyncio.open_connection(sock=one, limit=1024, **tls)  # type: ignore[arg-type]
        self.writer.write(said)

    async def read(self) -> int:
        """Read until the other side ends; return how much that was."""
        size = 0
        try:
            while chunk := await self.reader.read(65536):
                size += len(chunk)
        except (ConnectionError, ssl.SSLError):
            pass
        return size

    def leave(self) -> None:
        self.writer.transport.abort()


@pytest.fixture
async def deaf(served: Served) -> AsyncIterator[Deaf]:
    one = Deaf(served)
    yield one
    one.leave()


async def test_what_an_answer_is_charged_stays_charged_until_it_is_written(served: Served, deaf: Deaf) -> None:
    await deaf.ask()
    await served.until(made=1, held=1)
    reading = asyncio.create_task(deaf.read())
    await served.until(made=1, held=0)
    reading.cancel()


async def test_an_answer_that_is_not_read_ends_its_connection(
    served: Served, deaf: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five hundred of them stayed for as long as their reader liked."""
    monkeypatch.setattr(written, "WRITING_SECONDS", 0.3)
    await deaf.ask()
    await served.until(made=1, held=1)
    await served.until(made=1, held=0)
    assert await deaf.read() < LARGE


async def test_who_reads_slowly_gets_no_longer(served: Served, deaf: Deaf, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes now and then prove nothing."""
    monkeypatch.setattr(written, "WRITING_SECONDS", 0.3)
    await deaf.ask()
    while served.held or not served.made:
        await deaf.reader.read(1)
    assert await deaf.read() < LARGE


async def test_a_peer_that_goes_gives_back_what_its_answer_was_charged(served: Served, deaf: Deaf) -> None:
    await deaf.ask()
    await served.until(made=1, held=1)
    deaf.leave()
    await served.until(made=1, held=0)


async def test_answers_come_one_after_another(served: Served, deaf: Deaf) -> None:
    """What is asked ahead is answered when the answer before is written."""
    await deaf.ask(ASK * 3)
    await served.until(made=1, held=1)
    reading = asyncio.create_task(deaf.read())
    await served.until(made=3, held=0)
    reading.cancel()


async def test_what_is_read_at_once_keeps_its_connection(served: Served, deaf: Deaf) -> None:
    served.size = 10
    await deaf.ask()
    for number in range(1, 4):
        await deaf.reader.readuntil(b"x" * 10)
        await served.until(made=number, held=0)
        deaf.writer.write(ASK)


async def test_a_connection_that_is_to_end_does_so_whether_or_not_its_last_words_are_read(
    served: Served, deaf: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not answered by us, but by the parser, goes the same way out."""
    monkeypatch.setattr(connection, "LAST_WORDS_SECONDS", 0.1)
    ended = asyncio.Event()
    lost = connection.Connection.connection_lost

    def note(self: connection.Connection, exc: BaseException | None) -> None:
        lost(self, exc)
        ended.set()

    monkeypatch.setattr(connection.Connection, "connection_lost", note)
    monkeypatch.setattr(connection, "_TOO_LARGE", b"431 " + b"x" * LARGE)
    await deaf.ask(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000)
    async with asyncio.timeout(10):
        await ended.wait()


class Wire(asyncio.Transport):
    """A connection without sockets, whose peer reads everything."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_closed = self.is_aborted = False
        self.pending = 0

    def write(self, data: object) -> None:
        self.written.append(bytes(data))  # type: ignore[call-overload]

    def get_write_buffer_size(self) -> int:
        return self.pending

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True

    def is_closing(self) -> bool:
        return self.is_closed


async def settled() -> None:
    for _unused in range(50):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_last", [False, True], ids=["kept", "the last"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_large_answer_goes_in_pieces_and_its_body_does_not_stay(method: str, is_last: bool) -> None:
    """A connection keeps its last response, and TLS as much memory as was once written in one piece."""
    body = bytes(range(256)) * 2000
    made: list[weakref.ref[web.Response]] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.Response(status=201, body=body, headers={"X-Said": "so"}, content_type="application/json")
        if is_last:
            response.force_close()
        made.append(weakref.ref(response))
        return response

    one, wire = Listener(answer, 4)(), Wire()
    one.connection_made(wire)
    one.data_received(ASK.replace(b"GET", method.encode()))
    await settled()

    head, _end, sent = b"".join(wire.written).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 201 Created\r\n")
    assert {b"X-Said: so", b"Content-Type: application/json", b"Content-Length: 512000"} < set(head.split(b"\r\n"))
    assert sent == (body if method == "GET" else b"")
    assert max(map(len, wire.written)) < 2 * written.PIECE_BYTES
    assert wire.is_closed is is_last
    assert method == "HEAD" or made[0]() is None
    one.connection_lost(None)


@pytest.mark.parametrize("is_below", [False, True], ids=["plain", "below TLS"])
async def test_the_last_bytes_are_waited_for_too(is_below: bool) -> None:
    """asyncio stops a writer at some hundred KiB only; what is encrypted is in another transport."""
    served, wire, below = Served(size=10), Wire(), Wire()
    wire._ssl_protocol = SimpleNamespace(_transport=below)  # type: ignore[attr-defined]
    full = below if is_below else wire
    full.pending = 1
    one = Listener(served.answer, 4)()
    one.connection_made(wire)
    one.data_received(ASK)
    await settled()
    assert (served.made, served.held) == (1, 1)
    full.pending = 0
    await served.until(made=1, held=0)
    one.connection_lost(None)


def a_request(head: int, body: int = 0) -> bytes:
    """With a head of so many bytes."""
    start = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nX: " % body
    return start + b"x" * (head - len(start) - 4) + b"\r\n\r\n" + b"y" * body


class Unread:
    """A connection whose first answer is large, handed over and not read yet."""

    def __init__(self) -> None:
        self.served, self.wire = Served(size=100_000), Wire()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.connection = Listener(self._answer, 4)()
        self.connection.connection_made(self.wire)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await self.served.answer(request)
        await request.read()
        await self.may_answer.wait()
        return response

    async def ask(self, said: bytes = ASK) -> None:
        self.wire.pending = 1
        self.connection.data_received(said)
        await settled()

    @property
    def is_refused(self) -> bool:
        return b"HTTP/1.1 431 " in b"".join(self.wire.written)


@pytest.fixture
async def unread() -> AsyncIterator[Unread]:
    made = Unread()
    await made.ask()
    assert (made.served.made, made.served.held) == (1, 1)
    yield made
    made.may_answer.set()
    made.connection.connection_lost(None)
    await settled()


async def test_what_is_asked_once_an_answer_is_read_is_not_ahead_of_it(unread: Unread) -> None:
    """We look ever less often whether it is written, and its reader knows sooner: it was told 431."""
    for number in range(2, 5):
        unread.wire.pending = 0
        unread.connection.data_received(a_request(7000, 90_000))
        assert unread.served.held == 0
        await unread.served.until(made=number, held=0)
    assert not unread.is_refused


async def test_what_is_asked_while_an_answer_is_not_read_is_ahead_of_it(unread: Unread) -> None:
    """Its body would be held, half a megabyte of each connection, and be in nobody's count."""
    await unread.ask(a_request(7000))
    assert not unread.is_refused
    await unread.ask(a_request(200, 90_000))
    assert unread.is_refused


async def test_a_request_counts_as_answered_once(unread: Unread) -> None:
    """Were it noted twice, the one after it would be held by nobody's count."""
    unread.may_answer.clear()
    unread.wire.pending = 0
    unread.connection.data_received(a_request(7000))
    await unread.served.until(made=2, held=1)
    unread.connection.data_received(a_request(7000))
    assert not unread.is_refused
    unread.connection.data_received(a_request(7000))
    assert unread.is_refused


async def test_what_an_answer_is_charged_stays_charged_though_its_connection_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is still being written: whoever said a word too much had as many answers held as it liked."""
    monkeypatch.setattr(written, "FIRST_LOOK_SECONDS", 0.0)
    unread = Unread()
    await unread.ask()
    await unread.ask(a_request(20_000))
    assert unread.is_refused
    assert unread.served.held == 1
    unread.wire.pending = 0
    await unread.served.until(made=1, held=0)
    unread.connection.connection_lost(None)


async def test_an_answer_that_is_not_read_ends_its_connection_though_that_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(written, "WRITING_SECONDS", 0.05)
    unread = Unread()
    await unread.ask()
    await unread.ask(a_request(20_000))
    assert unread.is_refused
    await unread.served.until(made=1, held=0)
    assert unread.wire.is_aborted
    unread.connection.connection_lost(None)


async def test_the_end_of_who_is_refused_waits_for_nobody(unread: Unread, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time began when all was answered that it had asked before."""
    monkeypatch.setattr(connection, "LAST_WORDS_SECONDS", 0.0)
    unread.may_answer.clear()
    unread.wire.pending = 0
    await unread.ask(a_request(200) + a_request(20_000))
    assert unread.is_refused
    await settled()
    assert unread.wire.is_aborted
