# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is to start a domain on this node: as many at once as it has processors, the oldest first.

Machines that are all started at once side by side all end last. A place is a turn and no permission: it is lent for a
while, and a start that has not come to an end by then goes on without it. The next ones are lent for half as long each,
until one is given back in time: where many hang, they are not short of processors. A start of which nothing came before
comes after those that are tried for the first time, and there is one such at a time. A namespace that has no place
comes before those that have one, and finds one more.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

LENT_SECONDS, LENT_LEAST_SECONDS = 3.0, 0.1
"""A start takes 0.1 s to 0.5 s of a processor, and has it to share with the launchers that are being prepared."""
_PLACES_AT_LEAST = 2
"""With a single one whoever hangs would hold up its neighbours each time."""


def places_here() -> int:
    """Return how many domains are started at once on this machine."""
    return max(_PLACES_AT_LEAST, len(os.sched_getaffinity(0)))


@dataclass(frozen=True, slots=True)
class Turn:
    """A start that wants a place."""

    namespace: str
    since: str
    """When its run began, as the API server writes times: in order of text they are in order of time."""
    is_again: bool = False
    """Nothing came of the last one in this launcher."""


@dataclass(slots=True, eq=False)
class _Waiting:
    turn: Turn
    number: int
    """Of those that began in the same second, who came first."""
    has_come: asyncio.Future[None]


@dataclass(slots=True)
class Starts:
    """A node's places."""

    places: int = field(default_factory=places_here)
    lent_seconds: float = LENT_SECONDS
    _waiting: list[_Waiting] = field(default_factory=list, init=False)
    _held: list[Turn] = field(default_factory=list, init=False)
    _numbers: count[int] = field(default_factory=count, init=False)
    _overdue: int = field(default=0, init=False)
    """How many were taken back, since one was given back in time."""

    @asynccontextmanager
    async def place(self, turn: Turn) -> AsyncIterator[None]:
        """Hold a place inside the block, for a while at most; wait for it first, where there is none."""
        await self._wait(turn)
        lent = [turn]

        def take_back() -> None:
            self._overdue += 1
            self._free(lent.pop())

        ending = asyncio.get_running_loop().call_later(self._lent_seconds(), take_back)
        try:
            yield
        finally:
            ending.cancel()
            if lent:
                self._overdue = 0
                self._free(lent.pop())

    def _lent_seconds(self) -> float:
        return max(min(LENT_LEAST_SECONDS, self.lent_seconds), self.lent_seconds / 2.0 ** min(self._overdue, 30))

    async def _wait(self, turn: Turn) -> None:
        waiting = _Waiting(turn, next(self._numbers), asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._admit()
        try:
            await waiting.has_come
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            else:  # its turn came in the same moment
                self._free(turn)
            raise

    def _admit(self) -> None:
        while (waiting := self._choose()) is not None:
            self._waiting.remove(waiting)
            self._held.append(waiting.turn)
            waiting.has_come.set_result(None)

    def _choose(self) -> _Waiting | None:
        by_namespace = Counter(one.namespace for one in self._held)
        is_tried_again = any(one.is_again for one in self._held)
        left = self.places - len(self._held)

        def may_begin(one: _Waiting) -> bool:
            if one.has_come.cancelled() or (one.turn.is_again and is_tried_again):
                return False
            return left > 0 or (left == 0 and one.turn.namespace not in by_namespace)

        def rank(one: _Waiting) -> tuple[bool, int, str, int]:
            return one.turn.is_again, by_namespace[one.turn.namespace], one.turn.since, one.number

        return min(filter(may_begin, self._waiting), key=rank, default=None)

    def _free(self, turn: Turn) -> None:
        self._held.remove(turn)
        self._admit()
