# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A WebSocket client that sends what it is told to, and reads only when it is told to."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import suppress

from controlplane.tls.certificates import KeyPair
from tests.controlplane.virt_api.served import USER, Served

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "plain.kubevirt.io",
}


def frame(opcode: int, payload: bytes = b"", *, is_last: bool = True) -> bytes:
    """Encode a frame with a mask of zeros, which changes nothing."""
    head = bytes([(0x80 if is_last else 0) | opcode])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 65536:
        head += bytes([0x80 | 126]) + struct.pack("!H", len(payload))
    else:
        head += bytes([0x80 | 127]) + struct.pack("!Q", len(payload))
    return head + bytes(4) + payload


class RawClient:
    """A client of one stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, served: Served, proxy: KeyPair, path: str, machine: str = "web") -> RawClient:
        """Open a stream of a VMI in namespace ns, and read the response's header. The response must be 101."""
        context = served.context(proxy)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", served.port, ssl=context, server_hostname="virt-api.kubevirt.svc", limit=4096
        )
        target = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/{machine}/{path}"
        headers = "".join(f"{name}: {value}\r\n" for name, value in {"Host": "x", **USER, **UPGRADE}.items())
        writer.write(f"GET {target} HTTP/1.1\r\n{headers}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 "), head
        return cls(reader, writer)

    def send(self, *frames: bytes) -> None:
        self.writer.write(b"".join(frames))

    async def flood(self, data: bytes, times: int = 1_000_000) -> None:
        """Send data again and again, without a pause, until the connection ends."""
        with suppress(OSError):
            for _unused in range(times):
                self.writer.write(data)
                await self.writer.drain()
                await asyncio.sleep(0)  # drain does not wait while TLS says goodbye

    async def frames(self) -> list[tuple[int, bytes]]:
        """Read until the connection ends; return the frames."""
        data = bytearray()
        with suppress(OSError):
            while some := await self._reader.read(65536):
                data += some
        return list(_split(bytes(data)))

    def vanish(self) -> None:
        """Reset the connection, without a close frame."""
        self.writer.transport.abort()


def _split(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Split a server's frames, which have no mask."""
    while len(data) >= 2:
        length, start = data[1] & 0x7F, 2
        if length == 126:
            (length,), start = struct.unpack("!H", data[2:4]), 4
        elif length == 127:
            (length,), start = struct.unpack("!Q", data[2:10]), 10
        yield data[0] & 0x0F, data[start : start + length]
        data = data[start + length :]
