# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections over real sockets: one address cannot have them all, whatever it says or does not say."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import ClassVar

import pytest
from aiohttp import web

from controlplane.http_server import connection, listener
from controlplane.http_server.connection import Connection
from controlplane.http_server.listener import Listener
from controlplane.kube.certificates import Subject, issue, make_ca
from controlplane.tls.contexts import load_pair, server_context
from controlplane.virt_api.http.tls import ServingTls
from tests.controlplane.kube.pairs import issue_server

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER = b"you are connected"
POD, OTHER = "127.0.0.2", "127.0.0.1"


async def handle(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=ANSWER)


async def _handle(request: web.BaseRequest) -> web.StreamResponse:
    return await handle(request)  # by its name: a test has another one


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None = None, address: str = "127.0.0.1") -> AsyncIterator[int]:
    """A listener of four connections."""
    one = Listener(_handle, 4, tls)
    try:
        yield await one.listen(address, 0)
    finally:
        await one.close(10)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with listening() as one:
        yield one


@pytest.fixture(scope="module")
def serving() -> ssl.SSLContext:
    now, day = time.time(), timedelta(days=1)
    tls = ServingTls()
    tls.use_pair(issue_server(make_ca("test", now, day), ["localhost"], now, day))
    return tls.listening


@pytest.fixture
async def tls_port(serving: ssl.SSLContext) -> AsyncIterator[int]:
    async with listening(serving) as one:
        yield one


def trusting() -> ssl.SSLContext:
    """Who serves is not what is asked here."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Peer:
    """Somebody with an address and connections."""

    everybody: ClassVar[list[Peer]] = []

    def __init__(self, address: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._port = port
        self._tls = tls
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.everybody.append(self)

    async def connect(self) -> bool:
        """Connect and ask; False when the connection was ended."""
        try:
            stream = await self._open(self._tls)
        except (ConnectionError, ssl.SSLError):
            return False
        return await self._ask(*stream)

    async def ask_again(self) -> bool:
        """Ask on the connection that is there; False when it was ended."""
        ((reader, writer),) = self._streams
        return await self._ask(reader, writer)

    async def say(self, words: bytes = b"") -> None:
        """Connect, without TLS, and say this and no more."""
        _reader, writer = await self._open(None)
        writer.write(words)

    async def held(self) -> int:
        """Count the connections that are not ended, once those that are to be refused have been."""
        await Peer(OTHER, self._port, self._tls).once()  # accepted after all of ours
        return sum(not reader.at_eof() and reader.exception() is None for reader, _writer in self._streams)

    async def once(self) -> None:
        """Be answered, and leave."""
        assert await self.connect()
        await self.leave()

    async def ended(self) -> None:
        """Return when the other side has ended every connection."""
        async with asyncio.timeout(10):
            for reader, _writer in self._streams:
                try:
                    while await reader.read(1000):
                        pass
                except ConnectionError:
                    pass

    async def leave(self) -> None:
        for _reader, writer in self._streams:
            writer.transport.abort()
        self._streams.clear()

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            writer.write(ASK)
            async with asyncio.timeout(10):
                return bool(await reader.readuntil(ANSWER))
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            return False

    async def _open(self, tls: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        stream = await asyncio.open_connection("127.0.0.1", self._port, ssl=tls, local_addr=(self._address, 0))
        self._streams.append(stream)
        return stream


@pytest.fixture(autouse=True)
async def nobody_stays() -> AsyncIterator[None]:
    """Whatever a test that failed has left."""
    yield
    for peer in Peer.everybody:
        await peer.leave()
    Peer.everybody.clear()


async def until_connected(peer: Peer) -> None:
    async with asyncio.timeout(10):
        while not await peer.connect():  # until the ends have arrived
            pass


async def test_one_address_that_holds_all_connections_keeps_nobody_else_out(port: int) -> None:
    pod, other = Peer(POD, port), Peer(OTHER, port)

    assert [await pod.connect() for _unused in range(5)] == [True] * 4 + [False]
    assert [await other.connect() for _unused in range(3)] == [True, True, False]
    assert not await pod.connect()

    await pod.leave()
    await other.leave()


@pytest.mark.parametrize("is_asked", [True, False], ids=["one answer each", "nothing said"])
async def test_many_addresses_that_hold_one_connection_each_keep_no_other_out(port: int, is_asked: bool) -> None:
    """More of them than there are connections: an even share is none. And one has more than its share already."""
    first = Peer(POD, port)
    for _unused in range(4):
        await first.say()
    many = [Peer(f"127.0.0.{10 + number}", port) for number in range(6)]
    for one in many:
        await (one.connect() if is_asked else one.say())

    kubelet = Peer(OTHER, port)
    assert await kubelet.connect()
    assert await kubelet.ask_again()
    assert not await Peer(OTHER, port).connect(), "who has one has no better right to another"

    for one in (kubelet, first, *many):
        await one.leave()


async def test_a_connection_that_makes_room_is_ended(port: int) -> None:
    """It is counted no more: what it held on to would be more than anybody counts on."""
    many = [Peer(f"127.0.0.{10 + number}", port) for number in range(4)]
    for one in many:
        assert await one.connect()
    kubelet = Peer(OTHER, port)
    assert await kubelet.connect()
    await many[0].ended()

    for one in (kubelet, *many):
        await one.leave()


async def test_who_has_proved_who_it_is_makes_no_room() -> None:
    """An API server's idle connection: its next request may be under way."""
    now, day = time.time(), timedelta(days=1)
    authority = make_ca("test", now, day)
    pair = issue_server(authority, ["localhost"], now, day)
    server = server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_OPTIONAL)
    load_pair(server, pair.certificate, pair.key)
    server.load_verify_locations(cadata=authority.certificate.decode())
    proving, client = trusting(), issue(authority, Subject("api-server", "client", ()), now, day)
    load_pair(proving, client.certificate, client.key)
    async with listening(server) as port:
        api_server = Peer(POD, port, proving)
        assert await api_server.connect()
        many = [Peer(f"127.0.0.{10 + number}", port, trusting()) for number in range(6)]
        for one in many:
            assert await one.connect()
        assert await api_server.ask_again()
        for one in (api_server, *many):
            await one.leave()


