# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket under a connection, as far as we may end it: the way to end a call of libvirt that does not end itself.

libvirt's calls know neither deadline nor cancellation, and its client keeps its socket to itself. But before the
first message it hands that socket to the event loop (loop.py), in the thread that opens the connection, and takes it
back before it closes it. So a thread says for which wire it works, the loop notes the descriptor, and `cut` shuts it
down for as long as it is known to be that socket. Measured with libvirt 9.0: every call that waits on it returns with
an error within 1 ms, whoever waits; calls on a connection that was cut fail at once, also the CONNECT_CLOSE that the
last reference to it makes, in whatever thread that goes.

And libvirt must not lose the last reference to a connection while a call on it goes on: it takes none of its own
(seen: a registration of events that was cut dropped it, and waited for ever for a lock that it held). So calls are
counted here, and `retire` lets nobody begin any more and waits until those that are under way have ended. And it may
read nothing then: it says goodbye on a connection that it has begun to take apart, and an event that comes before the
answer makes it wait for ever for a lock that it holds, and the loop with it at the next keepalive (seen with 9.0: one
event is enough). So `retire` cuts the wire: libvirt fails to say it, and does not come to read.

Comparing /proc/self/fd before and after would mix up connections that are opened at the same time; a relay of our own
(gate.py) is behind the descriptor, not instead of it: libvirt's calls wait on what it handed over.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from controlplane.hypervisor import intake, unfinished
from controlplane.hypervisor.gate import Gate
from controlplane.hypervisor.intake import Intake, Unread
from controlplane.hypervisor.share import Share
from controlplane.process.fd_passing import refuse_descriptors

CLIENT = "client"
"""libvirt's word for an end that was our own wish."""
HELD = "it sent something whose end we had to wait for"
_of_thread = threading.local()


class Retired(Exception):
    """The connection is being closed."""


class Wire:
    """One connection's socket; not there before libvirt has dialled, nor after it has let go."""

    def __init__(self) -> None:
        self.share = Share()
        self.intake = Intake()
        self._unread = Unread()
        self._is_whole = False
        self.because = ""
        """Why it was cut, for people; "" while it was not."""
        self._lock = threading.Condition()
        self._descriptor: int | None = None
        self._is_retired = False
        self._at_work: list[int] = []
        self._gate: Gate | None = None

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Let this thread use the connection; what it registers with the event loop belongs to this wire. Retired."""
        with self._lock:
            if self._is_retired:
                raise Retired
            self._at_work.append(threading.get_native_id())
        _of_thread.wire = self
        try:
            yield
        finally:
            _of_thread.wire = None
            self.completed()
            with self._lock:
                self._at_work.remove(threading.get_native_id())
                self._lock.notify_all()

    def retire(self, patience_seconds: float) -> None:
        """Let nobody begin, wait until nobody is at work, and cut the wire: under them after the patience. Blocks."""
        with self._lock:
            self._is_retired = True
            self._lock.wait_for(lambda: not self._at_work, patience_seconds)
            self.cut(CLIENT)
            self._lock.wait_for(lambda: not self._at_work)

    def attach(self, descriptor: int) -> None:
        """Take note of the socket; from any thread. It takes no descriptors from here on: libvirt asks for none."""
        with self._lock:
            self._descriptor = descriptor
            self._refuse_descriptors()
            if self.because:  # it was given up while it dialled
                self._shut_down()

    def guard(self, make: Callable[[], Gate]) -> None:
        """Put a gate before the socket; in the thread that opens the connection."""
        with self._lock:
            if self._descriptor is None:
                return
            if self._gate is not None:
                self._gate.cut()
            try:
                self._gate = make()
            except OSError as error:
                self.because = self.because or f"it cannot be guarded: {error.strerror}"
            if self.because:
                self._shut_down()

    def opened(self) -> None:
        """Let events through from now on: libvirt has opened the connection. On the loop."""
        with self._lock:
            if self._gate is not None:
                self._gate.open()

    @property
    def is_made(self) -> bool:
        """libvirt has dialled, and has not let go."""
        return self._descriptor is not None

    def threads(self) -> tuple[int, ...]:
        """Return the kernel's numbers of those at work."""
        with self._lock:
            return tuple(self._at_work)

    def detach(self, descriptor: int) -> None:
        """Forget the socket: its number may be another's in a moment. From any thread."""
        with self._lock:
            if self._descriptor == descriptor:
                self._descriptor = None
                if self._gate is not None:
                    self._gate.cut()
        unfinished.OF_PROCESS.forget(self)

    def cut(self, because: str) -> None:
        """End the connection, now or as soon as it is made. From any thread; never blocks, changes no domain."""
        with self._lock:
            self.because = self.because or because
            self._shut_down()

    def took_in(self, amount: int, now: float) -> None:
        """Count bytes that came in, and cut the wire when they are too many. now: monotonic seconds."""
        with self._lock:  # the loop's thread and the one that watches
            if not self.intake.take(amount, now):
                self.cut(intake.TOO_MUCH)
            if amount and not self._unread.take(amount, is_full=self._is_full()):
                self.cut(intake.UNREAD)
        is_whole, self._is_whole = self._is_whole, False
        if self._is_retired and not self.is_made:
            return  # it is closed, and what was read of it has gone
        for one in unfinished.OF_PROCESS.hold(self, amount, is_whole=is_whole):  # of all wires: not under one's lock
            one.cut(unfinished.TOO_MUCH)

    def completed(self) -> None:
        """Take note that a message has been read to its end: an event, or an answer. From any thread."""
        self._is_whole = True

    def _is_full(self) -> bool:
        """Tell whether so much of what was sent lies unread that libvirt has to keep what it would send now."""
        with self._lock:
            if self._descriptor is None:
                return False
            look = select.poll()
            look.register(self._descriptor, select.POLLOUT)
            return not look.poll(0)

    def _shut_down(self) -> None:
        if self._gate is not None:
            self._gate.cut()
        with suppress(OSError), self._borrowed() as borrowed:  # the other side was faster
            if borrowed is not None:
                borrowed.shutdown(socket.SHUT_RDWR)

    def _refuse_descriptors(self) -> None:
        with suppress(OSError), self._borrowed() as borrowed:  # it is no socket
            if borrowed is not None:
                refuse_descriptors(borrowed)

    @contextmanager
    def _borrowed(self) -> Iterator[socket.socket | None]:
        if self._descriptor is None:
            yield None
            return
        borrowed = socket.socket(fileno=self._descriptor)
        try:
            yield borrowed
        finally:
            borrowed.detach()


def wire_of_thread() -> Wire | None:
    """Return the wire that the calling thread works for."""
    return getattr(_of_thread, "wire", None)
