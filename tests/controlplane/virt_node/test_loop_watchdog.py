# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import faulthandler
import subprocess
import sys

import pytest

from controlplane.virt_node.loop_watchdog import exit_when_loop_hangs
from tests.controlplane.virt_handler.fakes import until
from tests.support.tasks import cancel_task

STUCK = """
import asyncio, threading
from controlplane.virt_node.loop_watchdog import exit_when_loop_hangs

async def run():
    task = asyncio.create_task(exit_when_loop_hangs(0.1))
    await asyncio.sleep(0)
    threading.Event().wait()

asyncio.run(run())
"""


def test_a_process_whose_loop_hangs_exits_with_a_traceback() -> None:
    ended = subprocess.run([sys.executable, "-c", STUCK], capture_output=True, check=False, text=True, timeout=60)
    assert ended.returncode == 1
    assert "in run" in ended.stderr


async def test_a_running_loop_does_not_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn restarts the timer, and the end of the task cancels it."""
    calls: list[str] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda seconds, exit: calls.append(f"{seconds} {exit}"))  # noqa: A006
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: calls.append("done"))
    task = asyncio.create_task(exit_when_loop_hangs(0.003))
    await until(lambda: len(calls) == 3, "three turns")
    await cancel_task(task)
    assert [*dict.fromkeys(calls)] == ["0.003 True", "done"]
