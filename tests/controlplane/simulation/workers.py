# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real Runner with its workers on a toy world: answers come in any order, or are refused, and passes break off.

In the big world the schedule begins passes, so that it can stop them anywhere. Here the Runner does, and is judged by
what it owes: a turn at once to each key that is due while a worker is free, none to one that has one, and to the queue
how each pass ended, whatever came of it.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Conflict, Forbidden, NotFound, NotLeader, Throttled, Unavailable
from controlplane.engine.plan import Outcome, Plan, RefusedStep
from controlplane.engine.reconcile import ROUNDS
from controlplane.engine.runner import Runner
from tests.controlplane.simulation.loop import HandTurnedLoop
from tests.controlplane.simulation.passes import AWAY_SECONDS, Do, Toy
from tests.controlplane.simulation.watched_queue import LAST_SECONDS, WatchedQueue
from tests.support.breach import Breach
from tests.support.calls import Call
from tests.support.clock import SimulatedClock, WrongClock

KEYS = tuple(Key("default", f"toy-{number}") for number in range(6))
LIMIT = 3
"""Workers."""
BAD = (Conflict, Conflict, NotFound, Unavailable, NotLeader, Forbidden, Throttled, RuntimeError)
"""What a write may meet; the last one is a bug."""
LUCK = 0.4
"""How often a write does."""
ALARM_SECONDS = 45.0
REST_SECONDS = 4 * LAST_SECONDS
"""Within which all that is wanted is there, once nothing fails."""


class ToldQueue(WatchedQueue):
    """Says as well how each pass was said to have ended."""

    __slots__ = ("ended",)

    def finish(self, key: Key, now: float, *, failed: bool, requeue_after: float | None = None) -> None:
        self.ended = key, failed, requeue_after
        super().finish(key, now, failed=failed, requeue_after=requeue_after)