class Slow:
    """Answers when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self._asked = 0

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._asked += 1
        await self.may_answer.wait()
        return web.Response(body=ANSWER)

    async def asked_by(self, *peers: Peer) -> list[asyncio.Task[bool]]:
        """Return when each of them waits for an answer on one more connection, with how that goes on."""
        waiting = [asyncio.create_task(one.connect()) for one in peers]
        self._asked = 0
        async with asyncio.timeout(10):
            while self._asked < len(peers):  # noqa: ASYNC110 - who is asked tells nobody
                await asyncio.sleep(0)
        return waiting


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    one = Slow()
    monkeypatch.setattr("tests.controlplane.http_server.test_listener.handle", one.answer)
    return one


async def test_who_is_being_answered_makes_no_room(slow: Slow) -> None:
    async with listening() as port:
        many = [Peer(f"127.0.0.{10 + number}", port) for number in range(4)]
        waiting = await slow.asked_by(*many)
        assert not await Peer(OTHER, port).connect()
        slow.may_answer.set()
        assert await asyncio.gather(*waiting) == [True] * 4
        await Peer(OTHER, port).once()
        for one in many:
            await one.leave()


async def test_while_all_are_being_answered_who_has_most_makes_room(slow: Slow) -> None:
    """Few addresses, of which each asks for what takes its time, keep out no probe."""
    async with listening() as port:
        few = [Peer(f"127.0.0.{10 + number}", port) for number in range(3)]
        waiting = await slow.asked_by(few[0], few[1], few[1], few[2])
        kubelet = await slow.asked_by(Peer(OTHER, port))
        assert not await waiting[2], "the last of who has most"
        slow.may_answer.set()
        assert await asyncio.gather(*kubelet, *waiting) == [True, True, True, False, True]
        for one in few:
            await one.leave()


async def test_who_is_being_refused_and_does_not_read_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted no more, so it is to be no more: what it held would be more than anybody counts on."""
    monkeypatch.setattr(connection, "LAST_WORDS_SECONDS", 60.0)
    monkeypatch.setattr(connection, "_TOO_LARGE", b"431 " + b"x" * 16 * 1024 * 1024)
    refused, ended = asyncio.Semaphore(0), asyncio.Event()
    refuse, lost = Connection._refuse, Connection.connection_lost

    def note_refused(self: Connection, why: bytes) -> None:
        refuse(self, why)
        refused.release()

    def note_ended(self: Connection, exc: BaseException | None) -> None:
        lost(self, exc)
        ended.set()

    monkeypatch.setattr(Connection, "_refuse", note_refused)
    monkeypatch.setattr(Connection, "connection_lost", note_ended)
    async with listening() as port, asyncio.timeout(10):
        pod = Peer(POD, port)
        for _unused in range(4):
            await pod.say(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000)
            await refused.acquire()
        many = [Peer(f"127.0.0.{10 + number}", port) for number in range(3)]
        for one in many:
            assert await one.connect()
        await ended.wait()
        for one in (pod, *many):
            await one.leave()


