# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new thread for each piece of work, one at a time for each Pod.

So a directory or disk that a tenant blocks delays only the requests for that Pod, and neither the loop nor other Pods.
A thread has a slot until it ends, not until its caller stops waiting, so the number of threads is limited even if
requests are cancelled. Threads are not reused: a thread that has entered a Pod's network namespace must not do other
work.
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
"""Threads in total; every launcher of a full node has one."""


@dataclass(slots=True)
class _Queue:
    """The order of one Pod's work: first come, first served."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0
    """How many pieces of work run or wait."""


class Workers:
    """Threads by Pod UID."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._queues: dict[str, _Queue] = {}
        """By UID of a Pod with a thread or waiting work."""

    @property
    def waited_for(self) -> int:
        """How many Pods have a thread or waiting work."""
        return len(self._queues)

    async def run(self, pod_uid: str, work: Callable[[], T], drop: Callable[[T], object] = lambda _unused: None) -> T:
        """Run work in a thread, after earlier work for the Pod. Raises its exceptions.

        drop: frees a result whose caller was cancelled.
        """
        release = await self._enter(pod_uid)
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def forget(result: T | None, error: BaseException | None) -> None:
            if error is None:
                drop(result)  # type: ignore[arg-type]
            elif isinstance(error, NotYet):
                error.close()

        def settle(result: T | None, error: BaseException | None) -> None:
            release()
            if outcome.done():
                forget(result, error)
            elif error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)  # type: ignore[arg-type]

        try:
            threads.start_thread(f"launcher {pod_uid}", work, settle)
        except RuntimeError:  # no thread can be started
            release()
            raise
        try:
            return await outcome
        except asyncio.CancelledError:
            if outcome.done() and not outcome.cancelled():
                error = outcome.exception()
                forget(None if error is not None else outcome.result(), error)
            raise

    async def _enter(self, pod_uid: str) -> Callable[[], None]:
        """Wait for the end of the Pod's earlier work and for a free slot; return a function that releases both."""
        queue = self._queues.setdefault(pod_uid, _Queue())
        queue.wanted += 1

        def forget() -> None:
            queue.wanted -= 1
            if not queue.wanted:
                del self._queues[pod_uid]

        with ExitStack() as stack:
            stack.callback(forget)
            await queue.lock.acquire()
            stack.callback(queue.lock.release)
            await self._slots.acquire()
            stack.callback(self._slots.release)
            acquired = stack.pop_all()
        return acquired.close
