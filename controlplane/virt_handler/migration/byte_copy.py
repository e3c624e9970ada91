# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes from one connection to another and back, until both ways have ended. Bounded: who does not take gets no more.

On the sockets themselves and not on asyncio's streams: those copy every byte five times, and take twice the processor
time. What is awaited is only that a socket is ready.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress

BUFFER_BYTES = 256 << 10
"""Of each direction of a connection. More is not faster: it no longer fits into a processor's cache."""
_WANTS_READ = (BlockingIOError, ssl.SSLWantReadError)


class TunnelSocket:
    """A connected socket, plain or TLS, of the running event loop. TLS is good for nothing before `prove`."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lock = threading.Lock()
        """Held while it is closed, and while it is cut: a descriptor may be another's as soon as it is closed."""

    async def prove(self) -> None:
        """Shake hands, where it is TLS. OSError."""
        connection = self._socket
        while isinstance(connection, ssl.SSLSocket):
            try:
                connection.do_handshake()
                break
            except ssl.SSLWantReadError:
                await self._until_readable()
            except ssl.SSLWantWriteError:
                await self._until_writable()

    async def receive(self, into: memoryview) -> int:
        """Read what there is, at least a byte; 0 at the end. OSError."""
        while True:
            try:
                return self._fill(into)
            except _WANTS_READ:
                await self._until_readable()
            except ssl.SSLWantWriteError:
                await self._until_writable()

    async def send(self, data: memoryview) -> None:
        """Write all of it. OSError."""
        while data:
            try:
                data = data[self._socket.send(data) :]
            except ssl.SSLWantReadError:
                await self._until_readable()
            except (BlockingIOError, ssl.SSLWantWriteError):
                await self._until_writable()

    async def read_line(self, limit: int) -> bytes:
        """Read up to the end of a line, and nothing after it. ValueError: it is longer, or does not end."""
        line = bytearray()
        one = memoryview(bytearray(1))
        while not line.endswith(b"\n"):
            if len(line) >= limit or not await self.receive(one):
                raise ValueError("it does not begin with a line")
            line += one
        return bytes(line)

    def finish(self) -> None:
        """Say that nothing more comes, and go on reading. OSError.

        Below TLS, by TCP's own word: Python's TLS ends both ways at once. Who cuts a connection can say the same, so it
        means no more than an end; whether all has come, those who speak through it know (QEMU, libvirt).
        """
        socket.socket.shutdown(self._socket, socket.SHUT_WR)

    def close(self) -> None:
        """Close it; what is waited for on it is over."""
        for waiting in (self._readable, self._writable):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ConnectionAbortedError("it is closed"))
                waiting.exception()  # whether somebody waits or not
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        with suppress(OSError), self._lock:
            self._socket.close()

    def cut(self) -> None:
        """End the connection below TLS, from any thread: whoever reads it, or writes, finds that it has ended."""
        with suppress(OSError), self._lock:
            if self._socket.fileno() >= 0:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _fill(self, into: memoryview) -> int:
        """Read until nothing is there or it is full: TLS gives a record at a time."""
        count = self._socket.recv_into(into)
        if isinstance(self._socket, ssl.SSLSocket):
            with suppress(ssl.SSLWantReadError, ssl.SSLWantWriteError, OSError):
                while 0 < count < len(into):
                    more = self._socket.recv_into(into[count:])
                    if not more:
                        break
                    count += more
        return count

    async def _until_readable(self) -> None:
        if self._readable is None or self._readable.done():
            self._readable = self._loop.create_future()
            self._loop.add_reader(self._socket, self._is_readable)
        await asyncio.shield(self._readable)

    async def _until_writable(self) -> None:
        if self._writable is None or self._writable.done():
            self._writable = self._loop.create_future()
            self._loop.add_writer(self._socket, self._is_writable)
        await asyncio.shield(self._writable)

    def _is_readable(self) -> None:
        self._loop.remove_reader(self._socket)
        if self._readable is not None and not self._readable.done():
            self._readable.set_result(None)

    def _is_writable(self) -> None:
        self._loop.remove_writer(self._socket)
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)


class TunnelSockets:
    """Those of one migration that somebody else is at the other end of: cut when they do not end by themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: set[TunnelSocket] = set()
        self._is_cut = False

    def add(self, end: TunnelSocket) -> None:
        """Have it cut with the others, at once if they are."""
        with self._lock:
            self._ends.add(end)
            if self._is_cut:
                end.cut()

    def discard(self, end: TunnelSocket) -> None:
        """Take note that it is closed."""
        with self._lock:
            self._ends.discard(end)

    def cut(self) -> None:
        """Cut all, and whatever comes later. From any thread."""
        with self._lock:
            self._is_cut = True
            for end in self._ends:
                end.cut()


def secure(connection: socket.socket, context: ssl.SSLContext, *, server_name: str | None = None) -> TunnelSocket:
    """Wrap a connection, which is not proven yet. server_name: of the side that calls. OSError: it is closed."""
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF  # see `finish`
    try:
        if connection.family != socket.AF_UNIX:
            # QEMU and libvirt ask and answer in small pieces; TCP would keep one until that before it is acknowledged.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wrapped = context.wrap_socket(
            connection,
            server_side=server_name is None,
            server_hostname=server_name,
            do_handshake_on_connect=False,
        )
    except BaseException:
        connection.close()
        raise
    return TunnelSocket(wrapped)


async def copy_both_ways(left: TunnelSocket, right: TunnelSocket) -> None:
    """Copy both ways until both have ended, or one breaks; then close both. OSError is no news."""
    ways = {asyncio.ensure_future(_copy(left, right)), asyncio.ensure_future(_copy(right, left))}
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        left.close()
        right.close()
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)


async def _copy(source: TunnelSocket, target: TunnelSocket) -> None:
    buffer = memoryview(bytearray(BUFFER_BYTES))
    while count := await source.receive(buffer):
        await target.send(buffer[:count])
        await asyncio.sleep(0)  # others of this loop have their turn, however fast these two are
    target.finish()
