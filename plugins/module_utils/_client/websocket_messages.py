# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Binary messages over a WebSocket, for a caller that waits for each."""

from __future__ import annotations

import contextlib
import time

from . import websocket_frames
from .websocket import WebSocket
from .websocket_frames import BINARY, BROKEN, PING, PONG, Closed

CHUNK_BYTES = 64 * 1024


class Messages:
    """The messages of one stream. Not thread-safe."""

    def __init__(self, stream: WebSocket) -> None:
        self._stream = stream
        self._decoder = websocket_frames.Decoder()

    def send(self, data: bytes) -> None:
        """Send a message. Closed, TimeoutError."""
        self._send(websocket_frames.encode(BINARY, data))

    def receive(self, deadline: float) -> bytes:
        """Return the next binary message; text is ignored. Closed; TimeoutError at the deadline (time.monotonic).

        After a TimeoutError the stream can only be closed.
        """
        while True:
            while (message := self._decoder.next()) is not None:
                if message.opcode != PING:
                    return message.payload
                self._send(websocket_frames.encode(PONG, message.payload))
            self._decoder.feed(self._read(deadline))

    def close(self) -> None:
        """Say that the stream ends, and end it."""
        with contextlib.suppress(Closed, TimeoutError):
            self._send(websocket_frames.close())
        self._stream.close()

    def _send(self, data: bytes) -> None:
        try:
            self._stream.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error

    def _read(self, deadline: float) -> bytes:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._stream.socket.settimeout(remaining)
        try:
            data = self._stream.reader.read1(CHUNK_BYTES)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error
        if not data:
            raise Closed(BROKEN, "the connection ended without a close frame")
        return data
