# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies bytes between a local connection and its stream until one of them ends.

One thread serves both directions, because a TLS connection takes only one call at a time. A side that does not read
holds up the other one: at most LIMIT_BYTES and one message wait for it.

A WebSocket cannot say that its client only stops sending. So when a local client does, what the guest still sends is
delivered, until the guest sends nothing for SILENT_SECONDS.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time

from .._client import websocket_frames
from .._client.websocket import WebSocket
from .._client.websocket_frames import BINARY, BROKEN, NORMAL, PING, PONG, Closed

CHUNK_BYTES = 32 * 1024
LIMIT_BYTES = 64 * 1024
SILENT_SECONDS = 10.0
LINGER_SECONDS = 10.0
"""How long the last bytes may take to the side that is still there."""
_NOTHING_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close sends a reset."""


class Stopped(Exception):
    """Somebody has ended the relay."""


class Side:
    """A connection that does not block, and the bytes that wait for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pending = bytearray()
        self.has_ended = False
        """It sends nothing more."""
        connection.setblocking(False)

    @property
    def is_full(self) -> bool:
        """Its peer has to wait."""
        return len(self.pending) >= LIMIT_BYTES

    @property
    def has_decrypted_bytes(self) -> bool:
        """TLS has bytes that a poll does not see."""
        return isinstance(self.connection, ssl.SSLSocket) and self.connection.pending() > 0

    def receive(self) -> bytes | None:
        """Return received bytes, b"" at the end, None if there are none now. OSError."""
        try:
            return self.connection.recv(CHUNK_BYTES)
        except _NOTHING_NOW:
            return None

    def flush(self) -> None:
        """Send pending bytes as far as the peer takes them. OSError."""
        with contextlib.suppress(*_NOTHING_NOW):
            if self.pending:
                del self.pending[: self.connection.send(bytes(self.pending[:LIMIT_BYTES]))]


class Relay:
    """One local connection and its stream. `run` ends with both closed."""

    def __init__(self, local: socket.socket, stream: WebSocket, stop: socket.socket) -> None:
        """stop: becomes readable to end the relay."""
        self.to_guest = self.from_guest = 0
        """Bytes that were copied."""
        self._stream, self._stop = stream, stop
        self._client, self._server = Side(local), Side(stream.socket)
        self._decoder = websocket_frames.Decoder()
        self._active = time.monotonic()
        """When the guest sent something, or the client ended."""

    def run(self) -> None:
        """Copy. Closed: the stream ended otherwise than by a connection's regular end. Stopped."""
        try:
            self._copy()
        except Closed as closed:
            self._end_client(is_regular=closed.code == NORMAL)
            if closed.code != NORMAL:
                raise
        except Stopped:
            self._end_client(is_regular=False)
            raise
        finally:
            self._end_stream()
            self._client.connection.close()

    def _copy(self) -> None:
        """Return when the local client has ended."""
        self._decoder.feed(_buffered(self._stream))
        self._take_messages()
        while self._remaining() > 0:
            for side in self._ready():
                try:
                    if side is self._server:
                        self._serve_stream()
                    else:
                        self._serve_client()
                except OSError as error:
                    if side is self._server:
                        raise Closed(BROKEN, f"the connection broke: {error}") from error
                    return

    def _remaining(self) -> float:
        """Return how long to wait, 0 when the relay is over."""
        if not self._client.has_ended:
            return 60.0
        return self._active + SILENT_SECONDS - time.monotonic()

    def _ready(self) -> list[Side]:
        """Wait until sides can receive or send; return them."""
        poll, sides = select.poll(), {}
        poll.register(self._stop, select.POLLIN)
        seconds = self._remaining()
        for side, other in ((self._client, self._server), (self._server, self._client)):
            reads = not side.has_ended and not other.is_full
            events = select.POLLIN * reads | select.POLLOUT * bool(side.pending)
            if events:
                poll.register(side.connection, events)
                sides[side.connection.fileno()] = side
            if reads and side.has_decrypted_bytes:
                seconds = 0.0
        ready = [descriptor for descriptor, _events in poll.poll(max(0.0, seconds) * 1000)]
        if self._stop.fileno() in ready:
            raise Stopped
        served = [sides[descriptor] for descriptor in ready]
        if self._server.has_decrypted_bytes and not self._client.is_full and self._server not in served:
            served.append(self._server)
        return served

    def _serve_client(self) -> None:
        self._client.flush()
        data = None if self._client.has_ended or self._server.is_full else self._client.receive()
        if data:
            self._server.pending += websocket_frames.encode(BINARY, data)
            self.to_guest += len(data)
            self._flush_stream()
        elif data is not None:
            self._client.has_ended = True
            self._active = time.monotonic()

    def _serve_stream(self) -> None:
        self._flush_stream()
        data = None if self._client.is_full else self._server.receive()
        if data == b"" and self._decoder.is_between_messages:
            raise Closed(NORMAL, "")  # upstream sends no close frame
        if data == b"":
            raise Closed(BROKEN, "the connection ended in the middle of a message")
        if data:
            self._decoder.feed(data)
            self._take_messages()

    def _flush_stream(self) -> None:
        try:
            self._server.flush()
        except OSError as error:
            raise Closed(BROKEN, f"the connection broke: {error}") from error

    def _take_messages(self) -> None:
        while (message := self._decoder.next()) is not None:
            if message.opcode == PING and self._server.is_full:
                pass  # a server that reads nothing waits for no pong
            elif message.opcode == PING:
                self._server.pending += websocket_frames.encode(PONG, message.payload)
            else:
                self._active = time.monotonic()
                self._client.pending += message.payload
                self.from_guest += len(message.payload)

    def _end_client(self, *, is_regular: bool) -> None:
        """Deliver what the guest has sent. Then say that it ends; or reset the connection, so that it looks cut."""
        local = self._client.connection
        with contextlib.suppress(OSError):
            local.settimeout(LINGER_SECONDS)
            local.sendall(self._client.pending)
            if not is_regular:
                local.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                return
            local.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + LINGER_SECONDS
            while local.recv(CHUNK_BYTES) and time.monotonic() < deadline:
                pass  # closing with unread bytes would reset the connection, and lose what the client has not read

    def _end_stream(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.socket.settimeout(LINGER_SECONDS)
            self._stream.socket.sendall(bytes(self._server.pending) + websocket_frames.close())
        self._stream.close()


def _buffered(stream: WebSocket) -> bytes:
    """Return the bytes that came with the handshake. The socket does not block."""
    try:
        return stream.reader.peek()
    except _NOTHING_NOW:
        return b""
