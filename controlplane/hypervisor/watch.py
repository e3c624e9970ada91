# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One thread that looks at what of libvirt's is under way, at times that are set before it begins.

Not the event loop, which would be blind whenever it is held up. The thread waits for a timer of the kernel's
(timerfd), which costs 2 us to set and to stop: nearly everything is over before the first look, so it sleeps on.
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
"""Calls that do not wait, and for which nobody else has to get Python's lock."""
_SHORTEST = 1e-6
"""Of no seconds at all a timer is made that never ends."""


class Watched(Protocol):
    """What is under way, as the thread knows it."""

    def look(self) -> float | None:
        """Look, and do what is to be done. Return after how many seconds to come again; None: not any more."""


class Watch:
    """Everything that is looked at; `begin` and `end` from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[Watched, float] = {}
        """When to look at each, in monotonic seconds."""
        self._set_to = math.inf
        self._timer = _LIBC.timerfd_create(time.CLOCK_MONOTONIC, os.O_CLOEXEC)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        threading.Thread(target=self._run, name="watch over libvirt", daemon=True).start()

    def begin(self, what: Watched, after: float) -> None:
        """Look at it when so many seconds have passed."""
        with self._lock:
            self._due[what] = time.monotonic() + after
            self._set()

    def end(self, what: Watched) -> None:
        """Look at it no more; a look that has begun goes on."""
        with self._lock:
            self._due.pop(what, None)
            self._set()

    def _run(self) -> None:
        while True:
            os.read(self._timer, 8)
            self._look()

    def _look(self) -> None:
        now = time.monotonic()
        with self._lock:
            self._set_to = math.inf
            due = [(one, at) for one, at in self._due.items() if at <= now]
        for one, at in due:
            after = _look_at(one)
            with self._lock:
                if self._due.get(one) != at:  # it has ended, or ended and begun again
                    continue
                if after is None:
                    del self._due[one]
                else:
                    self._due[one] = time.monotonic() + after
        with self._lock:
            self._set()

    def _set(self) -> None:
        """Have the timer end for what is due first. For what has ended it may end in vain, unless it is the last."""
        first = min(self._due.values(), default=math.inf)
        if first < self._set_to:
            _set_timer(self._timer, max(first - time.monotonic(), _SHORTEST))
        elif first < math.inf or self._set_to == math.inf:
            return
        else:
            _set_timer(self._timer, 0.0)
        self._set_to = first


@cache
def watch() -> Watch:
    """Return the one of this process, which stays for as long as it runs."""
    return Watch()


def _look_at(one: Watched) -> float | None:
    try:
        return one.look()
    except Exception:  # or nobody would be looked at any more
        log.exception("cannot look at what libvirt does")
        return None


def _set_timer(timer: int, seconds: float) -> None:
    """Have a timer end once after so long; 0: never."""
    whole = int(seconds)
    once = (ctypes.c_long * 4)(0, 0, whole, int((seconds - whole) * 1e9))
    _LIBC.timerfd_settime(timer, 0, once, None)
