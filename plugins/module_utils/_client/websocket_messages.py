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
CLOSE_SECONDS = 2.0


class Messages:
    """The messages of one stream. Not thread-safe."""

    def __init__(self, stream: WebSocket) -> None:
        self._stream = stream
        self._decoder = websocket_frames.Decoder()
        self._end: Closed | None = None
        """Of the stream, after messages that were returned."""

    def send(self, data: bytes, deadline: float) -> None:
        """Send a message. Closed, TimeoutError."""
        self._send(websocket_frames.encode(BINARY, data), deadline)

    def receive(self, deadline: float) -> bytes:
        """Return what has come in binary messages, at least one: a guest may print each character in its own.

        Text is ignored. Closed; TimeoutError at the deadline (time.monotonic): then the stream can only be closed.
        """
        while not (payloads := self._take_messages(deadline)):
            self._decoder.feed(self._read(deadline))
        return b"".join(payloads)

    def close(self) -> None:
        """Say that the stream ends, and end it."""
        with contextlib.suppress(Closed, TimeoutError):
            self._send(websocket_frames.close(), time.monotonic() + CLOSE_SECONDS)
        self._stream.close()

    def _take_messages(self, deadline: float) -> list[bytes]:
        """Return the binary messages that are complete, and answer pings. Closed, TimeoutError."""
        if self._end is not None:
            raise self._end
        payloads: list[bytes] = []
        try:
            while (message := self._decoder.next()) is not None:
                if message.opcode == PING:
                    self._send(websocket_frames.encode(PONG, message.payload), deadline)
                else:
                    payloads.append(message.payload)
        except Closed as end:
            if not payloads:
                raise
            self._end = end
        return payloads

    def _send(self, data: bytes, deadline: float) -> None:
        self._wait_until(deadline)
        try:
            self._stream.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error

    def _wait_until(self, deadline: float) -> None:
        """Have the next call of the socket end at the deadline. TimeoutError if that is over."""
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._stream.socket.settimeout(remaining)

    def _read(self, deadline: float) -> bytes:
        self._wait_until(deadline)
        try:
            data = self._stream.reader.read1(CHUNK_BYTES)
        except TimeoutError:
            raise
        except (OSError, ValueError) as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error
        if not data:
            raise Closed(BROKEN, "the connection ended without a close frame")
        return data
