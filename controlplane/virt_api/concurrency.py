# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Concurrency limits: at most so many requests, or threads, at once. The others wait in order for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from controlplane.http_server.quotas import BusyError

WAIT_SECONDS = 10.0
"""The API server has given up by then (timeoutSeconds of the webhooks): nobody reads the response."""

T = TypeVar("T")


class ConcurrencyLimit:
    """At most so many at once."""

    def __init__(self, number: int) -> None:
        self._semaphore = asyncio.Semaphore(number)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Have one of the slots inside the block. Raises BusyError when none becomes free in time."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._semaphore.acquire()
        except TimeoutError as error:
            raise BusyError("virt-api is busy; no slot became free in time") from error
        try:
            yield
        finally:
            self._semaphore.release()


class WorkerThreads:
    """Threads for work that takes long. Validating an object of the largest size takes most of a second.

    On the event loop that second would delay all other requests and the health check.
    """

    def __init__(self, number: int) -> None:
        self._limit = ConcurrencyLimit(number)
        self._threads = ThreadPoolExecutor(number, "worker")

    async def run(self, work: Callable[[], T]) -> T:
        """Call in a thread. Raises BusyError when none becomes free in time."""
        async with self._limit.slot():
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def close(self) -> None:
        """Start nothing more; what runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
