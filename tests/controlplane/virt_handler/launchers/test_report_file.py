# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports: their size limit, and reads that never end. File types: node/test_virt_node_client."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
from controlplane.domain import layout
from controlplane.virt_handler.launchers.ports import NodeError, Refused
from controlplane.virt_handler.launchers.report_file import AT_ONCE, Reports, read_whole
from tests.controlplane.virt_handler.fakes import until


def test_a_report_is_read_up_to_the_limit(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_bytes(b"x" * REPORT_LIMIT_BYTES)
    assert len(read_whole(os.open(report, os.O_RDONLY))) == REPORT_LIMIT_BYTES
    report.write_bytes(b"x" * (REPORT_LIMIT_BYTES + 1))
    with pytest.raises(Refused, match="more than"):
        read_whole(os.open(report, os.O_RDONLY))


class NeverRead:
    """A reader of reports that never end, like /proc/kmsg, which looks like a regular file."""

    def __init__(self) -> None:
        self.begun = 0
        self._is_over = threading.Event()

    def __call__(self, descriptor: int) -> bytes:
        self.begun += 1
        self._is_over.wait(20)
        os.close(descriptor)
        return b"late"

    def end(self) -> None:
        self._is_over.set()


@pytest.fixture
def never() -> Iterator[NeverRead]:
    reader = NeverRead()
    yield reader
    reader.end()


@pytest.fixture
def report(tmp_path: Path) -> Callable[[], int]:
    """Return a function that opens another descriptor of a report."""
    (tmp_path / "report").write_text("{}")
    return lambda: os.open(tmp_path / "report", os.O_RDONLY)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_endless_reports_take_no_shared_threads(never: NeverRead, report: Callable[[], int]) -> None:
    reports = Reports(never)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    reading = [asyncio.create_task(reports.read(report())) for _unused in range(40)]
    await until(lambda: never.begun == AT_ONCE, "as many threads as allowed")

    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7
    assert never.begun == AT_ONCE
    never.end()
    assert set(await asyncio.gather(*reading)) == {b"late"}


async def test_an_endless_report_times_out(never: NeverRead, report: Callable[[], int]) -> None:
    """A read in progress keeps its slot until it ends. A waiting descriptor is closed."""
    before, reports = descriptors(), Reports(never, seconds=0.05)
    errors = await asyncio.gather(*(reports.read(report()) for _unused in range(40)), return_exceptions=True)

    assert {str(error) for error in errors} == {f"{layout.REPORT} was not read within 0.05 s"}
    assert never.begun == AT_ONCE
    await until(lambda: descriptors() == before + AT_ONCE, "only what is being read")
    never.end()
    await until(lambda: descriptors() == before, "everything closed")
    assert await Reports(seconds=5).read(report()) == b"{}"


async def test_a_report_is_closed_if_no_thread_can_start(
    report: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before, reports = descriptors(), Reports()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(threading.Thread, "start", fail)
        for _unused in range(AT_ONCE + 1):
            with pytest.raises(NodeError, match="cannot start a thread"):
                await reports.read(report())

    await until(lambda: descriptors() == before, "everything closed")
    assert await reports.read(report()) == b"{}"
