# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames of a WebSocket, as its client sends and receives them (RFC 6455, section 5). Pure."""

from __future__ import annotations

import os
import struct
from typing import NamedTuple

MESSAGE_LIMIT = 4 << 20
"""Bytes of one message. Servers send what they read at once, 64 KiB or less."""
NORMAL, BROKEN = 1000, 1006
"""Close codes: a regular end; no close frame was received."""
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
"""Opcodes."""
_CONTINUATION, _TEXT = 0, 1


class Closed(Exception):
    """The server has closed the stream. The text is its reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Message(NamedTuple):
    """What the server sent: BINARY or PING."""

    opcode: int
    payload: bytes


def encode(opcode: int, payload: bytes) -> bytes:
    """Return a frame that is a whole message."""
    key, size = os.urandom(4), len(payload)
    if size < 126:
        header = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 65536:
        header = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
    else:
        header = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
    mask = (key * (size // 4 + 1))[:size]
    masked = (int.from_bytes(payload, "big") ^ int.from_bytes(mask, "big")).to_bytes(size, "big")
    return header + key + masked


def close() -> bytes:
    """Return the frame that says that the stream ends."""
    return encode(CLOSE, struct.pack("!H", NORMAL))


class Decoder:
    """Turns received bytes into messages. Texts are ignored."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._kind = BINARY
        self._message = bytearray()

    @property
    def is_between_messages(self) -> bool:
        """There is no beginning of a frame."""
        return not self._received

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._received += data

    def next(self) -> Message | None:
        """Return the next message; None if it is not complete. Closed: a close frame, or bytes that are no frame."""
        while (frame := self._frame()) is not None:
            is_last, opcode, payload = frame
            if opcode == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if len(payload) >= 2 else NORMAL
                raise Closed(code, payload[2:].decode(errors="replace"))
            if opcode == PING:
                return Message(PING, payload)
            if opcode in (_CONTINUATION, _TEXT, BINARY) and self._join(opcode, payload) and is_last:
                return Message(BINARY, bytes(self._message))
        return None

    def _join(self, opcode: int, payload: bytes) -> bool:
        """Add a fragment to its message; return whether that is binary."""
        if opcode != _CONTINUATION:
            self._kind = opcode
            self._message.clear()
        self._message += payload
        if len(self._message) > MESSAGE_LIMIT:
            raise Closed(BROKEN, f"the server sent a message of more than {MESSAGE_LIMIT} bytes")
        return self._kind == BINARY

    def _frame(self) -> tuple[bool, int, bytes] | None:
        """Take the next frame, None if it is not complete."""
        received = self._received
        if len(received) < 2:
            return None
        size, start = received[1] & 0x7F, 2
        if size > 125:
            width = 2 if size == 126 else 8
            start += width
            if len(received) < start:
                return None
            size = int.from_bytes(received[2:start], "big")
        if received[1] & 0x80 or size > MESSAGE_LIMIT:
            raise Closed(BROKEN, "the server sent something that is no message of a stream")
        if len(received) < start + size:
            return None
        frame = bool(received[0] & 0x80), received[0] & 0x0F, bytes(received[start : start + size])
        del received[: start + size]
        return frame
