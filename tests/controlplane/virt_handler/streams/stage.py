# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest's device as QEMU serves it: a Unix socket with one connection at a time; and the end of a stream to it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import aiohttp
from kubevirt_api.close_codes import ENDED

from controlplane.links.handler import Guest, NotDone
from controlplane.links.relay import Close
from controlplane.links.streams import OpenStream
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.streams.guest_sockets import StreamRefused
from tests.controlplane.virt_handler.fakes import until

GUEST = Guest("node-1", "vmi-uid", "pod-1")


class Device:
    """A device that records what it reads, and writes what a test tells it."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "device.sock")
        self.read = bytearray()
        self.connections: list[asyncio.StreamWriter] = []
        self.closed = 0
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def close(self) -> None:
        for writer in self.connections:
            writer.transport.abort()
        if self._server is not None:
            self._server.close()

    @property
    def writer(self) -> asyncio.StreamWriter:
        """The last connection."""
        return self.connections[-1]

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        try:
            while data := await reader.read(4096):
                self.read += data
        except ConnectionError:
            pass
        writer.close()
        self.closed += 1


class NoStreams:
    """The sockets of a node without guests."""

    async def open(self, opening: OpenStream) -> LauncherSocket:
        raise StreamRefused(NotDone("absent", f"no guest {opening.guest}"))

    async def read_backlog(self, guest: Guest) -> bytes:
        raise AssertionError(guest)

    async def explain_end(self, guest: Guest) -> Close:
        raise AssertionError(guest)


class DeviceSockets:
    """The sockets of a node with one guest."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.openings: list[OpenStream] = []
        self.refusal: StreamRefused | None = None
        self.end = Close(ENDED, "the guest has stopped")
        self.printed = b""
        """What the guest has printed so far; it prints `printing` while that is read."""
        self.printing = b""

    async def open(self, opening: OpenStream) -> LauncherSocket:
        self.openings.append(opening)
        if self.refusal is not None:
            raise self.refusal
        return LauncherSocket(os.open(self._device.path, os.O_PATH))

    async def read_backlog(self, guest: Guest) -> bytes:
        assert guest == GUEST
        await until(lambda: bool(self._device.connections), "the connection to the device")
        self._device.write(self.printing)
        await self._device.writer.drain()
        return self.printed + self.printing

    async def explain_end(self, guest: Guest) -> Close:
        assert guest.node == GUEST.node
        return self.end


async def is_closed(websocket: aiohttp.ClientWebSocketResponse) -> tuple[int | None, str]:
    """Wait for the close frame. Return its code and reason."""
    while (message := await websocket.receive()).type is aiohttp.WSMsgType.BINARY:
        pass
    assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED), message
    return websocket.close_code, message.extra or ""
