# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often the threads of a launcher Pod wake up. From /proc; nothing is judged."""

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
class Wakes:
    """What woke up meanwhile, by program and thread."""

    seconds: float
    by_thread: dict[str, int]

    @property
    def per_second(self) -> float:
        """All threads of all processes together."""
        return sum(self.by_thread.values()) / self.seconds

    def of(self, program: str) -> int:
        """Sum of one program's threads."""
        return sum(count for name, count in self.by_thread.items() if name.startswith(f"{program}/"))


def sleeps(pod: LauncherPod) -> dict[tuple[int, str], int]:
    """Count how often each thread of the Pod has gone to sleep, which is as often as it woke up."""
    found: dict[tuple[int, str], int] = {}
    for pid, path in pod.programs().items():
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
                status = (task / "status").read_text()
                count, name = _SLEEPS.search(status), _NAME.search(status)
                assert count is not None
                assert name is not None
                found[int(task.name), f"{path.rpartition('/')[2]}/{name[1]}"] = int(count[1])
    return found


async def wakes(pod: LauncherPod, seconds: float) -> Wakes:
    """Watch for so long. What comes and goes within counts only while it is there."""
    before, began = sleeps(pod), time.monotonic()
    await asyncio.sleep(seconds)
    after, over = sleeps(pod), time.monotonic() - began
    by_thread: dict[str, int] = {}
    for who, count in after.items():
        if more := count - before.get(who, 0):
            by_thread[who[1]] = by_thread.get(who[1], 0) + more
    return Wakes(over, by_thread)
