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
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from controlplane.http_server.connection import MOST_HEAD_BYTES, MOST_PROVEN_HEAD_BYTES
from controlplane.http_server.listener import Handle, Listener
from controlplane.kube.certificates import make_ca
from controlplane.virt_api.http.tls import ServingTls
from tests.controlplane.kube.pairs import issue_server
from tests.controlplane.virt_api.served import CLIENTS, a_client_pair

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
IN_CHUNKS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


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

    def get_write_buffer_size(self) -> int:
        return 0

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


@dataclass(frozen=True)
class Proven:
    """A listener's TLS, and that of two clients: one proves itself, one does not."""

    serving: ssl.SSLContext
    client: ssl.SSLContext
    anybody: ssl.SSLContext


@pytest.fixture
def proven(tmp_path: Path) -> Proven:
    now, day = time.time(), timedelta(days=1)
    authority = make_ca("test", now, day)
    serving = ServingTls(authority.certificate)
    serving.use_pair(issue_server(authority, ["localhost"], now, day))
    client, anybody = (ssl.create_default_context(cadata=authority.certificate.decode()) for _unused in range(2))
    for one in (client, anybody):
        one.check_hostname = False
    pair = a_client_pair(authority, usage=CLIENTS)
    (tmp_path / "pair.pem").write_bytes(pair.certificate + pair.key)
    client.load_cert_chain(tmp_path / "pair.pem")
    return Proven(serving.listening, client, anybody)


async def test_a_peer_that_has_proved_who_it_is_may_send_chunks(proven: Proven) -> None:
    """The front proxy, of a user who did not say how long a body is."""
    async with listening(proven.serving) as port:
        assert (await answer(port, IN_CHUNKS, tls=proven.client)).endswith(b"it said x")
        assert (await answer(port, IN_CHUNKS, tls=proven.anybody)).startswith(b"HTTP/1.1 411 ")


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


def a_head(size: int, first: bytes = b"GET / HTTP/1.1") -> bytes:
    """A whole head of so many bytes, in fields that are each short enough."""
    start = first + b"\r\nHost: x\r\n"
    left = size - len(start) - 2
    fields, last = divmod(left, 4000)
    lines = [b"X-%02d: %s\r\n" % (number, b"y" * (4000 - 8)) for number in range(fields - 1)]
    lines.append(b"X-End: %s\r\n" % (b"y" * (4000 + last - 9)))
    return start + b"".join(lines) + b"\r\n"


class Quick:
    """One connection without sockets, and what it answers."""

    def __init__(self, handle: Handle = repeat) -> None:
        self.listener = Listener(handle, 4)
        self.wire = Wire()
        self.connection = self.listener()
        self.connection.connection_made(self.wire)

    async def say(self, *pieces: bytes) -> None:
        for one in pieces:
            self.connection.data_received(one)
        await self.settled()

    async def settled(self) -> None:
        for _unused in range(20):
            await asyncio.sleep(0)

    @property
    def is_refused(self) -> bool:
        return self.wire.said.endswith(TOO_LARGE) and self.wire.is_closed

    @property
    def answers(self) -> int:
        return self.wire.said.count(b"HTTP/1.1 200 OK")

    def end(self) -> None:
        self.connection.connection_lost(None)


@pytest.fixture
async def quick() -> AsyncIterator[Quick]:
    made = Quick()
    yield made
    made.end()


@pytest.mark.parametrize("packet", [MOST_HEAD_BYTES + 1, 1000, 7], ids=["at once", "in packets", "in crumbs"])
async def test_a_head_that_never_ends_is_not_held(quick: Quick, packet: int) -> None:
    """A hundred headers of 8000 bytes on each of 512 connections were a gigabyte."""
    said = a_head(MOST_HEAD_BYTES + 1)
    await quick.say(*(said[at : at + packet] for at in range(0, len(said), packet)))
    assert quick.is_refused
    assert not quick.answers


async def test_empty_lines_before_a_request_are_of_its_head(quick: Quick) -> None:
    await quick.say(b"\r\n" * (MOST_HEAD_BYTES // 2 + 1))
    assert quick.is_refused


async def test_each_head_is_counted_from_its_beginning(quick: Quick) -> None:
    for number in range(1, 6):
        await quick.say(a_head(MOST_HEAD_BYTES))
        assert quick.answers == number
    assert not quick.wire.is_closed


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5])
async def test_the_end_of_a_head_may_be_cut_in_two(quick: Quick, cut: int) -> None:
    """What follows in the same packet is a body all the same."""
    said, body = a_head(MOST_HEAD_BYTES, b"POST / HTTP/1.1\r\nContent-Length: 20000"), b"x" * 20000
    for number in range(1, 4):
        await quick.say(said[:-cut], said[-cut:] + body)
        assert quick.answers == number


