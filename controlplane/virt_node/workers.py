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
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from controlplane.virt_node.inotify import NotYet

T = TypeVar("T")

LIMIT = 256
"""Threads in all; every launcher of a full node has one."""


class Workers:
    """Threads by Pod UID."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._places = asyncio.Semaphore(limit)
        self._busy: dict[str, asyncio.Future[None]] = {}
        """Done when the Pod's thread has ended."""

    async def run(self, pod_uid: str, work: Callable[[], T], drop: Callable[[T], object] = lambda _unused: None) -> T:
        """Do this in a thread when it is the Pod's turn; what it raises is raised here.

        drop: what to do with a result for which nobody waits any more.
        """
        loop = asyncio.get_running_loop()
        while (other := self._busy.get(pod_uid)) is not None:
            await asyncio.shield(other)
        ended: asyncio.Future[None] = loop.create_future()
        self._busy[pod_uid] = ended
        outcome: asyncio.Future[T] = loop.create_future()

        def leave() -> None:
            self._busy.pop(pod_uid, None)
            ended.set_result(None)

        def forget(result: T | None, error: BaseException | None) -> None:
            if error is None:
                drop(result)  # type: ignore[arg-type]
            elif isinstance(error, NotYet):
                error.close()

        try:
            await self._places.acquire()
        except BaseException:
            leave()
            raise

        def settle(result: T | None, error: BaseException | None) -> None:
            self._places.release()
            leave()
            if outcome.done():
                forget(result, error)
            elif error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(result)  # type: ignore[arg-type]

        def body() -> None:
            result: T | None = None
            failure: BaseException | None = None
            try:
                result = work()
            except BaseException as error:  # carried over to whoever waits, whatever it is
                failure = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, result, failure)

        threading.Thread(target=body, name=f"launcher {pod_uid}", daemon=True).start()
        try:
            return await outcome
        except asyncio.CancelledError:
            if outcome.done() and not outcome.cancelled():
                error = outcome.exception()
                forget(None if error is not None else outcome.result(), error)
            raise
