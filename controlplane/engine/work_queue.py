# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is: keys, never events. Loop-agnostic: every method takes the time, none waits.

A key is worked on by one worker at a time. A key that is added while it is worked on comes again afterwards. While a
key fails, no cause brings it back before its back-off has passed: a storm of events about a broken object stays cheap.

Of the keys that are due, namespaces have turns: next is one of whichever has the fewest under way, and of those whose
last turn is longest ago; in a namespace whoever has been due longest. However many keys somebody has in theirs, they
keep nobody else's waiting for longer than a turn of each.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff


@dataclass(slots=True)
class WorkQueue:
    backoff: BackOff
    _due: dict[Key, tuple[float, int]] = field(default_factory=dict)
    """(due, arrival) of the keys that wait for their time."""
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    """(due, arrival, key); an entry counts only while _due agrees with it, and those that do not are never the most."""
    _ripe: OrderedDict[str, OrderedDict[Key, float]] = field(default_factory=OrderedDict)
    """By namespace, whose turn is longest ago first: since when each key whose time has come waits for its turn."""
    _arrivals: int = 0
    _working: set[Key] = field(default_factory=set)
    _at_work: Counter[str] = field(default_factory=Counter)
    """How many keys of each namespace are worked on."""
    _again: set[Key] = field(default_factory=set)
    _not_before: dict[Key, float] = field(default_factory=dict)

    def add(self, key: Key, now: float, *, after: float = 0.0) -> None:
        """Ask for a pass over key in `after` seconds, or sooner if one is already asked for."""
        if key in self._working:
            if after <= 0:
                self._again.add(key)
            return
        if key in self._ripe.get(key.namespace, ()):
            return
        due = max(now + after, self._not_before.get(key, now))
        if key not in self._due or due < self._due[key][0]:
            self._push(key, due)

    def take(self, now: float) -> Key | None:
        """Hand out the key whose turn it is; the caller owes a `finish`."""
        self._ripen(now)
        if not self._ripe:
            return None
        namespace = self._whose_turn()
        waiting = self._ripe[namespace]
        key, _unused = waiting.popitem(last=False)
        if waiting:
            self._ripe.move_to_end(namespace)
        else:
            del self._ripe[namespace]
        self._not_before.pop(key, None)
        self._working.add(key)
        self._at_work[namespace] += 1
        return key

    def _whose_turn(self) -> str:
        """Name the namespace with the fewest keys under way; of several the first, whose turn is longest ago.

        No more have any than there are workers, so that among thousands the first that has none is soon found.
        """
        idle = next((one for one in self._ripe if one not in self._at_work), None)
        return min(self._ripe, key=lambda one: self._at_work[one]) if idle is None else idle

    def finish(self, key: Key, now: float, *, failed: bool, requeue_after: float | None = None) -> None:
        """Return a taken key. failed: back off, requeue_after at least; otherwise its failures are forgotten."""
        self._working.remove(key)
        self._at_work[key.namespace] -= 1
        if not self._at_work[key.namespace]:
            del self._at_work[key.namespace]
        again = key in self._again
        self._again.discard(key)
        if failed:
            self._not_before[key] = now + max(self.backoff.fail(key), requeue_after or 0.0)
            self._push(key, self._not_before[key])
            return
        self.backoff.forget(key)
        if again:
            self._push(key, now)
        elif requeue_after is not None:
            self._push(key, now + max(0.0, requeue_after))

    def next_due(self) -> float | None:
        """When the next key becomes due, or became it; None while nothing waits."""
        self._drop_stale()
        ripe = min((next(iter(waiting.values())) for waiting in self._ripe.values()), default=None)
        if ripe is not None:
            return ripe
        return self._heap[0][0] if self._heap else None

    def __len__(self) -> int:
        return len(self._due) + sum(map(len, self._ripe.values())) + len(self._working)

    def _ripen(self, now: float) -> None:
        """Have those whose time has come wait for their turn."""
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            due, _unused, key = heapq.heappop(self._heap)
            del self._due[key]
            self._ripe.setdefault(key.namespace, OrderedDict())[key] = due
            self._drop_stale()

    def _drop_stale(self) -> None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)

    def _push(self, key: Key, due: float) -> None:
        self._arrivals += 1
        self._due[key] = due, self._arrivals
        heapq.heappush(self._heap, (due, self._arrivals, key))
        if len(self._heap) > 2 * len(self._due):
            self._heap = [(*entry, one) for one, entry in self._due.items()]
            heapq.heapify(self._heap)
