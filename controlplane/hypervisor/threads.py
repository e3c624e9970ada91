# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel knows about a thread of this process. thread: its number in the kernel."""

from __future__ import annotations

import time
from pathlib import Path

_THREADS_CLOCK = 6
"""The low bits by which Linux makes a clock id from a thread's number. (pthread_getcpuclockid takes a handle, which
must not belong to a thread that has ended.)"""
_WAITS_FOR_US = (b"futex", b"poll")
"""Kernel functions in which a thread waits for this process: locks, Python's among them, and libvirt's wait for a
reply, which ends when the transport is cut."""


def processor_seconds(thread: int) -> float | None:
    """Return a thread's processor time; None when the thread has ended."""
    try:
        return time.clock_gettime((~thread << 3) | _THREADS_CLOCK)
    except OSError:
        return None


def is_blocked_by_peer(thread: int) -> bool:
    """Tell whether a thread sleeps in the kernel until another process acts, so that a signal would end the sleep.

    False while it waits for a processor, memory, a disk or another thread of this process.
    """
    try:
        where = Path(f"/proc/self/task/{thread}/wchan").read_bytes()
        state = Path(f"/proc/self/task/{thread}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:  # the thread has ended
        return False
    return state == b"S" and where != b"0" and not any(word in where for word in _WAITS_FOR_US)
