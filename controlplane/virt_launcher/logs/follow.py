# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies QEMU's log files, shortly after QEMU writes to them. It sleeps until then.

Without dnotify it polls the files: often while they grow, every other second otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from controlplane.virt_launcher.logs.console import ConsoleCopy
from controlplane.virt_launcher.logs.directory_watch import DirectoryWatch

FIRST_SECONDS, LAST_SECONDS, FACTOR = 0.05, 2.0, 1.5
BYTES_PER_SECOND = 1 << 20
REST_FACTOR = 9
"""The pause is at least this many times the processor time of the last copy, which the guest controls."""
PARTIAL_LINE_SECONDS = 0.5
"""An incomplete line is copied after this time: a prompt has no newline."""


@dataclass(slots=True)
class Pace:
    """The polling interval."""

    quiet_seconds: float = field(default=0.0, init=False)
    """Seconds since the last change."""
    _pause: float = field(default=FIRST_SECONDS, init=False)

    def pause(self, *, happened: bool) -> float:
        """Return how long to wait. happened: whether the last poll found a change."""
        if happened:
            self._pause, self.quiet_seconds = FIRST_SECONDS, 0.0
        else:
            self._pause = min(self._pause * FACTOR, LAST_SECONDS)
        self.quiet_seconds += self._pause
        return self._pause


async def follow_logs(
    console: ConsoleCopy,
    trim_other: Callable[[], bool],
    watch: DirectoryWatch,
    used: Callable[[], float] = time.thread_time,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Copy the console and trim the other log until cancelled; then copy the rest of the console.

    watch: of both files' directories. used: processor time of this thread, in seconds.
    """
    pace = Pace()
    try:
        while True:
            before = used()
            is_listening = watch.listen()  # before copying, so that no write is missed in between
            copied, trimmed = console.copy(), trim_other()
            if not copied and pace.quiet_seconds >= PARTIAL_LINE_SECONDS:
                console.flush()
            pause = pace.pause(happened=bool(copied or trimmed))
            if is_listening and not (copied or trimmed or console.is_unfinished):
                await watch.written()
                pause = FIRST_SECONDS  # a guest may write in many small pieces
            await sleep(max(pause, copied / BYTES_PER_SECOND, REST_FACTOR * (used() - before)))
    finally:
        console.finish()
        console.close()
