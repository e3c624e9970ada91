# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is next at virt-api: turns at what is worked. Pure; who waits is in reviews, shares of what is held in shares.

Whoever reaches the port may send reviews, and the API server's own come by the same door. A peer is an address, and
turns are by peers, never by requests, so that nobody gets more by asking more.

All users come by the one API server, so a peer's turns are divided by tenant: the namespace that is written about. What
a request says of it is its sender's claim, and divides that peer's turns only.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Generic, TypeVar

HALF_LIFE_SECONDS = 30.0
"""In which the time that somebody used counts half."""
MOST_REMEMBERED = 4096

T = TypeVar("T")
K = TypeVar("K")


class Turns(Generic[T]):
    """Who is next: of the peers that wait, the one that used the least time lately; of its tenants likewise; then the
    oldest.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, deque[T]]] = {}
        self._used: _Used[str] = _Used()
        self._used_by_tenant: _Used[tuple[str, str]] = _Used()

    def wait(self, peer: str, item: T, tenant: str = "") -> None:
        self._waiting.setdefault(peer, {}).setdefault(tenant, deque()).append(item)

    def leave(self, peer: str, item: T, tenant: str = "") -> None:
        """Do not wait any more. Whoever has had its turn is not in here."""
        queue = self._waiting.get(peer, {}).get(tenant, deque())
        if item in queue:
            queue.remove(item)
            self._tidy(peer, tenant)

    def next(self, now: float) -> T | None:
        """Return whose turn it is, None when nobody waits."""
        if not self._waiting:
            return None
        peer = min(self._waiting, key=lambda one: self._used.seconds(one, now))
        tenants = self._waiting[peer]
        tenant = min(tenants, key=lambda one: self._used_by_tenant.seconds((peer, one), now))
        item = tenants[tenant].popleft()
        self._tidy(peer, tenant)
        return item

    def used(self, peer: str, seconds: float, now: float, tenant: str = "") -> None:
        """Note what a turn took."""
        self._used.add(peer, seconds, now)
        self._used_by_tenant.add((peer, tenant), seconds, now)

    def _tidy(self, peer: str, tenant: str) -> None:
        if not self._waiting[peer][tenant]:
            del self._waiting[peer][tenant]
        if not self._waiting[peer]:
            del self._waiting[peer]


class _Used(Generic[K]):
    """Time that was used lately, by whom; of very many, those that used most are remembered."""

    def __init__(self) -> None:
        self._by: dict[K, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._by)

    def seconds(self, who: K, now: float) -> float:
        seconds, at = self._by.get(who, (0.0, now))
        return seconds * math.pow(0.5, max(0.0, now - at) / HALF_LIFE_SECONDS)

    def add(self, who: K, seconds: float, now: float) -> None:
        self._by[who] = (self.seconds(who, now) + seconds, now)
        if len(self._by) > MOST_REMEMBERED:
            least = sorted(self._by, key=lambda one: self.seconds(one, now))
            for one in least[: MOST_REMEMBERED // 2]:
                del self._by[one]
