# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done for a launcher is done in a thread, one at a time for each Pod. A directory or a disk that a tenant
holds up costs that Pod's requests their turn, and neither the loop nor a neighbour.

A place is held until the thread ends, not until somebody stops waiting for it: so many threads there are at most,
whoever asks and takes back. Each thread is new and ends with its work: one that has entered a Pod's namespace is never
used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypeVar

from controlplane.process import threads
from controlplane.virt_node.inotify import NotYet

T = TypeVar("T")

LIMIT = 256
"""Threads in all; every launcher of a full node has one."""


@dataclass(slots=True)
class _Turn:
    """Of one Pod: first come, first served; whoever ends wakes one."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class Workers:
    """Threads by Pod UID."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._places = asyncio.Semaphore(limit)
        self._turns: dict[str, _Turn] = {}
        """Of the Pods that have a thread, or for which somebody waits."""

    @property
    def waited_for(self) -> int:
        """How many Pods there is something to do for."""
        return len(self._turns)

    async def run(self, pod_uid: str, work: Callable[[], T], drop: Callable[[T], object] = lambda _unused: None) -> T:
        """Do this in a thread when it is the Pod's turn; what it raises is raised here.

        drop: what to do with a result for which nobody waits any more.
        """
        leave = await self._enter(pod_uid)
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def forget(result: T | None, error: BaseException | None) -> None:
            if error is None:
                drop(result)  # type: ignore[arg-type]
            elif isinstance(error, NotYet):
                error.close()

        def settle(result: T | None, error: BaseException | None) -> None:
            leave()
            if outcome.done():
                forget(result, error)
            elif error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)  # type: ignore[arg-type]

        try:
            threads.start_thread(f"launcher {pod_uid}", work, settle)
        except RuntimeError:  # the node has no thread for it
            leave()
            raise
        try:
            return await outcome
        except asyncio.CancelledError:
            if outcome.done() and not outcome.cancelled():
                error = outcome.exception()
                forget(None if error is not None else outcome.result(), error)
            raise

    async def _enter(self, pod_uid: str) -> Callable[[], None]:
        """Wait for the Pod's turn and for a place; return how to give both back."""
        turn = self._turns.setdefault(pod_uid, _Turn())
        turn.wanted += 1

        def forget() -> None:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[pod_uid]

        with ExitStack() as stack:
            stack.callback(forget)
            await turn.lock.acquire()
            stack.callback(turn.lock.release)
            await self._places.acquire()
            stack.callback(self._places.release)
            held = stack.pop_all()
        return held.close
