# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import threading

import pytest

from controlplane.virt_handler.migration.copy_thread import CopyThread

SECONDS = 10.0


async def where() -> int:
    return threading.get_ident()


async def test_it_is_one_thread_beside_this_one_which_goes_back_for_what_is_ours() -> None:
    lane = CopyThread()
    here = threading.get_ident()
    there = await lane.run(where())
    assert there != here
    assert await lane.run(where()) == there
    assert await lane.run(lane.home(where())) == here


async def test_nothing_is_begun_before_it_is_needed() -> None:
    before = threading.active_count()
    CopyThread()
    assert threading.active_count() == before


async def test_this_loop_goes_on_while_something_is_busy_there() -> None:
    entered, leave = threading.Event(), threading.Event()

    async def busy() -> str:
        entered.set()
        leave.wait(SECONDS)
        return "done"

    task = asyncio.create_task(CopyThread().run(busy()))
    async with asyncio.timeout(SECONDS):
        await asyncio.to_thread(entered.wait)
    assert not task.done()
    leave.set()
    assert await task == "done"


async def test_what_is_raised_there_is_raised_here() -> None:
    async def fail() -> None:
        raise OSError("there")

    with pytest.raises(OSError, match="there"):
        await CopyThread().run(fail())


async def test_who_is_cancelled_here_is_cancelled_there() -> None:
    entered, cancelled = threading.Event(), threading.Event()

    async def wait() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(CopyThread().run(wait()))
    async with asyncio.timeout(SECONDS):
        await asyncio.to_thread(entered.wait)
        task.cancel()
        await asyncio.to_thread(cancelled.wait)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_is_left_of_one_that_has_ended() -> None:
    lane = CopyThread()
    lane.end()  # it has not begun
    await lane.run(where())
    *_earlier, thread = (one for one in threading.enumerate() if one.name == "migration")
    lane.end()
    await asyncio.to_thread(thread.join, SECONDS)
    assert not thread.is_alive()


async def test_nobody_goes_home_who_was_not_sent() -> None:
    with pytest.raises(RuntimeError, match="nothing runs"):
        await CopyThread().home(where())
