# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections over real sockets: one address cannot have them all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from controlplane.virt_api.listener import Listener

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def handle(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(text="here")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A listener of four connections."""
    runner = web.ServerRunner(Listener(handle, connections=4))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


class Peer:
    """Somebody with an address and connections."""

    def __init__(self, address: str, port: int) -> None:
        self._address = address
        self._port = port
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> bool:
        """Connect and ask; False when the connection was ended."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, local_addr=(self._address, 0))
        self.writers.append(writer)
        try:
            writer.write(ASK)
            return bool(await reader.read(100))
        except ConnectionResetError:
            return False

    async def leave(self) -> None:
        for writer in self.writers:
            writer.close()
        self.writers.clear()


async def test_one_address_that_holds_all_connections_keeps_nobody_else_out(port: int) -> None:
    pod, other = Peer("127.0.0.2", port), Peer("127.0.0.1", port)

    assert [await pod.connect() for _unused in range(5)] == [True] * 4 + [False]
    assert [await other.connect() for _unused in range(3)] == [True, True, False]
    assert not await pod.connect()

    await pod.leave()
    await other.leave()


async def test_a_connection_that_ended_makes_room(port: int) -> None:
    pod = Peer("127.0.0.2", port)
    assert [await pod.connect() for _unused in range(4)] == [True] * 4

    await pod.leave()

    async with asyncio.timeout(10):
        while not await pod.connect():  # until the ends have arrived
            pass
    await pod.leave()
