# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run libvirt's callbacks on the event loop: charge them to their connection, and interrupt one that blocks.

A message can bring descriptors, which libvirt's read(2) does not take, so the kernel closes them in that call. The last
close of a TCP socket with SO_LINGER waits as long as its owner has set, and the whole event loop with it. A signal ends
that wait, and the connection is cut. A connection that exceeds its quota during a callback is cut as well.

No connection is cut because the machine is slow: a thread that waits for a processor, for memory or for another thread
of this process does not count as blocked by the peer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from controlplane.hypervisor.cpu_quota import CPU_QUOTA_EXCEEDED
from controlplane.hypervisor.receive_quota import ReadMeter
from controlplane.hypervisor.threads import is_blocked_by_peer, processor_seconds
from controlplane.hypervisor.transport import BLOCKED_BY_PEER, Transport
from controlplane.hypervisor.watchdog import watchdog
from controlplane.process.thread_interrupt import interrupt

_FIRST_LOOK_SECONDS = _NEXT_LOOK_SECONDS = 0.05
"""Ordinary callbacks end before the first check."""
_SURE_SECONDS = 0.01
"""A thread that slept at two checks this far apart, and used no processor time in between, is blocked."""
_AGAIN_SECONDS = 0.001
"""A cut connection is read to its end, and each message in it may block again."""


class CallbackRunner:
    """Runs callbacks of one thread, the one that makes this object."""

    def __init__(self) -> None:
        self._thread = threading.get_native_id()
        self.meter = ReadMeter(self._thread)
        self._lock = threading.Lock()
        self._is_running = False
        self._transport: Transport | None = None
        self._charged = 0.0
        """The thread's processor time that has been charged."""
        self._slept_at: float | None = None
        """The thread's processor time at the last check."""

    def run(self, transport: Transport | None, callback: Callable[..., None], *arguments: Any) -> float:
        """Run a callback for a connection; return its processor time in seconds."""
        self.meter.since()
        self._charged = began = time.thread_time()
        self._transport, self._slept_at, self._is_running = transport, None, True
        watchdog().begin(self, _FIRST_LOOK_SECONDS)
        try:
            callback(*arguments)
        finally:
            with self._lock:
                self._is_running = False  # from here on a signal would interrupt other work
            watchdog().end(self)
        used = time.thread_time()
        self._charge(used)
        return used - began

    def look(self) -> float | None:
        """Charge the callback, and interrupt it when it is blocked. Called in the watchdog's thread."""
        with self._lock:
            if not self._is_running:
                return None
            used = processor_seconds(self._thread) or self._charged
            self._charge(used)
            slept_at, self._slept_at = self._slept_at, used
            if used != slept_at:
                return _SURE_SECONDS if self._blocked() else _NEXT_LOOK_SECONDS
            blocked = self._blocked()
            if blocked and self._transport is not None:
                self._transport.cut(BLOCKED_BY_PEER)
            for thread in blocked:
                interrupt(thread)
            return _AGAIN_SECONDS if blocked else _NEXT_LOOK_SECONDS

    def _blocked(self) -> list[int]:
        """Return the blocked threads: this one, and those of the connection's calls, which may hold libvirt's locks."""
        call_threads = self._transport.threads() if self._transport is not None else ()
        return [thread for thread in (self._thread, *call_threads) if is_blocked_by_peer(thread)]

    def _charge(self, used: float) -> None:
        amount, self._charged = used - self._charged, used
        if self._transport is None:
            return
        now = time.monotonic()
        if not self._transport.cpu_quota.take(amount, now):
            self._transport.cut(CPU_QUOTA_EXCEEDED)
        self._transport.count_received(self.meter.since(), now)
