# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listener on real sockets: limits for all connections and for each peer, handshakes, idle connections, shutdown."""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web

from controlplane.http_server import connection, listener
from controlplane.http_server.listener import Listener
from controlplane.tls.certificates import Subject, issue, make_ca
from controlplane.tls.contexts import load_pair, server_context
from controlplane.virt_api.http.tls import ServingTls
from tests.controlplane.http_server.peers import BODY, OTHER, POD, REQUEST, Peer, trusting, until_connected
from tests.controlplane.tls.pairs import issue_server

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


async def answer(_request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=BODY)


@asynccontextmanager
async def listening(
    tls: ssl.SSLContext | None = None, address: str = "127.0.0.1", handle: Handle = answer
) -> AsyncIterator[int]:
    """A listener for four connections, at most three for each peer."""
    server = Listener(handle, 4, tls)
    try:
        yield await server.listen(address, 0)
    finally:
        await server.close(10)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with listening() as number:
        yield number


@pytest.fixture(scope="module")
def serving() -> ssl.SSLContext:
    now, day = time.time(), timedelta(days=1)
    tls = ServingTls()
    tls.use_pair(issue_server(make_ca("test", now, day), ["localhost"], now, day))
    return tls.listening


@pytest.fixture
async def tls_port(serving: ssl.SSLContext) -> AsyncIterator[int]:
    async with listening(serving) as number:
        yield number


@pytest.fixture(autouse=True)
async def abort_peers() -> AsyncIterator[None]:
    yield
    for peer in Peer.peers:
        peer.abort()
    Peer.peers.clear()


async def test_one_peer_cannot_take_all_connections(port: int) -> None:
    pod, other = Peer(POD, port), Peer(OTHER, port)

    assert [await pod.connect() for _unused in range(4)] == [True] * 3 + [False]
    assert await other.connect()
    assert not await pod.connect()


@pytest.mark.parametrize("sends_request", [True, False], ids=["one request each", "nothing sent"])
async def test_a_peer_without_a_connection_gets_one_when_others_are_idle(port: int, sends_request: bool) -> None:
    peers = [Peer(f"127.0.0.{10 + number}", port) for number in range(6)]
    for peer in peers:
        await (peer.connect() if sends_request else peer.send())

    kubelet = Peer(OTHER, port)
    assert await kubelet.connect()
    assert await kubelet.request_again()
    assert not await Peer(OTHER, port).connect(), "a peer with a connection makes no room for another"


async def test_the_longest_idle_connection_is_closed_for_a_new_peer(port: int) -> None:
    peers = [Peer(f"127.0.0.{10 + number}", port) for number in range(4)]
    for peer in peers:
        assert await peer.connect()
    assert await peers[0].request_again()

    assert await Peer(OTHER, port).connect()

    await peers[1].wait_closed()
    assert await peers[0].request_again()


async def test_a_connection_with_a_client_certificate_is_not_closed_for_others() -> None:
    """The next request of an API server may be on its way."""
    now, day = time.time(), timedelta(days=1)
    authority = make_ca("test", now, day)
    pair = issue_server(authority, ["localhost"], now, day)
    server = server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_OPTIONAL)
    load_pair(server, pair.certificate, pair.key)
    server.load_verify_locations(cadata=authority.certificate.decode())
    authenticated, client = trusting(), issue(authority, Subject("api-server", "client", ()), now, day)
    load_pair(authenticated, client.certificate, client.key)
    async with listening(server) as port:
        api_server = Peer(POD, port, authenticated)
        assert await api_server.connect()
        for number in range(6):
            assert await Peer(f"127.0.0.{10 + number}", port, trusting()).connect()
        assert await api_server.request_again()


async def test_a_busy_connection_is_not_closed_for_others() -> None:
    may_answer, requests = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(_request: web.BaseRequest) -> web.StreamResponse:
        requests.release()
        await may_answer.wait()
        return web.Response(body=BODY)

    async with asyncio.timeout(10), listening(handle=wait) as port:
        waiting = [asyncio.create_task(Peer(f"127.0.0.{10 + number}", port).connect()) for number in range(4)]
        for _unused in waiting:
            await requests.acquire()
        assert not await Peer(OTHER, port).connect()
        may_answer.set()
        assert await asyncio.gather(*waiting) == [True] * 4
        assert await Peer(OTHER, port).connect()


@pytest.mark.parametrize("data", [b"", b"\x16\x03\x01", REQUEST[:-2]], ids=["nothing", "part of a hello", "no TLS"])
async def test_an_unfinished_handshake_counts_as_a_connection(tls_port: int, data: bytes) -> None:
    pod, other = Peer(POD, tls_port, trusting()), Peer(OTHER, tls_port, trusting())
    for _unused in range(50):
        await pod.send(data)

    assert await pod.count_open() <= 3
    await until_connected(other)


async def test_a_handshake_times_out(tls_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.05)
    pod = Peer(POD, tls_port, trusting())
    for _unused in range(3):
        await pod.send()

    await pod.wait_closed()
    monkeypatch.undo()

    again = Peer(POD, tls_port, trusting())
    for _unused in range(3):
        await until_connected(again)


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\nHost:"], ids=["nothing", "half of a header"])
async def test_waiting_for_the_first_request_times_out(port: int, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_REQUEST_SECONDS", 0.05)
    pod = Peer(POD, port)
    for _unused in range(3):
        await pod.send(data)

    await pod.wait_closed()

    pod.abort()
    await until_connected(pod)


async def test_the_first_request_ends_its_timeout(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "FIRST_REQUEST_SECONDS", 0.2)
    api_server, silent = Peer(OTHER, port), Peer(POD, port)
    assert await api_server.connect()
    await silent.send()

    await silent.wait_closed()  # its timeout started later than that of api_server

    assert await api_server.request_again()


async def test_an_idle_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.05)
    async with listening() as port:
        pod = Peer(POD, port)
        assert await pod.connect()

        await pod.wait_closed()


async def test_a_lack_of_descriptors_does_not_end_the_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSE_SECONDS", 0.01)
    accept, failures = socket.socket.accept, [errno.EMFILE, errno.ENFILE, errno.ECONNABORTED]

    def fail_first(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise OSError(failures.pop(), "no descriptor")
        return accept(self)

    monkeypatch.setattr(socket.socket, "accept", fail_first)
    async with listening() as port, asyncio.timeout(10):
        assert await Peer(OTHER, port).connect()
    assert not failures


async def test_few_descriptors_allow_few_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (8, 8))
    async with listening() as port:
        assert await Peer(POD, port).connect()
        assert not await Peer(POD, port).connect()


async def test_shutdown_ends_handshakes(serving: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 60.0)
    async with asyncio.timeout(10), listening(serving) as port:
        pod = Peer(POD, port)
        await pod.send()
        assert await Peer(OTHER, port, trusting()).connect()

    await pod.wait_closed()


@pytest.mark.parametrize("number", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
async def test_a_node_without_ipv6_is_served_by_ipv4(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    create = socket.create_server

    def no_ipv6(*arguments: object, **options: object) -> socket.socket:
        if options.get("family") == socket.AF_INET6:
            raise OSError(number, "no IPv6")
        return create(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_server", no_ipv6)
    async with listening(address="") as port:
        assert await Peer(POD, port).connect()
