# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The work queue of a controller: keys, never events. Every method takes the time, none waits.

One worker at a time has a key. A key that is added meanwhile comes again afterwards. While a key fails, no event brings
it back before its back-off has passed: a storm of events about a broken object stays cheap.

Namespaces take turns among the keys that are due: the next key is of the namespace with the fewest running reconciles,
among those of the one served longest ago; within a namespace it is the key that is due longest. A namespace with many
keys delays another by one turn at most.
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
    """(due, arrival) of the keys that are not yet due."""
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    """(due, arrival, key). Entries that differ from _due are stale; they are never more than half."""
    _ready: OrderedDict[str, OrderedDict[Key, float]] = field(default_factory=OrderedDict)
    """By namespace, the one served longest ago first: the keys that are due, and since when."""
    _arrivals: int = 0
    _taken: set[Key] = field(default_factory=set)
    _running: Counter[str] = field(default_factory=Counter)
    """How many keys of each namespace are taken."""
    _again: set[Key] = field(default_factory=set)
    _not_before: dict[Key, float] = field(default_factory=dict)

    def add(self, key: Key, now: float, *, after: float = 0.0) -> None:
        """Enqueue a key in `after` seconds, or sooner if it is already enqueued."""
        if key in self._taken:
            if after <= 0:
                self._again.add(key)
            return
        if key in self._ready.get(key.namespace, ()):
            return
        due = max(now + after, self._not_before.get(key, now))
        if key not in self._due or due < self._due[key][0]:
            self._push(key, due)

    def take(self, now: float) -> Key | None:
        """Take the next key that is due; the caller must call `finish`."""
        self._move_due(now)
        if not self._ready:
            return None
        namespace = self._next_namespace()
        waiting = self._ready[namespace]
        key, _unused = waiting.popitem(last=False)
        if waiting:
            self._ready.move_to_end(namespace)
        else:
            del self._ready[namespace]
        self._not_before.pop(key, None)
        self._taken.add(key)
        self._running[namespace] += 1
        return key

    def _next_namespace(self) -> str:
        """Return the namespace with the fewest taken keys; of several the one served longest ago.

        At most as many namespaces as workers have taken keys, so an idle one is found soon among thousands.
        """
        idle = next((namespace for namespace in self._ready if namespace not in self._running), None)
        return min(self._ready, key=lambda namespace: self._running[namespace]) if idle is None else idle

    def finish(self, key: Key, now: float, *, failed: bool, requeue_after: float | None = None) -> None:
        """Return a taken key. failed: back off for at least requeue_after; otherwise reset its back-off."""
        self._taken.remove(key)
        self._running[key.namespace] -= 1
        if not self._running[key.namespace]:
            del self._running[key.namespace]
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
        """When the next key becomes, or became, due; None for an empty queue."""
        self._drop_stale()
        earliest = min((next(iter(waiting.values())) for waiting in self._ready.values()), default=None)
        if earliest is not None:
            return earliest
        return self._heap[0][0] if self._heap else None

    @property
    def added(self) -> int:
        """How often a key was enqueued, retries included."""
        return self._arrivals

    def depth(self, now: float) -> int:
        """Return how many keys are due and not taken. May be called in another thread."""
        due = sum(1 for due, _unused in list(self._due.values()) if due <= now)
        return due + sum(map(len, list(self._ready.values())))

    def __len__(self) -> int:
        return len(self._due) + sum(map(len, self._ready.values())) + len(self._taken)

    def _move_due(self, now: float) -> None:
        """Move the keys that are due to their namespaces."""
        self._drop_stale()
        while self._heap and self._heap[0][0] <= now:
            due, _unused, key = heapq.heappop(self._heap)
            del self._due[key]
            self._ready.setdefault(key.namespace, OrderedDict())[key] = due
            self._drop_stale()

    def _drop_stale(self) -> None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)

    def _push(self, key: Key, due: float) -> None:
        self._arrivals += 1
        self._due[key] = due, self._arrivals
        heapq.heappush(self._heap, (due, self._arrivals, key))
        if len(self._heap) > 2 * len(self._due):
            self._heap = [(*entry, waiting) for waiting, entry in self._due.items()]
            heapq.heapify(self._heap)
