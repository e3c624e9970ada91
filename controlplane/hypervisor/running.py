# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt does in a thread of all connections: charged to its connection, and ended when it is held up.

A message may bring descriptors, which libvirt's read(2) does not take: the kernel closes them there. The last close of
a TCP socket that lingers waits for as long as its owner has written, and so would all that the loop does. Such a wait
is ended by a signal. Its connection is cut, as is one that takes more than its share while it is still being read.

Nobody is cut because the machine is slow: who waits for a processor, for memory or for another thread of ours is not
held by the other side.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from controlplane.hypervisor import share
from controlplane.hypervisor.intake import Meter
from controlplane.hypervisor.threads import is_held, processor_seconds
from controlplane.hypervisor.watch import watch
from controlplane.hypervisor.wire import HELD, Wire
from controlplane.process.thread_interrupt import interrupt

_FIRST_LOOK_SECONDS = _NEXT_LOOK_SECONDS = 0.05
"""All that is honest is over before the first."""
_SURE_SECONDS = 0.01
"""After so much more sleep, without a moment of work, it is no accident."""
_AGAIN_SECONDS = 0.001
"""A connection that is cut is read to its end: each message that lies there may hold us up again."""


class Running:
    """The callback that runs now, if any. Made in the thread that it is for."""

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self.meter = Meter(self._thread)
        self._lock = threading.Lock()
        self._is_running = False
        self._wire: Wire | None = None
        self._charged = 0.0
        """Processor time of the thread, up to which it is charged."""
        self._slept_at: float | None = None
        """Processor time at the last look, at which it slept."""

    def run(self, wire: Wire | None, callback: Callable[..., None], *arguments: Any) -> float:
        """Run a callback for a connection; return the processor time that it took."""
        self.meter.since()
        self._charged = began = time.thread_time()
        self._wire, self._slept_at, self._is_running = wire, None, True
        watch().begin(self, _FIRST_LOOK_SECONDS)
        try:
            callback(*arguments)
        finally:
            with self._lock:
                self._is_running = False  # from here on the signal would meet somebody else
            watch().end(self)
        used = time.thread_time()
        self._charge(used)
        return used - began

    def look(self) -> float | None:
        """See to it that it ends; in the watching thread."""
        with self._lock:
            if not self._is_running:
                return None
            used = processor_seconds(self._thread) or self._charged
            self._charge(used)
            slept_at, self._slept_at = self._slept_at, used
            if used != slept_at:
                return _SURE_SECONDS if self._held() else _NEXT_LOOK_SECONDS
            held = self._held()
            if held and self._wire is not None:
                self._wire.cut(HELD)
            for thread in held:
                interrupt(thread)
            return _AGAIN_SECONDS if held else _NEXT_LOOK_SECONDS

    def _held(self) -> list[int]:
        """List the threads that are held: this one, or one that works for the connection and has libvirt's locks."""
        others = self._wire.threads() if self._wire is not None else ()
        return [thread for thread in (self._thread, *others) if is_held(thread)]

    def _charge(self, used: float) -> None:
        amount, self._charged = used - self._charged, used
        if self._wire is None:
            return
        now = time.monotonic()
        if not self._wire.share.take(amount, now):
            self._wire.cut(share.TOO_MUCH)
        self._wire.took_in(self.meter.since(), now)
