# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The asyncio runner: parallel over keys, one worker per key; an exception affects only its key."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff
from controlplane.engine.clock import SystemClock
from controlplane.engine.errors import ApiError
from controlplane.engine.plan import Outcome, Plan, RefusedStep
from controlplane.engine.ports import Clock
from controlplane.engine.runner import Runner
from controlplane.engine.work_queue import WorkQueue
from tests.support.tasks import cancel_task

WEB, DB = Key("default", "web"), Key("default", "db")


class Gate:
    """A reconciler whose reconciles wait at a gate."""

    def __init__(self) -> None:
        self.inside: list[Key] = []
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.todo: set[Key] = set()
        self.bug: Exception | None = None
        self.refusal: ApiError | None = None
        """Of the next write."""

    def observe(self, key: Key) -> Key:
        if self.bug is not None:
            raise self.bug
        return key

    def decide(self, world: Key) -> Plan[Any]:
        return Plan()

    async def apply(self, world: Key, action: Any) -> None: ...

    def derive_status(self, world: Key, problem: RefusedStep[Any] | None) -> str | None:
        return "new" if world in self.todo else None

    async def write_status(self, world: Key, status: str) -> None:
        self.inside.append(world)
        self.entered.set()
        await self.open.wait()
        if self.refusal is not None:
            refusal, self.refusal = self.refusal, None
            raise refusal
        self.todo.discard(world)


@asynccontextmanager
async def running(
    gate: Gate, outcomes: asyncio.Queue[Outcome], limit: int = 10, clock: Clock | None = None
) -> AsyncIterator[Runner[Any, Any, Any]]:
    queue = WorkQueue(BackOff(lambda: 0.0, base_seconds=0.002))
    runner: Runner[Any, Any, Any] = Runner(
        "gate",
        gate,
        queue,
        clock or SystemClock(),
        limit=limit,
        observed=lambda _name, outcome, _s: outcomes.put_nowait(outcome),
    )
    task = asyncio.ensure_future(runner.run())
    try:
        yield runner
    finally:
        await cancel_task(task)


class CountingClock(SystemClock):
    def __init__(self) -> None:
        self.looked = 0

    def monotonic(self) -> float:
        self.looked += 1
        return super().monotonic()


async def test_while_all_workers_are_busy_the_queue_is_not_polled() -> None:
    gate, outcomes, clock = Gate(), asyncio.Queue[Outcome](), CountingClock()
    gate.todo = {WEB, DB}
    async with running(gate, outcomes, limit=1, clock=clock) as runner:
        runner.add(WEB)
        runner.add(DB)
        await gate.entered.wait()
        before = clock.looked
        for _unused in range(50):
            await asyncio.sleep(0)
        assert clock.looked - before < 5
        gate.open.set()
        for _unused in range(2):
            await outcomes.get()


async def test_until_a_key_is_due_the_queue_is_not_polled() -> None:
    gate, outcomes, clock = Gate(), asyncio.Queue[Outcome](), CountingClock()
    async with running(gate, outcomes, clock=clock) as runner:
        runner.add(WEB, after=60.0)
        await asyncio.sleep(0)
        before = clock.looked
        for _unused in range(50):
            await asyncio.sleep(0)
        assert clock.looked - before < 5


async def test_an_exception_is_logged_and_its_key_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    gate, outcomes = Gate(), asyncio.Queue[Outcome]()
    gate.bug = ZeroDivisionError("a bug")
    with caplog.at_level(logging.ERROR):
        async with asyncio.timeout(10), running(gate, outcomes) as runner:
            runner.add(WEB)
            first, second = await outcomes.get(), await outcomes.get()
            gate.bug = None
            while (await outcomes.get()).error is not None:
                pass
    assert first.error is second.error
    assert "bug in a reconciler" in caplog.text


async def test_a_cancelled_reconcile_runs_again() -> None:
    """A process that loses the leadership is cut off in the middle; when it leads again, it continues there."""
    gate, outcomes = Gate(), asyncio.Queue[Outcome]()
    gate.todo = {WEB}
    async with running(gate, outcomes) as runner:
        runner.add(WEB)
        await gate.entered.wait()
    outcomes.get_nowait()
    gate.open.set()
    again = asyncio.ensure_future(runner.run())
    async with asyncio.timeout(10):
        assert (await outcomes.get()).error is None
    await cancel_task(again)
    assert gate.inside == [WEB, WEB]


async def test_a_key_due_earlier_shortens_the_sleep() -> None:
    gate, outcomes = Gate(), asyncio.Queue[Outcome]()
    async with asyncio.timeout(10), running(gate, outcomes) as runner:
        runner.add(DB, after=3600.0)
        await asyncio.sleep(0)
        runner.add(WEB)
        assert (await outcomes.get()).error is None


async def test_the_load_counts_what_waits_and_what_runs() -> None:
    gate = Gate()
    gate.todo = {WEB, DB}
    async with running(gate, asyncio.Queue(), limit=1) as runner:
        runner.add(WEB)
        runner.add(DB)
        runner.add(Key("default", "later"), after=60)
        await gate.entered.wait()

        load = runner.load()

    assert (load.added, load.depth) == (3, 1)
    assert load.running_seconds == load.longest_seconds >= 0
