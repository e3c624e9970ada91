# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies bytes between two connections in both directions, until both have ended. Each has one bounded buffer.

It uses sockets and not asyncio's streams: streams copy every byte five times and take twice the processor time. asyncio
only waits until a socket is ready.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress

BUFFER_BYTES = 256 << 10
"""Buffer of each direction of a connection. A larger one is not faster: it does not fit into a processor's cache."""
_WANTS_READ = (BlockingIOError, ssl.SSLWantReadError)


class TunnelSocket:
    """A connected socket, plain or TLS, in the running event loop. A TLS socket is unauthenticated before `prove`."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._loop = asyncio.get_running_loop()
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lock = threading.Lock()
        """Serializes `close` and `cut`: a closed descriptor's number may already belong to another file."""

    async def prove(self) -> None:
        """Do the TLS handshake. On a plain socket it does nothing. OSError."""
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
        """Read what is available, at least one byte; return 0 at the end. OSError."""
        while True:
            try:
                return self._fill(into)
            except _WANTS_READ:
                await self._until_readable()
            except ssl.SSLWantWriteError:
                await self._until_writable()

    async def send(self, data: memoryview) -> None:
        """Write all data. OSError."""
        while data:
            try:
                data = data[self._socket.send(data) :]
            except ssl.SSLWantReadError:
                await self._until_readable()
            except (BlockingIOError, ssl.SSLWantWriteError):
                await self._until_writable()

    async def read_line(self, limit: int) -> bytes:
        """Read one line, and nothing after it. ValueError if it is longer than the limit or does not end."""
        line = bytearray()
        byte = memoryview(bytearray(1))
        while not line.endswith(b"\n"):
            if len(line) >= limit or not await self.receive(byte):
                raise ValueError("it does not begin with a handshake line")
            line += byte
        return bytes(line)

    def finish(self) -> None:
        """Shut down the sending side, and continue to read. OSError.

        It shuts down TCP below TLS, because Python's TLS ends both directions at once. An attacker can forge such an
        end. QEMU and libvirt detect truncated data themselves.
        """
        socket.socket.shutdown(self._socket, socket.SHUT_WR)

    def close(self) -> None:
        """Close the socket. Pending waits end with ConnectionAbortedError."""
        for waiting in (self._readable, self._writable):
            if waiting is not None and not waiting.done():
                waiting.set_exception(ConnectionAbortedError("the socket is closed"))
                waiting.exception()  # marks it as retrieved, in case no task waits
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
        with suppress(OSError), self._lock:
            self._socket.close()

    def cut(self) -> None:
        """End the connection below TLS, from any thread. Reads and writes then see its end."""
        with suppress(OSError), self._lock:
            if self._socket.fileno() >= 0:
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _fill(self, into: memoryview) -> int:
        """Read until nothing is available or the buffer is full: TLS returns one record at a time."""
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
    """The sockets of one migration to a remote peer, to cut them if they do not end by themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: set[TunnelSocket] = set()
        self._is_cut = False

    def add(self, end: TunnelSocket) -> None:
        """Add a socket, to cut it with the others. It is cut at once if they are already cut."""
        with self._lock:
            self._sockets.add(end)
            if self._is_cut:
                end.cut()

    def discard(self, end: TunnelSocket) -> None:
        """Remove a closed socket."""
        with self._lock:
            self._sockets.discard(end)

    def cut(self) -> None:
        """Cut all sockets, and those that are added later. From any thread."""
        with self._lock:
            self._is_cut = True
            for end in self._sockets:
                end.cut()


def secure(connection: socket.socket, context: ssl.SSLContext, *, server_name: str | None = None) -> TunnelSocket:
    """Wrap a connection in TLS, without the handshake. server_name: None on the server. On OSError it is closed."""
    context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF  # see `finish`
    try:
        if connection.family != socket.AF_UNIX:
            # QEMU and libvirt send small packets. Nagle's algorithm would delay each second one by 40 ms.
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
    """Copy in both directions until both have ended or one breaks; then close both sockets. Raises no OSError."""
    copies = {asyncio.ensure_future(_copy(left, right)), asyncio.ensure_future(_copy(right, left))}
    try:
        await asyncio.wait(copies, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        left.close()
        right.close()
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)


async def _copy(source: TunnelSocket, target: TunnelSocket) -> None:
    buffer = memoryview(bytearray(BUFFER_BYTES))
    while count := await source.receive(buffer):
        await target.send(buffer[:count])
        await asyncio.sleep(0)  # a fast connection must not starve the others of this loop
    target.finish()
