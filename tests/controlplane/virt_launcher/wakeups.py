# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Measures how often the threads of a launcher Pod wake up, from /proc."""

from __future__ import annotations

import asyncio
import pathlib
import re
import time
from contextlib import suppress
from dataclasses import dataclass

from tests.controlplane.virt_launcher.launcher_pod import LauncherPod

_SLEEPS = re.compile(r"^voluntary_ctxt_switches:\s*(\d+)", re.MULTILINE)
_NAME = re.compile(r"^Name:\s*(.*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Wakeups:
    """Wake-ups during a time, by program and thread."""

    seconds: float
    by_thread: dict[str, int]

    @property
    def per_second(self) -> float:
        """Wake-ups of all threads together."""
        return sum(self.by_thread.values()) / self.seconds

    def of(self, program: str) -> int:
        """Wake-ups of one program's threads."""
        return sum(count for name, count in self.by_thread.items() if name.startswith(f"{program}/"))


def sleeps(pod: LauncherPod) -> dict[tuple[int, str], int]:
    """Return how often each thread of the Pod has gone to sleep. It woke up as often."""
    counts: dict[tuple[int, str], int] = {}
    for pid, path in pod.programs().items():
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it may have ended since it was listed
                status = (task / "status").read_text()
                count, name = _SLEEPS.search(status), _NAME.search(status)
                assert count is not None
                assert name is not None
                counts[int(task.name), f"{path.rpartition('/')[2]}/{name[1]}"] = int(count[1])
    return counts


async def count_wakeups(pod: LauncherPod, seconds: float) -> Wakeups:
    """Measure for some seconds. A thread that starts or ends meanwhile counts only partly."""
    before, began = sleeps(pod), time.monotonic()
    await asyncio.sleep(seconds)
    after, over = sleeps(pod), time.monotonic() - began
    by_thread: dict[str, int] = {}
    for thread, count in after.items():
        if difference := count - before.get(thread, 0):
            by_thread[thread[1]] = by_thread.get(thread[1], 0) + difference
    return Wakeups(over, by_thread)
