# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is next at virt-api: turns at what is worked. Pure; who waits is in reviews, shares of what is held in shares.

Whoever reaches the port may send reviews, and the API server's own come by the same door. A peer is an address, and
turns are by peers, never by requests, so that nobody gets more by asking more.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Generic, TypeVar

HALF_LIFE_SECONDS = 30.0
"""In which the time that a peer used counts half."""
MOST_REMEMBERED = 4096

T = TypeVar("T")


class Turns(Generic[T]):
    """Who is next: of the peers that wait, the one that used the least time lately; its oldest first."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[T]] = {}
        self._used: dict[str, tuple[float, float]] = {}

    def wait(self, peer: str, item: T) -> None:
        self._waiting.setdefault(peer, deque()).append(item)

    def leave(self, peer: str, item: T) -> None:
        """Do not wait any more. Whoever has had its turn is not in here."""
        queue = self._waiting.get(peer, deque())
        if item in queue:
            queue.remove(item)
        if not queue:
            self._waiting.pop(peer, None)

    def next(self, now: float) -> T | None:
        """Return whose turn it is, None when nobody waits."""
        if not self._waiting:
            return None
        peer = min(self._waiting, key=lambda one: self._seconds(one, now))
        item = self._waiting[peer].popleft()
        if not self._waiting[peer]:
            del self._waiting[peer]
        return item

    def used(self, peer: str, seconds: float, now: float) -> None:
        """Note what a turn took."""
        self._used[peer] = (self._seconds(peer, now) + seconds, now)
        if len(self._used) > MOST_REMEMBERED:
            least = sorted(self._used, key=lambda one: self._seconds(one, now))
            for one in least[: MOST_REMEMBERED // 2]:
                del self._used[one]

    def _seconds(self, peer: str, now: float) -> float:
        seconds, at = self._used.get(peer, (0.0, now))
        return seconds * math.pow(0.5, max(0.0, now - at) / HALF_LIFE_SECONDS)
