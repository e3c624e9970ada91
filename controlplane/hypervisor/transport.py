# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket under a connection, and how to cut it: the only way to end a libvirt call that does not end itself.

libvirt's calls have no deadline and no cancellation, and its client does not expose its socket. But before the first
message the client hands that socket to the event loop (loop.py), in the thread that opens the connection, and takes it
back before closing it. So a thread names the transport it uses, the loop notes the descriptor, and `cut` shuts the
socket down while it is known to be that one. Measured with libvirt 9.0: every call that waits on the socket then fails
within 1 ms; calls on a connection that was cut fail at once, also the CONNECT_CLOSE that dropping the last reference
to the connection sends, in any thread.

libvirt must not lose the last reference to a connection during a call, because a call takes no reference of its own.
(Seen: an event registration that was cut dropped it, and waited forever for a lock that it held itself.) So calls are
counted here; `retire` allows no new call and waits until the running ones have ended. Closing must not read either:
libvirt sends CONNECT_CLOSE on a connection that it has begun to take apart, and an event that arrives before the reply
makes it wait forever for a lock that it holds, and the event loop with it at the next keepalive (seen with 9.0: one
event is enough). So `retire` cuts the transport: libvirt then fails to send, and does not read.

Two alternatives do not work. Comparing /proc/self/fd before and after mixes up connections that are opened at the same
time. The socket pair of message_filter.py is behind the descriptor, not in its place: libvirt's calls wait on the
descriptor that they handed over.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from controlplane.hypervisor import partial_messages
from controlplane.hypervisor.cpu_quota import CpuQuota
from controlplane.hypervisor.message_filter import MessageFilter
from controlplane.hypervisor.partial_messages import PARTIAL_MESSAGES_EXCEEDED
from controlplane.hypervisor.receive_quota import PEER_DOES_NOT_READ, RECEIVE_QUOTA_EXCEEDED, ReceiveQuota, UnreadLimit
from controlplane.process.fd_passing import refuse_descriptors

CLIENT = "client"
"""libvirt's word for a connection that this side has closed."""
BLOCKED_BY_PEER = "it blocked a thread of this process"
_of_thread = threading.local()


class Retired(Exception):
    """The connection is being closed."""


class Transport:
    """One connection's socket. There is none before libvirt has connected and after it has closed."""

    def __init__(self) -> None:
        self.cpu_quota = CpuQuota()
        self.receive_quota = ReceiveQuota()
        self._unread = UnreadLimit()
        self._is_whole = False
        self.because = ""
        """Why the connection was cut, for people; "" while it was not."""
        self._lock = threading.Condition()
        self._descriptor: int | None = None
        self._is_retired = False
        self._users: list[int] = []
        self._filter: MessageFilter | None = None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Count this thread as a user. Its handles in the event loop belong to this transport. Retired."""
        with self._lock:
            if self._is_retired:
                raise Retired
            self._users.append(threading.get_native_id())
        _of_thread.transport = self
        try:
            yield
        finally:
            _of_thread.transport = None
            self.message_completed()
            with self._lock:
                self._users.remove(threading.get_native_id())
                self._lock.notify_all()

    def retire(self, patience_seconds: float) -> None:
        """Allow no new call, wait for the running ones, and cut the transport. Blocks.

        After patience_seconds the transport is cut under the calls that are still running.
        """
        with self._lock:
            self._is_retired = True
            self._lock.wait_for(lambda: not self._users, patience_seconds)
            self.cut(CLIENT)
            self._lock.wait_for(lambda: not self._users)

    def attach(self, descriptor: int) -> None:
        """Note the socket, which accepts no descriptors from here on: libvirt needs none. From any thread."""
        with self._lock:
            self._descriptor = descriptor
            self._refuse_descriptors()
            if self.because:  # it was cut while it connected
                self._shut_down()

    def install_filter(self, make: Callable[[], MessageFilter]) -> None:
        """Put a message filter before the socket. Called in the thread that opens the connection."""
        with self._lock:
            if self._descriptor is None:
                return
            if self._filter is not None:
                self._filter.cut()
            try:
                self._filter = make()
            except OSError as error:
                self.because = self.because or f"its messages cannot be filtered: {error.strerror}"
            if self.because:
                self._shut_down()

    def allow_events(self) -> None:
        """Let events pass from now on: libvirt has opened the connection. Called on the loop."""
        with self._lock:
            if self._filter is not None:
                self._filter.open()

    @contextmanager
    def streams_allowed(self) -> Iterator[None]:
        """Let the messages of one more stream pass inside the block. It ends when the stream has ended."""
        with self._lock:
            message_filter = self._filter
        if message_filter is None:  # not a connection to a socket
            yield
            return
        with message_filter.stream_allowed():
            yield

    @property
    def is_made(self) -> bool:
        """libvirt has connected, and has not closed."""
        return self._descriptor is not None

    def threads(self) -> tuple[int, ...]:
        """Return the kernel numbers of the threads of running calls."""
        with self._lock:
            return tuple(self._users)

    def detach(self, descriptor: int) -> None:
        """Forget the socket, whose number may be reused at once. From any thread."""
        with self._lock:
            if self._descriptor == descriptor:
                self._descriptor = None
                if self._filter is not None:
                    self._filter.cut()
        partial_messages.PROCESS_WIDE.forget(self)

    def cut(self, because: str) -> None:
        """End the connection, now or as soon as it exists. From any thread; never blocks, changes no domain."""
        with self._lock:
            self.because = self.because or because
            self._shut_down()

    def count_received(self, amount: int, now: float) -> None:
        """Count received bytes, and cut the transport when they exceed a quota. now: monotonic seconds."""
        with self._lock:  # called by the loop and by the watchdog's thread
            if not self.receive_quota.take(amount, now):
                self.cut(RECEIVE_QUOTA_EXCEEDED)
            if amount and not self._unread.take(amount, is_full=self._is_full()):
                self.cut(PEER_DOES_NOT_READ)
        is_whole, self._is_whole = self._is_whole, False
        if self._is_retired and not self.is_made:
            return  # it is closed, and its buffers are freed
        # It may cut other transports, so no lock is held.
        for transport in partial_messages.PROCESS_WIDE.add(self, amount, is_whole=is_whole):
            transport.cut(PARTIAL_MESSAGES_EXCEEDED)

    def message_completed(self) -> None:
        """Note that a message has been read to its end: an event, or a reply. From any thread."""
        self._is_whole = True

    def _is_full(self) -> bool:
        """Tell whether the socket's send buffer is full, so libvirt would have to buffer its messages."""
        with self._lock:
            if self._descriptor is None:
                return False
            look = select.poll()
            look.register(self._descriptor, select.POLLOUT)
            return not look.poll(0)

    def _shut_down(self) -> None:
        if self._filter is not None:
            self._filter.cut()
        with suppress(OSError), self._borrowed() as borrowed:  # the peer has closed
            if borrowed is not None:
                borrowed.shutdown(socket.SHUT_RDWR)

    def _refuse_descriptors(self) -> None:
        with suppress(OSError), self._borrowed() as borrowed:  # it is not a socket
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


def transport_of_thread() -> Transport | None:
    """Return the transport that the calling thread uses."""
    return getattr(_of_thread, "transport", None)
