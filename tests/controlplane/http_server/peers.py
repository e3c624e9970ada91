# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients with source addresses of their own, on real sockets."""

from __future__ import annotations

import asyncio
import ssl
from typing import ClassVar

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"you are connected"
POD, OTHER = "127.0.0.2", "127.0.0.1"


def trusting() -> ssl.SSLContext:
    """A client context that accepts every server."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class Peer:
    """An address and its connections."""

    peers: ClassVar[list[Peer]] = []

    def __init__(self, address: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._port = port
        self._tls = tls
        self._streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.peers.append(self)

    async def connect(self) -> bool:
        """Connect and send a request; False when the connection was closed."""
        try:
            stream = await self._open(self._tls)
        except (ConnectionError, ssl.SSLError):
            return False
        return await self._request(*stream)

    async def request_again(self) -> bool:
        """Send a request on the only connection; False when it was closed."""
        ((reader, writer),) = self._streams
        return await self._request(reader, writer)

    async def send(self, data: bytes = b"") -> None:
        """Connect without TLS and send only this data."""
        _reader, writer = await self._open(None)
        writer.write(data)

    async def count_open(self) -> int:
        """Count the open connections after the server has closed the refused ones."""
        probe = Peer(OTHER, self._port, self._tls)  # accepted after all connections of this peer
        assert await probe.connect()
        probe.abort()
        return sum(not reader.at_eof() and reader.exception() is None for reader, _writer in self._streams)

    async def wait_closed(self) -> None:
        """Return when the server has closed every connection."""
        async with asyncio.timeout(10):
            for reader, _writer in self._streams:
                try:
                    while await reader.read(1000):
                        pass
                except ConnectionError:
                    pass

    def abort(self) -> None:
        for _reader, writer in self._streams:
            writer.transport.abort()
        self._streams.clear()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        try:
            writer.write(REQUEST)
            async with asyncio.timeout(10):
                return bool(await reader.readuntil(BODY))
        except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
            return False

    async def _open(self, tls: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        stream = await asyncio.open_connection("127.0.0.1", self._port, ssl=tls, local_addr=(self._address, 0))
        self._streams.append(stream)
        return stream


async def until_connected(peer: Peer) -> None:
    """Connect once the server has noticed that other connections were closed."""
    async with asyncio.timeout(10):
        while not await peer.connect():
            pass
