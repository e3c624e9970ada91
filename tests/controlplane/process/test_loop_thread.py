# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import threading

import pytest

from controlplane.process.loop_thread import LoopThread

SECONDS = 10.0


async def where() -> int:
    return threading.get_ident()


async def test_work_runs_in_one_other_thread_and_home_runs_in_this_one() -> None:
    loop_thread = LoopThread("migration")
    here = threading.get_ident()
    there = await loop_thread.run(where())
    assert there != here
    assert await loop_thread.run(where()) == there
    assert await loop_thread.run(loop_thread.run_in_main_loop(where())) == here


async def test_a_busy_copy_thread_does_not_block_this_loop() -> None:
    entered, leave = threading.Event(), threading.Event()

    async def busy() -> str:
        entered.set()
        leave.wait(SECONDS)
        return "done"

    task = asyncio.create_task(LoopThread("migration").run(busy()))
    async with asyncio.timeout(SECONDS):
        await asyncio.to_thread(entered.wait)
    assert not task.done()
    leave.set()
    assert await task == "done"


async def test_a_cancellation_reaches_the_thread() -> None:
    entered, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(LoopThread("migration").run(wait()))
    async with asyncio.timeout(SECONDS):
        await asyncio.to_thread(entered.wait)
        task.cancel()
        await asyncio.to_thread(cancelled.wait)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_ended_thread_is_gone() -> None:
    loop_thread = LoopThread("migration")
    loop_thread.end()  # no effect before the start
    await loop_thread.run(where())
    *_earlier, thread = (candidate for candidate in threading.enumerate() if candidate.name == "migration")
    loop_thread.end()
    await asyncio.to_thread(thread.join, SECONDS)
    assert not thread.is_alive()


async def test_home_outside_the_thread_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="nothing runs"):
        await LoopThread("migration").run_in_main_loop(where())
