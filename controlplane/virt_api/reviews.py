# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews by turns: each is read into a bounded room and judged in a thread. Whose turn it is, fair says.

To judge an object of the largest size takes most of a second. On the loop that second would be everybody's: the other
reviews', start's and stop's, the health check's. A thread takes the interpreter for a moment at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

from controlplane.engine.ports import Clock
from controlplane.shares import Shares
from controlplane.virt_api.admit import Admission
from controlplane.virt_api.answer import Answer
from controlplane.virt_api.fair import Turns
from controlplane.virt_api.routes import ToHook

THREADS = 2
"""A small review need not wait for a large one; more would only share one interpreter among them."""
ROOM_BYTES = 48 * 1024 * 1024
"""Of bodies that wait or are judged."""
TURN_SECONDS = 10.0
"""The API server has given up by then (timeoutSeconds of the webhooks): nobody reads the answer."""

Charge = Callable[[int], None]
"""Called with the number of bytes before they are kept. Raises BusyError."""
Read = Callable[[Charge], Awaitable[bytes]]


class BusyError(Exception):
    """This peer has as much of virt-api as it can get now."""


class Reviews:
    """Answers reviews, fairly by peer."""

    def __init__(self, admission: Admission, clock: Clock, *, room_bytes: int = ROOM_BYTES) -> None:
        self._admission = admission
        self._clock = clock
        self._room = Shares(room_bytes)
        self._turns: Turns[asyncio.Future[None]] = Turns()
        self._threads = ThreadPoolExecutor(THREADS, "review")
        self._idle = THREADS

    async def answer(self, peer: str, route: ToHook, read: Read) -> Answer:
        """Read one review and judge it. Raises BusyError, and what reading raises."""
        held = 0

        def charge(amount: int) -> None:
            nonlocal held
            if not self._room.take(peer, amount):
                raise BusyError("too many reviews of this peer are held already")
            held += amount

        try:
            body = await read(charge)
            async with self._turn(peer):
                began = self._clock.monotonic()
                try:
                    return await self._judge(route, body)
                finally:
                    now = self._clock.monotonic()
                    self._turns.used(peer, now - began, now)
        finally:
            self._room.give_back(peer, held)

    def close(self) -> None:
        """Take no more; what is being judged ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _judge(self, route: ToHook, body: bytes) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._admission.answer, route, body)

    @asynccontextmanager
    async def _turn(self, peer: str) -> AsyncIterator[None]:
        turn = asyncio.get_running_loop().create_future()
        self._turns.wait(peer, turn)
        self._grant()
        try:
            await asyncio.wait({turn}, timeout=TURN_SECONDS)
            if not turn.done():
                raise BusyError("no turn came within the time in which anybody waits for the answer")
            yield
        finally:
            if turn.done():
                self._idle += 1
                self._grant()
            else:
                self._turns.leave(peer, turn)

    def _grant(self) -> None:
        while self._idle and (turn := self._turns.next(self._clock.monotonic())) is not None:
            self._idle -= 1
            turn.set_result(None)
