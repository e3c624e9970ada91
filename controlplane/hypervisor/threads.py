# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the kernel says of a thread of ours. A thread: its number for it."""

from __future__ import annotations

import time
from pathlib import Path

_THREADS_CLOCK = 6
"""What Linux puts below a thread's number to make a clock of it (pthread_getcpuclockid takes a handle, which must not
be that of a thread that has ended)."""
_WAITS_FOR_US = (b"futex", b"poll")
"""Names of places in the kernel: of a lock, Python's own among them, and of libvirt's wait for an answer, which the
thread can be woken from by cutting its wire."""


def processor_seconds(thread: int) -> float | None:
    """Return what a thread has used of the processor; None when it has ended."""
    try:
        return time.clock_gettime((~thread << 3) | _THREADS_CLOCK)
    except OSError:
        return None


def is_held(thread: int) -> bool:
    """Tell whether a thread sleeps in the kernel until somebody else does something, and a signal would end it.

    Not when it waits for a processor, for memory or a disk, or for another thread of ours.
    """
    try:
        where = Path(f"/proc/self/task/{thread}/wchan").read_bytes()
        state = Path(f"/proc/self/task/{thread}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:  # it has ended
        return False
    return state == b"S" and where != b"0" and not any(word in where for word in _WAITS_FOR_US)
