# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Concurrency limits: requests get slots in order and wait for a limited time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from controlplane.http_server.quotas import BusyError
from controlplane.virt_api import concurrency
from controlplane.virt_api.concurrency import ConcurrencyLimit, WorkerThreads


async def test_requests_over_the_limit_follow_in_order() -> None:
    limit, started, may_end = ConcurrencyLimit(2), list[int](), asyncio.Event()

    async def run(number: int) -> None:
        async with limit.slot():
            started.append(number)
            await may_end.wait()

    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(run(number))
        await asyncio.sleep(0.01)
        assert started == [0, 1]
        may_end.set()
    assert started == [0, 1, 2, 3, 4]


async def test_a_request_without_a_slot_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "WAIT_SECONDS", 0.0)
    limit = ConcurrencyLimit(1)
    async with limit.slot():
        with pytest.raises(BusyError, match="no slot"):
            async with limit.slot():
                raise AssertionError("got a slot")
    async with limit.slot():
        pass


async def test_a_failure_frees_the_slot() -> None:
    limit = ConcurrencyLimit(1)
    with pytest.raises(ZeroDivisionError):
        async with limit.slot():
            raise ZeroDivisionError
    async with asyncio.timeout(10), limit.slot():
        pass


async def test_a_cancelled_request_takes_no_slot() -> None:
    limit = ConcurrencyLimit(1)

    async def run() -> None:
        async with limit.slot():
            pass

    async with limit.slot():
        waiting = asyncio.create_task(run())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    async with asyncio.timeout(10), limit.slot():
        pass


async def test_work_runs_in_a_thread_while_the_loop_goes_on() -> None:
    threads, may_end = WorkerThreads(1), threading.Event()

    def work() -> int:
        assert may_end.wait(20)
        return threading.get_ident()

    running = asyncio.create_task(threads.run(work))
    await asyncio.sleep(0.01)
    may_end.set()
    assert await running != threading.get_ident()
    threads.close()


async def test_an_error_of_the_work_is_raised() -> None:
    threads = WorkerThreads(1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)
    threads.close()
