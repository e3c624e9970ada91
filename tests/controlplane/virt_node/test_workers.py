# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Worker threads: one at a time for each Pod, a limit for all, and abandoned results are cleaned up."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from controlplane.virt_node.inotify import NotYet
from controlplane.virt_node.workers import Workers
from tests.controlplane.virt_handler.fakes import until
from tests.support.tasks import cancel_task


class Stall:
    """Work that blocks until `end`, like a look into a directory whose owner blocks it."""

    def __init__(self) -> None:
        self.begun = 0
        self._go_on = threading.Event()

    def __call__(self) -> int:
        self.begun += 1
        self._go_on.wait(20)
        return os.open("/", os.O_PATH)

    def end(self) -> None:
        self._go_on.set()


@pytest.fixture
def stall() -> Iterator[Stall]:
    blocking = Stall()
    yield blocking
    blocking.end()


def threads() -> int:
    return sum(thread.name.startswith("launcher ") for thread in threading.enumerate())


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_a_result_is_returned_and_an_error_raised() -> None:
    workers = Workers()
    assert await workers.run("a", lambda: 7) == 7
    with pytest.raises(PermissionError, match="no"):
        await workers.run("a", _refuse)


def _refuse() -> None:
    raise PermissionError("no")


async def test_a_blocking_pod_does_not_block_others(stall: Stall) -> None:
    workers = Workers()
    waiting = [asyncio.create_task(workers.run("hostile", stall, os.close)) for _unused in range(50)]
    await until(lambda: stall.begun == 1, "the first")
    assert await workers.run("neighbour", lambda: 7) == 7
    await until(lambda: threads() == 1, "the neighbour's end")
    assert stall.begun == 1
    stall.end()
    for task in waiting:
        os.close(await task)
    assert stall.begun == 50


async def test_cancelled_requests_start_no_second_thread(stall: Stall) -> None:
    """The thread occupies the slot, not the task that waits for it."""
    workers, before = Workers(), descriptors()
    for _unused in range(200):
        request = asyncio.create_task(workers.run("hostile", stall, os.close))
        await asyncio.sleep(0)
        await cancel_task(request)
    assert (stall.begun, threads()) == (1, 1)
    stall.end()
    await until(lambda: threads() == 0, "its end")
    await until(lambda: descriptors() == before, "its descriptors to be closed")
    assert await workers.run("hostile", lambda: 7) == 7


async def test_the_number_of_threads_is_limited(stall: Stall) -> None:
    workers = Workers(limit=3)
    requests = [asyncio.create_task(workers.run(f"pod-{number}", stall, os.close)) for number in range(20)]
    await until(lambda: stall.begun == 3, "the first three")
    for request in requests[5:]:
        request.cancel()
    await asyncio.sleep(0.02)
    assert (stall.begun, threads()) == (3, 3)
    stall.end()
    for pending in requests[:5]:
        os.close(await pending)
    assert await workers.run("pod-19", lambda: 7) == 7, "cancelled requests have left the queue"


async def test_the_descriptor_of_an_abandoned_gap_is_closed(tmp_path: Path) -> None:
    workers, go_on, before = Workers(), threading.Event(), descriptors()

    def look() -> None:
        go_on.wait(20)
        raise NotYet(os.open(tmp_path, os.O_PATH))

    request = asyncio.create_task(workers.run("a", look))
    await asyncio.sleep(0)
    request.cancel()
    go_on.set()
    with suppress(asyncio.CancelledError):
        await request
    await until(lambda: threads() == 0, "its end")
    await until(lambda: descriptors() == before, "the gap to be closed")


async def test_no_state_remains_for_a_pod_without_requests(stall: Stall) -> None:
    workers = Workers()
    requests = [asyncio.create_task(workers.run("pod", stall, os.close)) for _unused in range(3)]
    await until(lambda: stall.begun == 1, "the first")
    for request in requests:
        request.cancel()
    stall.end()
    await asyncio.wait(requests)
    await until(lambda: workers.waited_for == 0, "nothing kept")


async def test_a_thread_that_cannot_start_gives_its_slot_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node may lack threads temporarily: the next request for the Pod succeeds."""
    workers = Workers(limit=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _cannot_begin)
        with pytest.raises(RuntimeError, match="new thread"):
            await workers.run("pod", lambda: 7)
    async with asyncio.timeout(5):
        assert await workers.run("pod", lambda: 7) == 7


def _cannot_begin(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
