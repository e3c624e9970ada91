# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thread that checks libvirt's running calls and callbacks, at times set before they begin.

The event loop cannot do that: it is what may be blocked. The thread waits for a kernel timer (timerfd), which costs 2
us to set and to stop. Nearly every call ends before its first check, so the thread sleeps on.
"""

from __future__ import annotations

import ctypes
import logging
import math
import os
import threading
import time
from functools import cache
from typing import Protocol

log = logging.getLogger(__name__)

_LIBC = ctypes.PyDLL(None, use_errno=True)
"""PyDLL keeps Python's lock: these calls do not wait, so releasing it would only cost time."""
_SHORTEST = 1e-6
"""0 seconds would disarm the timer."""


class Watched(Protocol):
    """A running call or callback."""

    def look(self) -> float | None:
        """Check it, and act. Return the seconds until the next check; None for no further check."""


class Watchdog:
    """What is checked, and when. `begin` and `end` may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[Watched, float] = {}
        """When to check each, in monotonic seconds."""
        self._set_to = math.inf
        self._timer = _LIBC.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        threading.Thread(target=self._run, name="libvirt watchdog", daemon=True).start()

    def begin(self, watched: Watched, after: float) -> None:
        """Check it after this many seconds."""
        with self._lock:
            self._due[watched] = time.monotonic() + after
            self._set()

    def end(self, watched: Watched) -> None:
        """Stop checking it; a check that has begun continues."""
        with self._lock:
            self._due.pop(watched, None)
            self._set()

    def _run(self) -> None:
        while True:
            os.read(self._timer, 8)
            self._look()

    def _look(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._set_to = math.inf
            due = [(watched, at) for watched, at in self._due.items() if at <= now]
        for watched, at in due:
            after = _look_at(watched)
            with self._lock:
                if self._due.get(watched) != at:  # it has ended, and may have begun again
                    continue
                if after is None:
                    del self._due[watched]
                else:
                    self._due[watched] = time.monotonic() + after
        with self._lock:
            self._set()

    def _set(self) -> None:
        """Set the timer to the earliest check. It is not set later when a call ends, only stopped after the last
        one."""
        first = min(self._due.values(), default=math.inf)
        if first < self._set_to:
            _set_timer(self._timer, max(first - time.monotonic(), _SHORTEST))
        elif first < math.inf or self._set_to == math.inf:
            return
        else:
            _set_timer(self._timer, 0.0)
        self._set_to = first


@cache
def watchdog() -> Watchdog:
    """Return this process's watchdog."""
    return Watchdog()


def _look_at(watched: Watched) -> float | None:
    try:
        return watched.look()
    except Exception:  # the thread must go on: it checks all connections
        log.exception("cannot check a libvirt call")
        return None


def _set_timer(timer: int, seconds: float) -> None:
    """Set a timer to expire once; 0 stops it."""
    full_seconds = int(seconds)
    once = (ctypes.c_long * 4)(0, 0, full_seconds, int((seconds - full_seconds) * 1e9))
    _LIBC.timerfd_settime(timer, 0, once, None)
