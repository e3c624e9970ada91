# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of our processor time one connection may use. Pure; callback_runner.py and calls.py measure and act.

Processor time is counted, not messages: a message has one byte or megabytes. An ordinary event costs about 0.1 ms, and
a busy guest causes a few in a second.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

BURST_SECONDS = 0.2
"""A start with all its calls and events takes 5 ms. A garbage collection during a call is charged to that call as well,
even if others caused it: 28 ms were measured on a fast processor."""
RATE = 0.05
"""Seconds of processor time that come back in a second, so one connection can use 5 % of a processor."""
CPU_QUOTA_EXCEEDED = "it uses more processor time than its quota"


class TokenBucket:
    """Has a capacity, and refills at a rate per second. From any thread."""

    def __init__(self, most: float, rate: float) -> None:
        self.left = self.most = most
        self._rate = rate
        self._at = 0.0
        self._lock = threading.Lock()

    def take(self, amount: float, now: float) -> bool:
        """Count what was used; False when that is more than was left. now: monotonic seconds."""
        with self._lock:
            self.left = min(self.most, self.left + (now - self._at) * self._rate) - amount
            self._at = now
            return self.left >= 0.0

    @contextmanager
    def extended(self, amount: float) -> Iterator[None]:
        """Raise the capacity by this amount inside the block."""
        with self._lock:
            before = self.left
            self.most += amount
            self.left += amount
        try:
            yield
        finally:
            self._narrow(amount, before)

    def _narrow(self, amount: float, before: float) -> None:
        with self._lock:
            self.most -= amount
            self.left = min(self.left, before)  # an unused rest is not kept


class CpuQuota(TokenBucket):
    """Seconds of processor time."""

    def __init__(self) -> None:
        super().__init__(BURST_SECONDS, RATE)