class ToyReconciler:
    """Implements engine.plan.Reconciler: so many things of each key are wanted, one a pass; each takes a while."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.wanted: Counter[Key] = Counter()
        self.at_work: Counter[Key] = Counter()
        self.troubles: dict[Key, Exception] = {}
        """What the pass over a key has met that is under way."""
        self.done: Counter[Key] = Counter()
        """Writes that it has made."""
        self.is_kind = False
        """Nothing fails any more."""
        self.waiting: list[tuple[Key, asyncio.Future[None]]] = []

    def observe(self, key: Key) -> Toy | None:
        if not self.is_kind and self._rng.random() < LUCK / 8:
            self.troubles[key] = RuntimeError("a bug")
            raise self.troubles[key]
        return Toy((KEYS.index(key),) * self.wanted[key], "")

    def decide(self, world: Toy) -> Plan[Do]:
        return Plan(
            (Do(world.missing[0], f"{len(world.missing)} are missing"),) if world.missing else (), ALARM_SECONDS
        )

    async def apply(self, world: Toy, action: Do) -> None:
        key = KEYS[action.number]
        self.at_work[key] += 1
        try:
            await self._answered(key)
        finally:
            self.at_work[key] -= 1
        self.wanted[key] -= 1
        self.done[key] += 1

    async def _answered(self, key: Key) -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append((key, answer))
        await answer

    def answer(self, index: int) -> None:
        """Let a write be answered, whose turn it is not."""
        key, answer = self.waiting.pop(index)
        if answer.done():
            return
        if self.is_kind or self._rng.random() >= LUCK:
            answer.set_result(None)
            return
        kind = self._rng.choice(BAD)
        error = kind("no", details={"retryAfterSeconds": AWAY_SECONDS}) if kind is Throttled else kind("no")
        self.troubles[key] = error
        answer.set_exception(error)

    def derive_status(self, world: Toy, problem: RefusedStep[Do] | None) -> str | None:
        del world, problem
        return None

    async def write_status(self, world: Toy, status: str) -> None:
        raise Breach("workers: there is nothing to say")

    def report_refusal(self, world: Toy, problem: RefusedStep[Do]) -> None:
        """Nobody listens."""


class WorkPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._true = SimulatedClock()
        self._clock = WrongClock(self._true)
        self._complaints: list[str] = []
        self._loop = HandTurnedLoop(self._clock, _asks_nothing)
        self._queue = ToldQueue(self._rng, self._complaints.append)
        self._toy = ToyReconciler(self._rng)
        self._runner = Runner("toy", self._toy, self._queue, self._clock, limit=LIMIT, observed=self._passed)

    def run(self, steps: int) -> None:
        """Take random steps, come to rest, and end. Raises Breach."""
        work = self._loop.create_task(self._runner.run())
        try:
            self._work(work, steps)
        finally:
            work.cancel()
            self._loop.settle()
        if asyncio.all_tasks(self._loop):
            raise Breach("workers: it was told to end, and works on")

    def _work(self, work: asyncio.Task[None], steps: int) -> None:
        for _unused in range(steps):
            self._rng.choices((self._want, self._answer, self._pass_time), (3, 5, 2))[0]()
            self._look(work)
        self._toy.is_kind = True
        for key in KEYS:  # of what nobody tells there is no turn
            self._runner.add(key)
        until = self._true.seconds + REST_SECONDS
        while self._true.seconds < until:
            while self._toy.waiting:
                self._answer()
                self._look(work)
            self._true.advance(1.0)
            self._look(work)
        if any(self._toy.wanted.values()):
            raise Breach(f"workers: nothing fails, and {dict(self._toy.wanted)} are not there")

    def _want(self) -> None:
        key = self._rng.choice(KEYS)
        self._toy.wanted[key] += self._rng.choice((0, 1, 1, 3))
        self._runner.add(key, after=self._rng.choice((0.0, 0.0, 0.0, 5.0)))

    def _answer(self) -> None:
        if self._toy.waiting:
            self._toy.answer(self._rng.randrange(len(self._toy.waiting)))

    def _pass_time(self) -> None:
        self._true.advance(self._rng.choice((0.01, 0.1, 1.0, 10.0)))

    def _passed(self, name: str, outcome: Outcome, seconds: float) -> None:
        """Compare what is told of a pass with what it met."""
        key, failed, requeue_after = self._queue.ended
        trouble = self._toy.troubles.pop(key, None)
        if name != "toy" or seconds < 0 or outcome.error is not trouble:
            self._complaints.append(f"{key} met {trouble!r}, and it is told of {name}: {outcome} in {seconds:.2f} s")
        if failed != (trouble is not None):
            self._complaints.append(f"{key} met {trouble!r}, and its pass counts as {'failed' if failed else 'done'}")
        usual = 0.0 if self._toy.done.pop(key, 0) == ROUNDS else ALARM_SECONDS
        wanted = AWAY_SECONDS if isinstance(trouble, Throttled) else None if trouble else usual
        if requeue_after != wanted:
            self._complaints.append(f"{key} met {trouble!r}, wants {wanted}, and another look comes in {requeue_after}")

    def _look(self, work: asyncio.Task[None]) -> None:
        self._loop.settle()
        toy, now = self._toy, self._clock.monotonic()
        if work.done():
            raise Breach(f"workers: it has ended: {work.exception()!r}")
        if self._complaints:
            raise Breach(f"workers: {self._complaints[0]}")
        busy = +toy.at_work
        if busy.total() > LIMIT or any(count > 1 for count in busy.values()):
            raise Breach(f"workers: at the same time are worked on {dict(busy)}")
        due = [key for key in KEYS if (at := self._queue.due_at(key)) is not None and at <= now]
        if due and busy.total() < LIMIT:
            raise Breach(f"workers: {due[0]} is due, {busy.total()} of {LIMIT} work, and nobody takes it up")
        held = [key for key in KEYS if self._queue.is_held(key) and not busy[key]]
        if held:
            raise Breach(f"workers: nobody works on {held[0]}, and it is not given back")


def _asks_nothing(call: Call) -> asyncio.Future[None]:
    raise Breach(f"workers: {call} is asked for")
