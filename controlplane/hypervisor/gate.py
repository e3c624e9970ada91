# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reaches libvirt: answers and events, and while it opens a connection nothing that nobody asked for.

libvirt's client takes events from its first byte on, and keeps them by what it makes at the end of opening: an event
that comes before that is read through a null pointer, and the whole process ends (seen with 9.0 and 11.3). And an
answer that promises descriptors and brings none has it turn for ever, with a lock in its hand that the event loop needs
at the next keepalive, when two calls are under way (seen with both). So its descriptor is one end of a pair of sockets
(dup2, before the first message), and what the other side says is looked at here, message by message: whole ones, and
short, while it opens; their heads afterwards. That costs a copy, of a hundred bytes in an event.

Everything here runs on the loop, but for `Gate()`, which is called in the thread that opens, and `cut`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

UNASKED = "it said something that nobody had asked for"
_PROGRAM = 0x20008086
"""Of libvirt itself: only that has events that we want."""
_PROGRAMS = (_PROGRAM, 0x20008087, 0x20008088)
"""Its QEMU driver's, its LXC driver's."""
_KEEPALIVE = 0x6B656570
_REPLY, _EVENT, _HEADER = 1, 2, struct.Struct(">IIIIIII")
_MESSAGE_LIMIT = 64 << 10
"""An answer to what is asked while a connection is opened has some tens of bytes, an error a few hundred."""
_READS_LIMIT = 256
"""An honest libvirtd answers eight times."""
_AT_ONCE = 16 << 10

Run = Callable[[Callable[[], None]], None]


class Gate:
    """Between libvirt and the other side, for as long as there is a connection."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, descriptor: int, *, run: Run, refuse: Callable[[], None]
    ) -> None:
        """descriptor: libvirt's, connected, of which nothing was read. OSError: it is none of a socket, or there are
        no more.

        run: calls back at the connection's expense, and sees to it that it ends. refuse: called when the other side
        says what may not come.
        """
        self._loop, self._run, self._refuse = loop, run, refuse
        self._said = b""
        """Of a message that may not go on yet."""
        self._rest = 0
        """Of a message whose head has gone on."""
        self._reads = 0
        self._is_open = self.is_over = False
        self._may_be_cut = True
        self._lock = threading.Lock()
        """Around what is done to our ends from any thread, and never around closing them, which may wait: the number
        of one that is closed may be another's."""
        self._far = socket.socket(fileno=os.dup(descriptor))
        near, self._ours = socket.socketpair()
        for one in (self._far, self._ours, near):  # as libvirt has it
            one.setblocking(False)
        with near:
            os.dup2(near.fileno(), descriptor, inheritable=False)
        self._ways = (
            _Way(loop, run, self._far, self._ours, sift=self._sift, end=self.end),
            _Way(loop, run, self._ours, self._far, sift=lambda said: said, end=self.end),
        )
        self._soon(self._begin)

    def open(self) -> None:
        """Let events through from now on: libvirt has opened the connection."""
        self._is_open = True

    def cut(self) -> None:
        """Let nothing more through, and let go of both sides soon. From any thread."""
        with self._lock:
            if not self._may_be_cut:  # letting go is charged as well, and may cut once more
                return
            self._may_be_cut = False
            for one in (self._far, self._ours):
                with suppress(OSError):  # it has gone
                    one.shutdown(socket.SHUT_RDWR)
        self._soon(lambda: self._run(self.end))

    def end(self) -> None:
        """Let go of both sides. libvirt finds its end shut down."""
        if self.is_over:
            return
        self.is_over = True
        for way in self._ways:
            way.stop()
        with self._lock:
            self._may_be_cut = False
        for one in (self._far, self._ours):
            one.close()

    def _soon(self, function: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(function)

    def _begin(self) -> None:
        if not self.is_over:
            for way in self._ways:
                way.begin()

    def _sift(self, said: bytes) -> bytes | None:
        """Return what may go on now; None: nothing any more."""
        self._reads += not self._is_open
        passing = self._passing(self._said + said) if self._reads <= _READS_LIMIT else None
        if passing is None:
            self._refuse()
        return passing

    def _passing(self, said: bytes) -> bytes | None:
        at = 0
        while at < len(said):
            if not self._rest:
                if len(said) - at < _HEADER.size:
                    break
                length, program, _version, _procedure, kind, _serial, _status = _HEADER.unpack_from(said, at)
                if length < _HEADER.size or not self._may_come(length, program, kind):
                    return None
                if not self._is_open and len(said) - at < length:
                    break
                self._rest = length
            step = min(self._rest, len(said) - at)
            self._rest -= step
            at += step
        self._said = said[at:]
        return said[:at]

    def _may_come(self, length: int, program: int, kind: int) -> bool:
        if program == _KEEPALIVE:
            return kind == _EVENT and length == _HEADER.size
        if kind == _EVENT:
            return self._is_open and program == _PROGRAM
        return kind == _REPLY and program in _PROGRAMS and (self._is_open or length <= _MESSAGE_LIMIT)


class _Way:
    """From one socket to another. While that one is full nothing is taken from the first."""

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
        self._left = b""

    def begin(self) -> None:
        self._loop.add_reader(self._source, self._run, self._take)

    def stop(self) -> None:
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)

    def _take(self) -> None:
        try:
            said = self._source.recv(_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        passing = self._sift(said) if said else None
        if passing is None:
            self._end()
            return
        self._left = passing
        self._give()
        if self._left:
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._sink, self._run, self._go_on)

    def _go_on(self) -> None:
        self._give()
        if not self._left and self._sink.fileno() >= 0:
            self._loop.remove_writer(self._sink)
            self.begin()

    def _give(self) -> None:
        """Hand on as much as there is room for."""
        try:
            self._left = self._left[self._sink.send(self._left) if self._left else 0 :]
        except BlockingIOError:
            pass
        except OSError:  # it has gone
            self._left = b""
            self._end()