async def test_a_body_is_none_of_the_head_whatever_is_in_it(quick: Quick) -> None:
    body = b"\r\n\r\nGET / HTTP/1.1\r\n" * 10_000
    said = a_head(5000, b"POST / HTTP/1.1\r\nContent-Length: %d" % len(body)) + body
    for number in range(1, 4):
        await quick.say(*(said[at : at + 50_000] for at in range(0, len(said), 50_000)))
        assert quick.answers == number
    await quick.say(a_head(MOST_HEAD_BYTES + 1)[:-10])
    await quick.say(b"more than a few bytes")
    assert quick.is_refused


async def test_requests_may_be_sent_ahead_of_their_answers(quick: Quick) -> None:
    await quick.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
    assert quick.answers == 8
    assert not quick.wire.is_closed


async def test_what_is_sent_ahead_of_an_answer_is_bounded_in_all() -> None:
    """Thirty-two heads were kept of each connection, and what followed them."""
    answered = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await answered.wait()
        return web.Response()

    one = Quick(wait)
    await one.say(a_head(5000), a_head(5000), a_head(5000))
    assert not one.wire.is_closed
    await one.say(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n" + b"x" * 1500)
    assert one.is_refused, "nor is the body of a request that waits for others' answers"
    one.end()
    answered.set()
    await one.settled()


@pytest.mark.parametrize(("number", "is_refused"), [(8, False), (9, True)])
async def test_few_requests_are_sent_ahead_of_their_answers_however_short_they_are(
    number: int, is_refused: bool
) -> None:
    """Each takes kilobytes more than its bytes: hundreds of them were held of each connection."""
    answered = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await answered.wait()
        return web.Response()

    one = Quick(wait)
    for _unused in range(number):
        await one.say(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert one.is_refused is is_refused
    one.end()
    answered.set()
    await one.settled()


async def test_what_was_sent_ahead_counts_until_it_is_answered() -> None:
    turns = asyncio.Semaphore(0)

    async def wait(request: web.BaseRequest) -> web.StreamResponse:
        await turns.acquire()
        return web.Response()

    one = Quick(wait)
    await one.say(a_head(7000), a_head(7000))
    turns.release()
    await one.settled()
    await one.say(a_head(7000))
    assert not one.wire.is_closed, "the first is answered and counts no more"
    await one.say(a_head(7000))
    assert one.is_refused
    one.end()
    turns.release()
    turns.release()
    await one.settled()


async def test_nothing_waits_for_the_body_of_who_has_left() -> None:
    """Ten seconds for each, and the connection was counted no more."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    one = Quick(answer)
    await one.say(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx")
    assert one.answers == 1
    assert list(one.listener.connections) == [one.connection]
    one.end()
    await one.settled()
    assert not one.listener.connections


async def test_a_request_of_who_has_left_is_carried_out() -> None:
    """Halfway through is no place to stop."""
    may_go_on, done = asyncio.Event(), []

    async def carry_out(request: web.BaseRequest) -> web.StreamResponse:
        await may_go_on.wait()
        done.append(request.path)
        return web.Response()

    one = Quick(carry_out)
    await one.say(b"GET /it HTTP/1.1\r\nHost: x\r\n\r\n")
    one.end()
    may_go_on.set()
    await one.settled()
    assert done == ["/it"]


async def test_a_proven_peer_hands_on_the_headers_of_users(proven: Proven) -> None:
    """Names of groups and extras may be long. It may say more than others, and not without end either."""
    in_chunks = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked"
    chunks = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    async with listening(proven.serving) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=proven.client)
        for _unused in range(2):
            writer.write(a_head(MOST_PROVEN_HEAD_BYTES, in_chunks) + chunks * 50 + b"0\r\n\r\n")
            async with asyncio.timeout(10):
                assert await reader.readuntil(b"it said " + b"x" * 4096 * 50)
        writer.write(a_head(MOST_PROVEN_HEAD_BYTES + 1)[:-4])
        writer.write(b"more")
        async with asyncio.timeout(10):
            assert await reader.read() == TOO_LARGE
        writer.close()
