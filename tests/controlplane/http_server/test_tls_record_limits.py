# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What TLS itself can cost: records that say nothing, or a letter. Counted purely, and over real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web

from controlplane.http_server.connection import Connection
from controlplane.http_server.listener import Listener
from controlplane.http_server.tls_record_limits import READ_BYTES, SHORT, Records
from controlplane.kube.certificates import make_ca
from controlplane.virt_api.http.tls import ServingTls
from tests.controlplane.kube.pairs import issue_server

NEW_KEYS, LETTER = 22, 18
"""What follows the header of a record that asks for new keys, or has one byte."""
LONG = 16 * 1024 + 17


def record(size: int) -> bytes:
    return b"\x17\x03\x03" + size.to_bytes(2) + b"\xff" * size


@pytest.mark.parametrize("size", [0, 1, LETTER, NEW_KEYS])
@pytest.mark.parametrize("piece", [1, 3, 7, 10_000])
def test_many_records_that_say_next_to_nothing_are_too_many_however_they_arrive(size: int, piece: int) -> None:
    stream, records = record(size) * 1000, Records()
    taken = [records.take(stream[at : at + piece]) for at in range(0, len(stream), piece)]
    assert taken.index(False) * piece <= 300 * len(record(size))


def test_records_for_new_keys_among_what_is_said_are_too_many() -> None:
    """A long record earns some, however many there were: nobody earns a second of a processor."""
    records = Records()
    assert records.take(record(LONG) * 1000)
    assert not all(records.take(record(NEW_KEYS) * 100 + record(LONG)) for _unused in range(10))


@pytest.mark.parametrize(
    "one", [record(300) + record(17 + 2), record(28 + 17), record(LONG) * 3 + record(17 + 1)],
    ids=["a head and a short body", "a short head", "a long body"],
)  # fmt: skip
def test_requests_are_as_many_as_somebody_likes(one: bytes) -> None:
    records = Records()
    assert all(records.take(one) for _unused in range(3000))


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Listener, int]]:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(text=str(len(await request.read())))

    now, day = time.time(), timedelta(days=1)
    tls = ServingTls()
    tls.use_pair(issue_server(make_ca("test", now, day), ["localhost"], now, day))
    one = Listener(answer, 4, tls.listening)
    try:
        yield one, await one.listen("127.0.0.1", 0)
    finally:
        await one.close(10)


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def a_request(size: int) -> bytes:
    return b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size


@pytest.mark.parametrize(("letters", "is_answered"), [(100, True), (1000, False)])
async def test_who_says_it_letter_by_letter_is_cut_off(letters: int, is_answered: bool) -> None:
    async with listening() as (_unused, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting())
        writer.write(a_request(letters))
        for _letter in range(letters):
            writer.write(b"x")
        try:
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200") is is_answered
        except (ConnectionError, asyncio.IncompleteReadError):
            assert not is_answered
        writer.transport.abort()


async def test_a_large_body_is_read_in_little_memory() -> None:
    """A quarter of a megabyte stayed with each connection, as asyncio reads."""
    async with listening() as (listener, port), asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting())
        writer.write(a_request(1_000_000) + b"x" * 1_000_000)
        assert (await reader.readuntil(b"1000000")).startswith(b"HTTP/1.1 200")
        (connection,) = listener.connections
        assert isinstance(connection, Connection)
        assert len(connection.wire._ssl_protocol._ssl_buffer) == READ_BYTES  # type: ignore[union-attr]
        writer.transport.abort()


async def test_what_comes_with_the_end_of_the_handshake_is_counted_from_its_beginning() -> None:
    """Were a length looked for within a record, anything could be taken for one."""
    loop, came, sent = asyncio.get_running_loop(), ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = trusting().wrap_bio(came, sent)
    async with listening() as (listener, port), asyncio.timeout(10):
        with socket.socket() as one:
            one.setblocking(False)
            await loop.sock_connect(one, ("127.0.0.1", port))
            with pytest.raises(ssl.SSLWantReadError):
                tls.do_handshake()
            await loop.sock_sendall(one, sent.read())
            while tls.version() is None or sent.pending == 0:
                came.write(await loop.sock_recv(one, 65536))
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    continue
            finished = sent.read()
            tls.write(a_request(3))
            tls.write(b"x" * 3)
            requested = sent.read()
            await loop.sock_sendall(one, finished + requested[:30])
            while not listener.connections:  # noqa: ASYNC110 - that tells nobody
                await asyncio.sleep(0)
            await loop.sock_sendall(one, requested[30:])
            came.write(await loop.sock_recv(one, 65536))
            assert tls.read().startswith(b"HTTP/1.1 200")
            (connection,) = listener.connections
            assert isinstance(connection, Connection)
            assert connection._intake is not None
            records = connection._intake._records
            assert (records._begun, records._left, records._lacking) == (b"", 0, SHORT - 17 - 3)
