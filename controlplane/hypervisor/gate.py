# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reaches libvirt while it opens a connection: answers, and nothing that nobody asked for.

libvirt's client takes events from its first byte on, and keeps them by what it makes at the end of opening: an event
that comes before that is read through a null pointer, and the whole process ends (seen with 9.0 and 11.3). So until
`libvirt.open` has returned its descriptor is one end of a pair of sockets (dup2, before the first message), and what
the other side says is looked at here, message by message. Then the descriptor is the other side's again: what follows
costs no copy.

Everything here runs on the loop, but for `Gate()`, which is called in the thread that opens.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Callable
from contextlib import suppress

UNASKED = "it said something that nobody had asked for before the connection was open"
_PROGRAMS = (0x20008086, 0x20008087, 0x20008088)
"""Of libvirt itself, of its QEMU driver, of its LXC driver."""
_KEEPALIVE = 0x6B656570
_REPLY, _HEADER = 1, struct.Struct(">IIIIIII")
_MESSAGE_LIMIT = 64 << 10
"""An answer to what is asked while a connection is opened has some tens of bytes, an error a few hundred."""
_READS_LIMIT = 256
"""An honest libvirtd answers eight times."""
_AT_ONCE = 16 << 10


class Gate:
    """Between libvirt, while it opens a connection, and the other side."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        descriptor: int,
        *,
        run: Callable[[Callable[[], None]], None],
        renew: Callable[[], None],
    ) -> None:
        """descriptor: libvirt's, connected, of which nothing was read. OSError: it is none of a socket, or there are
        no more.

        run: calls back at the connection's expense, and sees to it that it ends. renew: called when the descriptor is
        another socket.
        """
        self._loop = loop
        self._descriptor = descriptor
        self._run = run
        self._renew = renew
        self._said = b""
        """Of a message that is not whole."""
        self._reads = 0
        self._is_over = False
        self._far = socket.socket(fileno=os.dup(descriptor))
        near, self._ours = socket.socketpair()
        for one in (self._far, self._ours, near):  # as libvirt has it
            one.setblocking(False)
        with near:
            os.dup2(near.fileno(), descriptor, inheritable=False)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._begin)

    def open(self) -> bool:
        """Give libvirt its own socket back; False as long as something is under way. libvirt has not closed it yet."""
        if self._is_over:
            return True
        if self._said or any(_unread(one) for one in (self._descriptor, self._ours.fileno())):
            return False
        os.dup2(self._far.fileno(), self._descriptor, inheritable=False)
        self._renew()
        self.end()
        return True

    def end(self) -> None:
        """Let go of both sides. libvirt finds its end shut down, unless it has its own again."""
        if self._is_over:
            return
        self._is_over = True
        for one in (self._far, self._ours):
            self._loop.remove_reader(one)
            one.close()

    def _begin(self) -> None:
        if not self._is_over:
            self._loop.add_reader(self._far, self._run, self._answer)
            self._loop.add_reader(self._ours, self._run, self._ask)

    def _ask(self) -> None:
        """Hand on what libvirt says; it asks one thing after the other, so there is room for it."""
        try:
            said = self._ours.recv(_AT_ONCE)
            if said and self._far.send(said) == len(said):
                return
        except BlockingIOError:
            pass
        except OSError:  # one of the two has gone
            pass
        self.end()

    def _answer(self) -> None:
        try:
            said = self._far.recv(_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        self._reads += 1
        if not said or self._reads > _READS_LIMIT or not self._pass_on(self._said + said):
            self.end()

    def _pass_on(self, said: bytes) -> bool:
        """Hand on the messages that are whole; False when one is none that may come now."""
        begin = 0
        while len(said) - begin >= _HEADER.size:
            length, program, _version, _procedure, kind, _serial, _status = _HEADER.unpack_from(said, begin)
            is_asked_for = program == _KEEPALIVE or (program in _PROGRAMS and kind == _REPLY)
            if not is_asked_for:
                return False
            if not _HEADER.size <= length <= _MESSAGE_LIMIT:
                return False
            if len(said) - begin < length:
                break
            begin += length
        self._said = said[begin:]
        try:
            return begin == 0 or self._ours.send(said[:begin]) == begin
        except OSError:  # libvirt has gone, or does not read
            return False


def _unread(descriptor: int) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    return int(count)
