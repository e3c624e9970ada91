# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of our processor time one connection may use. Pure arithmetic; running.py and calls.py count and act.

Counted is processor time, not messages: a message may be a byte or megabytes, of a kind we asked for or of none.
An honest event costs about 0.1 ms, and a guest that does its worst makes a few in a second.
"""

from __future__ import annotations

import threading

BURST_SECONDS = 0.2
"""A start, with all its calls and events, takes 5 ms. But a garbage collection that falls into one of them is charged
to it as well, whoever made the garbage: 28 ms were measured, on a processor that is not slow."""
RATE = 0.05
"""Seconds of processor time that come back in a second: a connection may keep us busy for so great a part."""
TOO_MUCH = "it takes more than its share of our time"


class Bucket:
    """Holds so much at most, and fills again by the rate in a second. From any thread."""

    def __init__(self, most: float, rate: float) -> None:
        self.left = self.most = most
        self._rate = rate
        self._at = 0.0
        self._lock = threading.Lock()

    def take(self, amount: float, now: float) -> bool:
        """Count what was used; False when there was not so much left. now: monotonic seconds."""
        with self._lock:
            self.left = min(self.most, self.left + (now - self._at) * self._rate) - amount
            self._at = now
            return self.left >= 0.0


class Share(Bucket):
    """Of processor time."""

    def __init__(self) -> None:
        super().__init__(BURST_SECONDS, RATE)
