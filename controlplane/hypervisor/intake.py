# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many bytes one connection may have us take in. calls.py and running.py count, wire.py acts.

libvirt's client keeps a message until it is whole, up to 32 MiB, and reads on whoever sends: twenty launchers that send
nearly all of one at the same time hold more than virt-handler may have. An honest libvirtd sends a description of some
tens of kilobytes, an event of a hundred bytes. Only what its guest's agent answers may be megabytes, and a few agents
are asked at a time: `widened` is for those.

It keeps as well what it cannot send, and answers each keepalive of 28 bytes with a message that takes 4 KB of memory:
whoever sends hundreds in a second and reads no answer uses little of either share. An honest libvirtd reads; one that
stands still for a while does not send meanwhile.

The kernel counts what a thread has read: libvirt reads its sockets by read(2), asyncio its own by recv(2), which is not
counted there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from controlplane.hypervisor.share import Bucket

BURST_BYTES = 1 << 20
RATE = 256 << 10
"""Bytes that come back in a second; a domain is described twice in that time at most."""
ANSWER_BYTES = 5 << 20
"""Of an agent's answer: libvirt ends one at 4 MiB."""
TOO_MUCH = "it sends more than its share"
UNREAD_BYTES = 4 << 10
"""Of messages that come in while what was sent lies unread: 146 keepalives. Who reads in between, so that libvirt can
send again, takes 208 answers or more from it, with Linux's buffer of a socket: no pace of reading has them pile up."""
UNREAD = "it sends and does not read"


class Intake(Bucket):
    """Of bytes."""

    def __init__(self) -> None:
        super().__init__(BURST_BYTES, RATE)

    @contextmanager
    def widened(self, amount: int) -> Iterator[None]:
        """Let so much more come in for as long as this lasts."""
        with self._lock:
            before = self.left
            self.most += amount
            self.left += amount
        try:
            yield
        finally:
            self._narrow(amount, before)

    def _narrow(self, amount: int, before: float) -> None:
        with self._lock:
            self.most -= amount
            self.left = min(self.left, before)  # what of it was not needed is not kept


class Unread:
    """Counts what comes in while the other side does not read."""

    def __init__(self) -> None:
        self._since = 0

    def take(self, amount: int, *, is_full: bool) -> bool:
        """Count bytes that came in; False when they are too many. is_full: what was sent lies unread now."""
        self._since = self._since + amount if is_full else 0
        return self._since <= UNREAD_BYTES


class Meter:
    """What one thread has read since it began. Nothing where the kernel does not count."""

    def __init__(self, thread: int) -> None:
        """thread: its number for the kernel, of this process."""
        self._file = -1
        with suppress(OSError):  # it has ended, or nobody counts
            self._file = os.open(f"/proc/self/task/{thread}/io", os.O_RDONLY | os.O_CLOEXEC)
        self._before = 0

    def since(self) -> int:
        """Return the bytes since the last time, at first all of them."""
        before = self._before
        return max(self.total() - before, 0)

    def total(self) -> int:
        """Return all of them; of a thread that has ended, as many as were seen."""
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
    """Return what the calling thread has read since it began: its own last word, before it ends."""
    meter = Meter(threading.get_native_id())
    try:
        return meter.total()
    finally:
        meter.close()
