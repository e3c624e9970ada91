# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy what QEMU writes into files: soon after it was written. While nothing is written, nothing is done.

Where the kernel does not say what is written: a look, often while files grow, every other second when they do not.
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
"""So many times as long as a look took of a processor, nothing is looked at: a guest chooses what its bytes cost."""
PARTIAL_LINE_SECONDS = 0.5
"""A prompt ends without a newline; so long its line may still go on."""


@dataclass(slots=True)
class Pace:
    """When to look again."""

    quiet_seconds: float = field(default=0.0, init=False)
    """For how long nothing has happened."""
    _pause: float = field(default=FIRST_SECONDS, init=False)

    def pause(self, *, happened: bool) -> float:
        """Return how long to wait, given whether something has happened since the last look."""
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
    """Copy the console and keep the other log short until cancelled; then copy what is left of the console.

    watch: of the directories of both. used: what we have taken of a processor so far, in seconds.
    """
    pace = Pace()
    try:
        while True:
            before = used()
            is_told = watch.listen()  # first, so that nothing is written unseen between the look and the rest
            copied, trimmed = console.copy(), trim_other()
            if not copied and pace.quiet_seconds >= PARTIAL_LINE_SECONDS:
                console.flush()
            pause = pace.pause(happened=bool(copied or trimmed))
            if is_told and not (copied or trimmed or console.is_unfinished):
                await watch.written()
                pause = FIRST_SECONDS  # what is written comes in many pieces, as many as the guest likes
            await sleep(max(pause, copied / BYTES_PER_SECOND, REST_FACTOR * (used() - before)))
    finally:
        console.finish()
        console.close()
