# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Binary messages over a WebSocket, as its client sends and receives them (RFC 6455, section 5)."""

from __future__ import annotations

import contextlib
import os
import struct
import time

from .websocket import WebSocket

MESSAGE_LIMIT = 4 << 20
"""Bytes of one message. Servers send what they read at once, 64 KiB or less."""
NORMAL, BROKEN = 1000, 1006
"""Close codes: a regular end; no close frame was received."""
_CONTINUATION, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0, 1, 2, 8, 9, 10


class Closed(Exception):
    """The server has closed the stream. The text is its reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Messages:
    """The messages of one stream. Not thread-safe."""

    def __init__(self, stream: WebSocket) -> None:
        self._stream = stream

    def send(self, data: bytes) -> None:
        """Send a message. Closed, TimeoutError."""
        self._send_frame(_BINARY, data)

    def receive(self, deadline: float) -> bytes:
        """Return the next binary message; text is ignored. Closed; TimeoutError at the deadline (time.monotonic).

        After a TimeoutError the stream can only be closed.
        """
        message = bytearray()
        kind = _BINARY
        while True:
            is_last, opcode, payload = self._read_frame(deadline)
            if opcode == _CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else NORMAL
                raise Closed(code, payload[2:].decode(errors="replace"))
            if opcode == _PING:
                self._send_frame(_PONG, payload)
            if opcode not in (_CONTINUATION, _TEXT, _BINARY):
                continue
            if opcode != _CONTINUATION:
                kind = opcode
                message.clear()
            message += payload
            if len(message) > MESSAGE_LIMIT:
                raise Closed(BROKEN, f"the server sent a message of more than {MESSAGE_LIMIT} bytes")
            if is_last and kind == _BINARY:
                return bytes(message)

    def close(self) -> None:
        """Say that the stream ends, and end it."""
        with contextlib.suppress(Closed, TimeoutError):
            self._send_frame(_CLOSE, struct.pack("!H", NORMAL))
        self._stream.close()

    def _send_frame(self, opcode: int, payload: bytes) -> None:
        key, size = os.urandom(4), len(payload)
        if size < 126:
            header = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 65536:
            header = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            header = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        mask = (key * (size // 4 + 1))[:size]
        masked = (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
        try:
            self._stream.socket.sendall(header + key + masked)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error

    def _read_frame(self, deadline: float) -> tuple[bool, int, bytes]:
        first, second = self._read(2, deadline)
        size = second & 0x7F
        if size == 126:
            size = struct.unpack("!H", self._read(2, deadline))[0]
        elif size == 127:
            size = struct.unpack("!Q", self._read(8, deadline))[0]
        if second & 0x80 or size > MESSAGE_LIMIT:
            raise Closed(BROKEN, "the server sent something that is no message of a stream")
        return bool(first & 0x80), first & 0x0F, self._read(size, deadline)

    def _read(self, size: int, deadline: float) -> bytes:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._stream.socket.settimeout(remaining)
        try:
            data = self._stream.reader.read(size)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error
        if len(data) < size:
            raise Closed(BROKEN, "the connection ended without a close frame")
        return data
