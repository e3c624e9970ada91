# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many bytes one connection may send us. calls.py and callback_runner.py count, transport.py acts.

libvirt's client buffers a message until it is complete, up to 32 MiB, and keeps reading: twenty launchers that each
send most of such a message at once need more memory than virt-handler has. An ordinary libvirtd sends domain XML of
some tens of kilobytes and events of a hundred bytes. Only responses of a guest's agent and screenshots can have
megabytes; a few are under way at a time, and `extended` raises the limit for them.

The client also buffers what it cannot send, and replies to each keepalive of 28 bytes with a message that takes 4 KB of
memory. A peer that sends hundreds of keepalives a second and reads no reply exceeds neither quota, so `UnreadLimit`
counts what comes in while our replies are unread. An ordinary libvirtd reads; one that hangs does not send either.

The kernel's counter per thread is used: libvirt reads its sockets by read(2), which is counted, and asyncio its own by
recv(2), which is not.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

from controlplane.hypervisor.cpu_quota import TokenBucket

BURST_BYTES = 1 << 20
RATE = 256 << 10
"""Bytes that come back in a second. A domain's XML is read at most twice in that time."""
RESPONSE_BYTES = 5 << 20
"""For a response of an agent, which libvirt limits to 4 MiB."""
RECEIVE_QUOTA_EXCEEDED = "it sends more than its quota"
UNREAD_BYTES = 4 << 10
"""What may come in while our replies are unread: 146 keepalives. A peer that reads until libvirt can send again takes
at least 208 replies out of Linux's socket buffer, so replies cannot pile up at any reading speed."""
PEER_DOES_NOT_READ = "it sends and does not read"


class ReceiveQuota(TokenBucket):
    """Received bytes."""

    def __init__(self) -> None:
        super().__init__(BURST_BYTES, RATE)


class UnreadLimit:
    """Limits what comes in while the peer does not read."""

    def __init__(self) -> None:
        self._since = 0

    def take(self, amount: int, *, is_full: bool) -> bool:
        """Count received bytes; False when there are too many. is_full: our replies are unread now."""
        self._since = self._since + amount if is_full else 0
        return self._since <= UNREAD_BYTES


class ReadMeter:
    """How many bytes one thread has read. Always 0 where the kernel does not count."""

    def __init__(self, thread: int) -> None:
        """thread: kernel number of a thread of this process."""
        self._file = -1
        with suppress(OSError):  # the thread has ended, or the kernel does not count
            self._file = os.open(f"/proc/self/task/{thread}/io", os.O_RDONLY | os.O_CLOEXEC)
        self._before = 0

    def since(self) -> int:
        """Return the bytes read since the previous call."""
        before = self._before
        return max(self.total() - before, 0)

    def total(self) -> int:
        """Return all bytes read; the last known number after the thread has ended."""
        self._before = self._count()
        return self._before

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _count(self) -> int:
        if self._file < 0:
            return 0
        try:
            text = os.pread(self._file, 64, 0)
        except OSError:  # the thread has ended
            return self._before
        return int(text[text.index(b" ") : text.index(b"\n")])


def read_by_this_thread() -> int:
    """Return the bytes that the calling thread has read since it began."""
    meter = ReadMeter(threading.get_native_id())
    try:
        return meter.total()
    finally:
        meter.close()
