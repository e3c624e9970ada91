# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of launchers whose reads never end."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from controlplane.domain import layout
from controlplane.virt_handler.launchers.file_reader import AT_ONCE, FileReader
from controlplane.virt_handler.launchers.ports import NodeError
from controlplane.virt_handler.launchers.report_file import read_report
from tests.controlplane.virt_handler.fakes import until


class NeverRead:
    """A reader of files that never end, like /proc/kmsg, which looks like a regular file."""

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
    reports = FileReader(layout.REPORT, never)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    reading = [asyncio.create_task(reports.read(report())) for _unused in range(40)]
    await until(lambda: never.begun == AT_ONCE, "as many threads as allowed")

    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7
    assert never.begun == AT_ONCE
    never.end()
    assert set(await asyncio.gather(*reading)) == {b"late"}


async def test_an_endless_report_times_out(never: NeverRead, report: Callable[[], int]) -> None:
    """A read in progress keeps its slot until it ends. A waiting descriptor is closed."""
    before, reports = descriptors(), FileReader(layout.REPORT, never, seconds=0.05)
    errors = await asyncio.gather(*(reports.read(report()) for _unused in range(40)), return_exceptions=True)

    assert {str(error) for error in errors} == {f"{layout.REPORT} was not read within 0.05 s"}
    assert never.begun == AT_ONCE
    await until(lambda: descriptors() == before + AT_ONCE, "only what is being read")
    never.end()
    await until(lambda: descriptors() == before, "everything closed")
    assert await FileReader(layout.REPORT, read_report, seconds=5).read(report()) == b"{}"


async def test_a_report_is_closed_if_no_thread_can_start(
    report: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before, reports = descriptors(), FileReader(layout.REPORT, read_report)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(threading.Thread, "start", fail)
        for _unused in range(AT_ONCE + 1):
            with pytest.raises(NodeError, match="cannot start a thread"):
                await reports.read(report())

    await until(lambda: descriptors() == before, "everything closed")
    assert await reports.read(report()) == b"{}"