async def test_a_connection_that_ended_makes_room(port: int) -> None:
    pod = Peer(POD, port)
    assert [await pod.connect() for _unused in range(4)] == [True] * 4

    await pod.leave()

    await until_connected(pod)
    await pod.leave()


@pytest.mark.parametrize("words", [b"", b"\x16\x03\x01", ASK[:-2]], ids=["nothing", "part of a hello", "no TLS"])
async def test_who_never_ends_the_handshake_is_counted_all_the_same(tls_port: int, words: bytes) -> None:
    pod, other = Peer(POD, tls_port, trusting()), Peer(OTHER, tls_port, trusting())
    for _unused in range(50):
        await pod.say(words)

    assert await pod.held() <= 4
    assert [await other.connect() for _unused in range(2)] == [True, True]

    await pod.leave()
    await other.leave()


async def test_who_says_nothing_without_tls_is_counted_all_the_same(port: int) -> None:
    pod, other = Peer(POD, port), Peer(OTHER, port)
    for _unused in range(50):
        await pod.say()

    assert await pod.held() == 4
    assert [await other.connect() for _unused in range(2)] == [True, True]

    await pod.leave()
    await other.leave()


async def test_a_handshake_that_never_ends_is_ended_and_makes_room(
    tls_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.05)
    pod = Peer(POD, tls_port, trusting())
    for _unused in range(4):
        await pod.say()

    await pod.ended()
    monkeypatch.undo()

    again = Peer(POD, tls_port, trusting())
    for _unused in range(4):
        await until_connected(again)
    await pod.leave()
    await again.leave()


async def test_handshakes_that_fail_make_room(tls_port: int) -> None:
    pod = Peer(POD, tls_port, trusting())
    for _unused in range(4):
        await pod.say(ASK)
    await pod.ended()

    again = Peer(POD, tls_port, trusting())
    for _unused in range(4):
        await until_connected(again)
    await pod.leave()
    await again.leave()


@pytest.mark.parametrize("words", [b"", b"GET / HTTP/1.1\r\nHost:"], ids=["nothing", "half of the headers"])
async def test_who_does_not_end_its_first_request_is_ended(
    port: int, words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "FIRST_REQUEST_SECONDS", 0.05)
    pod = Peer(POD, port)
    for _unused in range(4):
        await pod.say(words)

    await pod.ended()

    await pod.leave()
    await until_connected(pod)
    await pod.leave()


async def test_who_has_asked_is_not_ended_for_having_said_nothing(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "FIRST_REQUEST_SECONDS", 0.2)
    api_server, silent = Peer(OTHER, port), Peer(POD, port)
    assert await api_server.connect()
    await silent.say()

    await silent.ended()  # whose time began later

    assert await api_server.ask_again()
    await api_server.leave()
    await silent.leave()


async def test_who_asks_no_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.05)
    async with listening() as port:
        pod = Peer(POD, port)
        assert await pod.connect()

        await pod.ended()
        await pod.leave()


async def test_a_want_of_descriptors_ends_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSE_SECONDS", 0.01)
    accept, failures = socket.socket.accept, [errno.EMFILE, errno.ENFILE]

    def scarce(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise OSError(failures.pop(), "no descriptor")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    async with listening() as port:
        peer = Peer(OTHER, port)

        async with asyncio.timeout(10):
            assert await peer.connect()
        await peer.leave()
    assert not failures


async def test_few_descriptors_make_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (8, 8))
    async with listening() as port:
        pod = Peer(POD, port)

        assert [await pod.connect() for _unused in range(3)] == [True, True, False]
        await pod.leave()


async def test_no_handshake_outlives_the_listener(serving: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the listener wait for its end."""
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 60.0)
    async with asyncio.timeout(10), listening(serving) as port:
        pod = Peer(POD, port)
        await pod.say()
        await Peer(OTHER, port, trusting()).once()

    await pod.ended()
    await pod.leave()


async def test_every_address_is_listened_on_when_none_is_given() -> None:
    async with listening(address="") as port:
        await Peer(POD, port).once()


async def test_a_port_that_is_taken_is_said(port: int) -> None:
    other = Listener(handle, 4)
    with pytest.raises(OSError, match="in use"):
        await other.listen("127.0.0.1", port)
    await other.close(0)
