# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The asyncio shell around work queue and reconcile: a limited number of workers, one per key. No decisions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Conflict
from controlplane.engine.plan import ActionT, Outcome, Reconciler, StatusT, WorldT
from controlplane.engine.ports import Clock
from controlplane.engine.reconcile import reconcile
from controlplane.engine.work_queue import WorkQueue

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Load:
    """What a runner has to do at one moment."""

    added: int
    """How often a key was enqueued since the process began, retries included."""
    depth: int
    """Keys that wait for a worker."""
    running_seconds: float
    """For how long the running reconciles have run, together."""
    longest_seconds: float
    """For how long the oldest of them has."""


class Runner(Generic[WorldT, ActionT, StatusT]):
    """Runs one reconciler until cancelled. `add` may be called from any callback on the loop."""

    def __init__(
        self,
        name: str,
        reconciler: Reconciler[WorldT, ActionT, StatusT],
        queue: WorkQueue,
        clock: Clock,
        *,
        limit: int = 10,
        observed: Callable[[str, Outcome, float], None] | None = None,
    ) -> None:
        """observed: called with the name, the outcome and the duration in seconds of every reconcile (metrics)."""
        self.name = name
        self._reconciler = reconciler
        self._queue = queue
        self._clock = clock
        self._limit = limit
        self._observed = observed
        self._changed = asyncio.Event()
        self._began: dict[Key, float] = {}
        """When each running reconcile began."""

    def load(self) -> Load:
        """Return the load. May be called in another thread."""
        now = self._clock.monotonic()
        running = [now - began for began in list(self._began.values())]
        return Load(self._queue.added, self._queue.depth(now), sum(running), max(running, default=0.0))

    def add(self, key: Key, *, after: float = 0.0) -> None:
        """Enqueue a key, after so many seconds."""
        self._queue.add(key, self._clock.monotonic(), after=after)
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled, running reconciles included."""
        async with asyncio.TaskGroup() as workers:
            while True:
                self._changed.clear()
                self._start_due(workers)
                try:
                    async with asyncio.timeout(self._pause()):
                        await self._changed.wait()
                except TimeoutError:
                    pass

    def _start_due(self, workers: asyncio.TaskGroup) -> None:
        while len(self._began) < self._limit and (key := self._queue.take(self._clock.monotonic())) is not None:
            self._began[key] = self._clock.monotonic()
            workers.create_task(self._work(key))

    def _pause(self) -> float | None:
        if len(self._began) >= self._limit:
            return None
        due = self._queue.next_due()
        return None if due is None else max(0.0, due - self._clock.monotonic())

    async def _work(self, key: Key) -> None:
        outcome = Outcome(requeue_after=0.0)  # stays if the reconcile is cancelled
        try:
            outcome = await self._guarded(key)
        finally:
            began, now = self._began.pop(key), self._clock.monotonic()
            failed = outcome.error is not None
            self._queue.finish(key, now, failed=failed, requeue_after=outcome.requeue_after)
            self._changed.set()
            if self._observed is not None:
                self._observed(self.name, outcome, now - began)

    async def _guarded(self, key: Key) -> Outcome:
        """Run one reconcile. A bug in it costs the key a back-off, never the process."""
        extra = {"key": str(key), "controller": self.name}
        try:
            outcome = await reconcile(self._reconciler, key)
        except Exception as error:
            log.exception("bug in a reconciler", extra=extra)
            return Outcome(error=error)
        if isinstance(outcome.error, Conflict):
            log.debug("conflict: reconciling again", extra=extra)
        elif outcome.error is not None:
            log.warning("reconcile failed: backing off", extra={**extra, "error": str(outcome.error)})
        return outcome
