# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of Runner with several workers: writes are answered in any order, fail, or raise exceptions.

A key that is due is reconciled as soon as a worker is free, no key by two workers at once, and the queue learns how
each reconcile ended. Once nothing fails any more, every declared item exists.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Conflict, Forbidden, NotFound, NotLeader, Throttled, Unavailable
from controlplane.engine.plan import Outcome, Plan, RefusedStep
from controlplane.engine.reconcile import ROUNDS
from controlplane.engine.runner import Runner
from tests.controlplane.engine.watched_queue import LAST_SECONDS, WatchedQueue
from tests.controlplane.simulation.loop import HandTurnedLoop
from tests.support.calls import Call
from tests.support.clock import SimulatedClock, WrongClock

KEYS = tuple(Key("default", f"toy-{number}") for number in range(6))
WORKERS = 3
ERRORS = (Conflict, Conflict, NotFound, Unavailable, NotLeader, Forbidden, Throttled, RuntimeError)
"""What a write may raise; RuntimeError stands for a bug."""
FAILURE_RATE = 0.4
RETRY_AFTER_SECONDS = 7.0
REQUEUE_SECONDS = 45.0
REST_SECONDS = 4 * LAST_SECONDS
"""Within which everything declared is there, once nothing fails."""
STEPS = 1000


@pytest.mark.parametrize("seed", range(1, 11))
def test_each_due_key_is_reconciled_by_one_worker(seed: int) -> None:
    Run(random.Random(seed)).run(STEPS)


class RecordingQueue(WatchedQueue):
    """Remembers how the last reconcile was finished."""

    __slots__ = ("finished",)

    def finish(self, key: Key, now: float, *, failed: bool, requeue_after: float | None = None) -> None:
        self.finished = key, failed, requeue_after
        super().finish(key, now, failed=failed, requeue_after=requeue_after)


@dataclass(frozen=True, slots=True)
class Create:
    key: Key
    because: str


@dataclass(frozen=True, slots=True)
class World:
    key: Key
    missing: int


class ToyReconciler:
    """Implements engine.plan.Reconciler: creates the declared number of items, one per reconcile."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.missing: Counter[Key] = Counter()
        self.writing: Counter[Key] = Counter()
        self.errors: dict[Key, Exception] = {}
        """The error of the reconcile in progress."""
        self.written: Counter[Key] = Counter()
        self.is_failing = True
        self.requests: list[tuple[Key, asyncio.Future[None]]] = []

    def observe(self, key: Key) -> World | None:
        if self.is_failing and self._rng.random() < FAILURE_RATE / 8:
            self.errors[key] = RuntimeError("a bug")
            raise self.errors[key]
        return World(key, self.missing[key])

    def decide(self, world: World) -> Plan[Create]:
        steps = (Create(world.key, f"{world.missing} are missing"),) if world.missing else ()
        return Plan(steps, REQUEUE_SECONDS)

    async def apply(self, world: World, action: Create) -> None:
        key = action.key
        self.writing[key] += 1
        try:
            response: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.requests.append((key, response))
            await response
        finally:
            self.writing[key] -= 1
        self.missing[key] -= 1
        self.written[key] += 1

    def respond(self, index: int) -> None:
        key, response = self.requests.pop(index)
        if response.done():
            return
        if not self.is_failing or self._rng.random() >= FAILURE_RATE:
            response.set_result(None)
            return
        kind = self._rng.choice(ERRORS)
        error = kind("no", details={"retryAfterSeconds": RETRY_AFTER_SECONDS}) if kind is Throttled else kind("no")
        self.errors[key] = error
        response.set_exception(error)

    def derive_status(self, world: World, problem: RefusedStep[Create] | None) -> str | None:
        del world, problem
        return None

    async def write_status(self, world: World, status: str) -> None:
        raise AssertionError("there is no status to write")

    def report_refusal(self, world: World, problem: RefusedStep[Create]) -> None:
        """Not of interest here."""


class Run:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._true = SimulatedClock()
        self._clock = WrongClock(self._true)
        self._complaints: list[str] = []
        self._loop = HandTurnedLoop(self._clock, _refuse_call)
        self._queue = RecordingQueue(rng, self._complaints.append)
        self._toy = ToyReconciler(rng)
        self._runner = Runner("toy", self._toy, self._queue, self._clock, limit=WORKERS, observed=self._check_outcome)

    def run(self, steps: int) -> None:
        task = self._loop.create_task(self._runner.run())
        try:
            for _step in range(steps):
                self._rng.choices((self._declare, self._respond, self._advance), (3, 5, 2))[0]()
                self._check(task)
            self._come_to_rest(task)
        finally:
            task.cancel()
            self._loop.settle()
        assert not asyncio.all_tasks(self._loop), "tasks are left after the runner was cancelled"

    def _come_to_rest(self, task: asyncio.Task[None]) -> None:
        self._toy.is_failing = False
        for key in KEYS:
            self._runner.add(key)
        until = self._true.seconds + REST_SECONDS
        while self._true.seconds < until:
            while self._toy.requests:
                self._respond()
                self._check(task)
            self._true.advance(1.0)
            self._check(task)
        assert not any(self._toy.missing.values())

    def _declare(self) -> None:
        key = self._rng.choice(KEYS)
        self._toy.missing[key] += self._rng.choice((0, 1, 1, 3))
        self._runner.add(key, after=self._rng.choice((0.0, 0.0, 0.0, 5.0)))

    def _respond(self) -> None:
        if self._toy.requests:
            self._toy.respond(self._rng.randrange(len(self._toy.requests)))

    def _advance(self) -> None:
        self._true.advance(self._rng.choice((0.01, 0.1, 1.0, 10.0)))

    def _check_outcome(self, name: str, outcome: Outcome, seconds: float) -> None:
        """Compare what the runner reports with what happened. An assertion here would end the runner."""
        key, failed, requeue_after = self._queue.finished
        error = self._toy.errors.pop(key, None)
        if name != "toy" or seconds < 0 or outcome.error is not error:
            self._complaints.append(f"{key} ended with {error!r}; reported: {name}, {outcome}, {seconds:.2f} s")
        if failed != (error is not None):
            self._complaints.append(f"{key} ended with {error!r}; the queue got failed={failed}")
        without_error = 0.0 if self._toy.written.pop(key, 0) == ROUNDS else REQUEUE_SECONDS
        expected = RETRY_AFTER_SECONDS if isinstance(error, Throttled) else None if error else without_error
        if requeue_after != expected:
            self._complaints.append(f"{key} ended with {error!r}; requeued after {requeue_after}, not {expected}")

    def _check(self, task: asyncio.Task[None]) -> None:
        self._loop.settle()
        now = self._clock.monotonic()
        assert not task.done(), f"the runner ended: {task.exception()!r}"
        assert not self._complaints
        writing = +self._toy.writing
        assert writing.total() <= WORKERS
        assert all(count == 1 for count in writing.values()), "two workers reconcile one key"
        due = [key for key in KEYS if (at := self._queue.due_at(key)) is not None and at <= now]
        assert not due or writing.total() == WORKERS, f"{due[0]} is due, and a worker is free"
        assert not [key for key in KEYS if self._queue.is_held(key) and not writing[key]], "a key is not given back"


def _refuse_call(call: Call) -> asyncio.Future[None]:
    raise AssertionError(f"{call} is sent")
