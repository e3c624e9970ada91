# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which messages reach libvirt's client: replies and events; while a connection is being opened only replies, and while
a screenshot is taken also the messages of its stream.

Two messages of a hostile peer break libvirt's client. An event before the connection is open is read through a null
pointer, and the whole process ends (seen with 9.0 and 11.3). A reply that announces descriptors and brings none makes
the client loop for ever when two calls are running, while it holds a lock that the event loop needs for the next
keepalive (seen with both). So its descriptor is replaced by one end of a socket pair (dup2, before the first message),
and each message is checked on its way: while the connection is being opened, whole messages of limited length;
afterwards the headers. That costs one copy, of a hundred bytes for an event.

Everything runs on the event loop, except `MessageFilter()`, which is called in the thread that opens the connection,
`stream_allowed` and `cut`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

UNEXPECTED_MESSAGE = "it sent a message that was not asked for"
_PROGRAM = 0x20008086
"""libvirt's own RPC program; only its events are used."""
_PROGRAMS = (_PROGRAM, 0x20008087, 0x20008088)
"""With the programs of its QEMU and LXC drivers."""
_KEEPALIVE = 0x6B656570
_REPLY, _EVENT, _STREAM, _HEADER = 1, 2, 3, struct.Struct(">IIIIIII")
_SCREENSHOT = 211
"""The call whose stream may come."""
_STREAM_LIMIT = (256 << 10) + _HEADER.size
"""libvirtd sends 24 bytes less of a stream at once."""
_MESSAGE_LIMIT = 64 << 10
"""While a connection is being opened: replies have some tens of bytes then, errors a few hundred."""
_READS_LIMIT = 256
"""While a connection is being opened: an ordinary libvirtd sends eight replies."""
_AT_ONCE = 16 << 10

Run = Callable[[Callable[[], None]], None]


class MessageFilter:
    """Sits between libvirt's client and the peer while there is a connection."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, descriptor: int, *, run: Run, refuse: Callable[[], None]
    ) -> None:
        """descriptor: libvirt's, connected, nothing read yet. OSError: it is not a socket, or no descriptor is free.

        run: runs a callback, charged to the connection and interrupted when it blocks. refuse: called when the peer
        sends a message that may not pass.
        """
        self._loop, self._run, self._refuse = loop, run, refuse
        self._pending = b""
        """The start of a message that may not pass yet."""
        self._rest = 0
        """Bytes to come of a message that passes."""
        self._reads = 0
        self._is_open = self.is_over = False
        self._streams = 0
        """How many streams may come now."""
        self._may_be_cut = True
        self._lock = threading.Lock()
        """Held while another thread uses our sockets, so that it never uses the number of a closed one. Never held
        while they are closed, which may block."""
        self._far = socket.socket(fileno=os.dup(descriptor))
        near, self._ours = socket.socketpair()
        for end in (self._far, self._ours, near):  # as libvirt has set its own
            end.setblocking(False)
        with near:
            os.dup2(near.fileno(), descriptor, inheritable=False)
        self._directions = (
            _Direction(loop, run, self._far, self._ours, sift=self._sift, end=self.end),
            _Direction(loop, run, self._ours, self._far, sift=lambda data: data, end=self.end),
        )
        self._soon(self._begin)

    def open(self) -> None:
        """Let events pass from now on: libvirt has opened the connection."""
        self._is_open = True

    @contextmanager
    def stream_allowed(self) -> Iterator[None]:
        """Let the messages of one more stream pass inside the block. From any thread."""
        with self._lock:
            self._streams += 1
        try:
            yield
        finally:
            with self._lock:
                self._streams -= 1

    def cut(self) -> None:
        """Let nothing more pass, and close both sockets soon. From any thread."""
        with self._lock:
            if not self._may_be_cut:  # closing is charged to the connection as well, and may cut it again
                return
            self._may_be_cut = False
            for end in (self._far, self._ours):
                with suppress(OSError):  # the peer has closed
                    end.shutdown(socket.SHUT_RDWR)
        self._soon(lambda: self._run(self.end))

    def end(self) -> None:
        """Close both sockets. libvirt finds its end shut down."""
        if self.is_over:
            return
        self.is_over = True
        for direction in self._directions:
            direction.stop()
        # Closing is charged to the connection, which may cut it again. So cutting stops first.
        with self._lock:
            self._may_be_cut = False
        for end in (self._far, self._ours):
            end.close()

    def _soon(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def _begin(self) -> None:
        if not self.is_over:
            for direction in self._directions:
                direction.begin()

    def _sift(self, data: bytes) -> bytes | None:
        """Return the bytes that may pass now; None when nothing may pass any more."""
        self._reads += not self._is_open
        passing = self._passing(self._pending + data) if self._reads <= _READS_LIMIT else None
        if passing is None:
            self._refuse()
        return passing

    def _passing(self, data: bytes) -> bytes | None:
        at = 0
        while at < len(data):
            if not self._rest:
                if len(data) - at < _HEADER.size:
                    break
                length, program, _version, procedure, kind, _serial, _status = _HEADER.unpack_from(data, at)
                may_come = self._may_stream if kind == _STREAM else self._may_come
                if length < _HEADER.size or not may_come(length, program, procedure, kind):
                    return None
                if not self._is_open and len(data) - at < length:
                    break
                self._rest = length
            step = min(self._rest, len(data) - at)
            self._rest -= step
            at += step
        self._pending = data[at:]
        return data[:at]

    def _may_stream(self, length: int, program: int, procedure: int, _kind: int) -> bool:
        return self._streams > 0 and length <= _STREAM_LIMIT and (program, procedure) == (_PROGRAM, _SCREENSHOT)

    def _may_come(self, length: int, program: int, _procedure: int, kind: int) -> bool:
        if program == _KEEPALIVE:
            return kind == _EVENT and length == _HEADER.size
        # See the module's docstring for the two messages that break libvirt's client.
        if kind == _EVENT:
            return self._is_open and program == _PROGRAM
        return kind == _REPLY and program in _PROGRAMS and (self._is_open or length <= _MESSAGE_LIMIT)


class _Direction:
    """Copies from one socket to another. While the second is full, nothing is read from the first."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        run: Run,
        source: socket.socket,
        sink: socket.socket,
        *,
        sift: Callable[[bytes], bytes | None],
        end: Callable[[], None],
    ) -> None:
        self._loop, self._run, self._source, self._sink, self._sift, self._end = loop, run, source, sink, sift, end
        self._unsent = b""

    def begin(self) -> None:
        self._loop.add_reader(self._source, self._run, self._take)

    def stop(self) -> None:
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)

    def _take(self) -> None:
        try:
            data = self._source.recv(_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        passing = self._sift(data) if data else None
        if passing is None:
            self._end()
            return
        self._unsent = passing
        self._send()
        if self._unsent:
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._sink, self._run, self._go_on)

    def _go_on(self) -> None:
        self._send()
        if not self._unsent and self._sink.fileno() >= 0:
            self._loop.remove_writer(self._sink)
            self.begin()

    def _send(self) -> None:
        """Send as much as fits."""
        try:
            self._unsent = self._unsent[self._sink.send(self._unsent) if self._unsent else 0 :]
        except BlockingIOError:
            pass
        except OSError:  # the peer has closed
            self._unsent = b""
            self._end()
