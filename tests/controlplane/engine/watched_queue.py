# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real queue beside a plain model: no key comes late, early, never or out of order, nor before a waiting namespace
with fewer keys in progress.

A late key shows no wrong result: mostly another change brings it back before.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff
from controlplane.engine.work_queue import WorkQueue

FIRST_SECONDS, LAST_SECONDS = 0.05, 30.0
"""Of the back-off."""


class WatchedQueue(WorkQueue):
    """Reports to `complain` where it differs from the model."""

    __slots__ = ("_again_asked", "_complain", "_drawn", "_failed", "_floors", "_held", "_rng", "_wanted")

    def __init__(self, rng: random.Random, complain: Callable[[str], None]) -> None:
        super().__init__(BackOff(self._draw))
        self._rng = rng
        self._complain = complain
        self._drawn = 0.0
        self._wanted: dict[Key, float] = {}
        """When each key is due."""
        self._held: set[Key] = set()
        self._again_asked: set[Key] = set()
        self._floors: dict[Key, float] = {}
        """The time before which a failed key does not come back."""
        self._failed: dict[Key, int] = {}

    def add(self, key: Key, now: float, *, after: float = 0.0) -> None:
        super().add(key, now, after=after)
        if key not in self._held:
            due = max(now + after, self._floors.get(key, now))
            self._wanted[key] = min(due, self._wanted.get(key, due))
        elif after <= 0:
            self._again_asked.add(key)
        self._compare(f"{key} was added")

    def take(self, now: float) -> Key | None:
        firsts = self._firsts(now)
        key = super().take(now)
        if key is None:
            if firsts:
                self._complain(f"a turn was due {now - min(firsts.values()):.2f} s ago, and nobody gets it")
            return None
        due, first = self._wanted.pop(key, None), firsts.get(key.namespace)
        if due is None or due > now or due != first:
            self._complain(f"{key} is taken at {now:.2f}, it was due at {due}, and another there at {first}")
        in_progress = Counter(item.namespace for item in self._held)
        if any(in_progress[item] < in_progress[key.namespace] for item in firsts):
            self._complain(f"{key} is taken, and another namespace that waits has fewer under way")
        self._floors.pop(key, None)
        self._held.add(key)
        return key

    def finish(self, key: Key, now: float, *, failed: bool, requeue_after: float | None = None) -> None:
        super().finish(key, now, failed=failed, requeue_after=requeue_after)
        is_asked = key in self._again_asked
        self._again_asked.discard(key)
        self._held.discard(key)
        if failed:
            self._floors[key] = self._wanted[key] = now + max(self._back_off(key), requeue_after or 0.0)
        else:
            self._failed.pop(key, None)
            if is_asked or requeue_after is not None:
                self._wanted[key] = now if is_asked else now + max(0.0, requeue_after or 0.0)
        self._compare(f"{key} was finished")

    def due_at(self, key: Key) -> float | None:
        """Return when the model hands out the key; None while it is not queued or in progress."""
        return self._wanted.get(key)

    def is_held(self, key: Key) -> bool:
        """Whether the key is in progress."""
        return key in self._held

    def is_backing_off(self, key: Key) -> bool:
        return key in self._failed

    def _firsts(self, now: float) -> dict[str, float]:
        """Return for each waiting namespace since when its first key is due."""
        firsts: dict[str, float] = {}
        for key, due in self._wanted.items():
            if due <= now:
                firsts[key.namespace] = min(due, firsts.get(key.namespace, due))
        return firsts

    def _back_off(self, key: Key) -> float:
        count = self._failed.get(key, 0)
        self._failed[key] = count + 1
        whole = min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(count, 30))
        return whole * (0.5 + self._drawn / 2)

    def _draw(self) -> float:
        self._drawn = self._rng.random()
        return self._drawn

    def _compare(self, after: str) -> None:
        due, expected = super().next_due(), min(self._wanted.values(), default=None)
        if due != expected:
            self._complain(f"{after}, and the next turn is due at {due}, not at {expected}")
