# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns at what is short: places, and threads that judge objects. Whose turn it is, fair says; for what, whoever asks.

To judge an object of the largest size takes most of a second. On the loop that second would be everybody's: the other
reviews', start's and stop's, the health check's. A thread takes the interpreter for a moment at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from controlplane.engine.ports import Clock
from controlplane.virt_api.fair import Turns

TURN_SECONDS = 10.0
"""The API server has given up by then (timeoutSeconds of the webhooks): nobody reads the answer."""

T = TypeVar("T")


class BusyError(Exception):
    """This peer, or tenant, has as much of virt-api as it can get now."""


class Places:
    """So many at once, had fairly by peer, and of a peer by tenant: next is who used the least time lately."""

    def __init__(self, clock: Clock, number: int) -> None:
        self._clock = clock
        self._turns: Turns[asyncio.Future[None]] = Turns()
        self._idle = number
        self.waiting = 0
        """How many have no turn yet."""

    @asynccontextmanager
    async def turn(self, peer: str, tenant: str = "") -> AsyncIterator[None]:
        """Have a place inside the block. Raises BusyError."""
        turn = asyncio.get_running_loop().create_future()
        self._turns.wait(peer, turn, tenant)
        self.waiting += 1
        self._grant()
        try:
            await asyncio.wait({turn}, timeout=TURN_SECONDS)
            if not turn.done():
                raise BusyError("no turn came within the time in which anybody waits for the answer")
            began = self._clock.monotonic()
            try:
                yield
            finally:
                now = self._clock.monotonic()
                self._turns.used(peer, now - began, now, tenant)
        finally:
            if turn.done():
                self._idle += 1
                self._grant()
            else:
                self._turns.leave(peer, turn, tenant)
                self.waiting -= 1

    def _grant(self) -> None:
        while self._idle and (turn := self._turns.next(self._clock.monotonic())) is not None:
            self._idle -= 1
            self.waiting -= 1
            turn.set_result(None)


class Judges:
    """So many threads, had by turns."""

    def __init__(self, clock: Clock, threads: int) -> None:
        self._places = Places(clock, threads)
        self._threads = ThreadPoolExecutor(threads, "judge")

    async def judge(self, peer: str, verdict: Callable[[], T], tenant: str = "") -> T:
        """Call in a thread when it is their turn. Raises BusyError."""
        async with self._places.turn(peer, tenant):
            return await asyncio.get_running_loop().run_in_executor(self._threads, verdict)

    def close(self) -> None:
        """Take no more; what is being judged ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
