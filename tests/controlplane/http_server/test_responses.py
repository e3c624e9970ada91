# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses that the peer does not read: they and their memory reservations are kept for a limited time."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from aiohttp import web

from controlplane.http_server import responses
from controlplane.http_server.listener import Listener
from controlplane.http_server.responses import response_scope
from controlplane.tls.certificates import make_ca
from controlplane.virt_api.http.tls import ServingTls
from tests.controlplane.http_server.peers import REQUEST, trusting
from tests.controlplane.tls.pairs import issue_server

LARGE = 16 * 1024 * 1024
"""More than the kernel buffers for a connection."""


@dataclass
class Service:
    """Responds with `size` bytes and counts requests and reservations."""

    is_tls: bool
    size: int = LARGE
    port: int = 0
    reserved: int = 0
    requests: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        response_scope(request).callback(self._release)
        self.reserved += 1
        self.requests += 1
        self.changed.set()
        return web.Response(body=b"x" * self.size)

    def _release(self) -> None:
        self.reserved -= 1
        self.changed.set()

    async def until(self, *, requests: int, reserved: int) -> None:
        async with asyncio.timeout(5):
            while (self.requests, self.reserved) != (requests, reserved):
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture(params=["plain", "TLS"])
async def service(request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    now, day = time.time(), timedelta(days=1)
    tls = ServingTls()
    tls.use_pair(issue_server(make_ca("test", now, day), ["localhost"], now, day))
    new = Service(is_tls=request.param == "TLS")
    listener = Listener(new.handle, 4, tls.listening if new.is_tls else None)
    new.port = await listener.listen("127.0.0.1", 0)
    yield new
    await listener.close(0.1)


class Reader:
    """A client that reads only in `read`."""

    def __init__(self, service: Service, address: str = "127.0.0.1") -> None:
        self._tls = trusting() if service.is_tls else None
        self._port, self._address = service.port, address

    async def send(self, data: bytes = REQUEST) -> None:
        connected = socket.socket()
        connected.setblocking(False)
        connected.bind((self._address, 0))
        await asyncio.get_running_loop().sock_connect(connected, ("127.0.0.1", self._port))
        name = "x" if self._tls is not None else None
        self.reader, self.writer = await asyncio.open_connection(
            sock=connected, limit=1024, ssl=self._tls, server_hostname=name
        )
        self.writer.write(data)

    async def read(self) -> int:
        """Read until the connection ends. Return the number of bytes."""
        size = 0
        try:
            while chunk := await self.reader.read(65536):
                size += len(chunk)
        except (ConnectionError, ssl.SSLError):
            pass
        return size


@pytest.fixture
async def reader(service: Service) -> AsyncIterator[Reader]:
    new = Reader(service)
    yield new
    new.writer.transport.abort()


async def test_a_reservation_lasts_until_the_response_is_written(service: Service, reader: Reader) -> None:
    await reader.send()
    await service.until(requests=1, reserved=1)
    reading = asyncio.create_task(reader.read())
    await service.until(requests=1, reserved=0)
    reading.cancel()


async def test_an_unread_response_closes_the_connection(
    service: Service, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "WRITING_SECONDS", 0.3)
    await reader.send()
    await service.until(requests=1, reserved=1)
    await service.until(requests=1, reserved=0)
    assert await reader.read() < LARGE


async def test_unread_responses_keep_out_no_new_peer(service: Service) -> None:
    """Otherwise a few addresses that read nothing would keep out a kubelet's probe."""
    silent = [Reader(service, f"127.0.0.{10 + number}") for number in range(4)]
    for reader in silent:
        await reader.send()
    await service.until(requests=4, reserved=4)
    service.size = 10
    kubelet = Reader(service)
    async with asyncio.timeout(responses.WRITING_SECONDS / 2):
        while not await connects(kubelet):  # until the kernel's buffers are full
            pass
    for reader in (*silent, kubelet):
        reader.writer.transport.abort()


async def connects(reader: Reader) -> bool:
    """Tell whether the reader gets a response."""
    try:
        await reader.send()
        return await reader.reader.readuntil(b"x" * 10) != b""
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return False


async def test_reading_slowly_does_not_extend_the_timeout(
    service: Service, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "WRITING_SECONDS", 0.3)
    await reader.send()
    while service.reserved or not service.requests:
        await reader.reader.read(1)
    assert await reader.read() < LARGE


async def test_a_disconnect_ends_the_reservation(service: Service, reader: Reader) -> None:
    await reader.send()
    await service.until(requests=1, reserved=1)
    reader.writer.transport.abort()
    await service.until(requests=1, reserved=0)


async def test_the_next_request_waits_until_the_response_is_written(service: Service, reader: Reader) -> None:
    await reader.send(REQUEST * 3)
    await service.until(requests=1, reserved=1)
    reading = asyncio.create_task(reader.read())
    await service.until(requests=3, reserved=0)
    reading.cancel()


async def test_a_read_response_keeps_the_connection_open(service: Service, reader: Reader) -> None:
    service.size = 10
    await reader.send()
    for number in range(1, 4):
        await reader.reader.readuntil(b"x" * 10)
        await service.until(requests=number, reserved=0)
        reader.writer.write(REQUEST)


@pytest.mark.parametrize("is_last", [False, True], ids=["kept", "closed"])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_large_response_is_written_in_pieces_and_its_body_is_released(method: str, is_last: bool) -> None:
    """aiohttp keeps the last response of a connection."""
    body = bytes(range(256)) * 2000
    responses_made: list[weakref.ref[web.Response]] = []

    async def handle(_request: web.BaseRequest) -> web.StreamResponse:
        response = web.Response(status=201, body=body, headers={"X-A": "b"}, content_type="application/json")
        if is_last:
            response.force_close()
        responses_made.append(weakref.ref(response))
        return response

    listener = Listener(handle, 4)
    port = await listener.listen("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    writer.write(REQUEST.replace(b"GET", method.encode()))
    async with asyncio.timeout(10):
        header = await reader.readuntil(b"\r\n\r\n")
        received = await reader.readexactly(len(body)) if method == "GET" else b""
        assert header.startswith(b"HTTP/1.1 201 Created\r\n")
        fields = {b"X-A: b", b"Content-Type: application/json", b"Content-Length: 512000"}
        assert fields < set(header.split(b"\r\n"))
        assert received == (body if method == "GET" else b"")
        if is_last:
            assert await reader.read() == b""
        assert method == "HEAD" or responses_made[0]() is None
    writer.close()
    await listener.close(0.1)
