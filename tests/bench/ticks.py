# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The downtime of a guest, by its console: it prints fifty times a second, and its log grows.

Measured with the clock of this machine, because that of the guest stops too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

LOOK_SECONDS, SEARCH_SECONDS = 0.003, 0.05
IDLE = "#!/bin/sh\nwhile :; do echo tick; usleep 20000; done\n"
RESTING = "#!/bin/sh\nwhile :; do echo tick; usleep 200000; done\n"
BUSY = f"""#!/bin/sh
while :; do dd if=/dev/urandom of=/run/dirty bs=64k count=256 conv=notrunc; done >/dev/null 2>&1 &
{IDLE.partition(chr(10))[2]}"""
"""User data. A tick costs an emulated guest 4 ms of a processor: ten that are IDLE want two processors, ten that are
RESTING do not. BUSY also writes 16 MiB of its memory over and over, as fast as it can make numbers up."""


class Ticks:
    """Watches logs inside the block. find: returns the logs that exist now."""

    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        self._find = find
        self._seen: list[tuple[float, Path]] = []
        self._sizes: dict[Path, int] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Ticks:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        self._thread.join()

    def count(self, log: Path) -> int:
        """Return how often a log was seen to grow."""
        return sum(path == log for _unused, path in self._seen)

    def gap(self, source: Path, target: Path) -> float:
        """Return the seconds between the last tick in one log and the first in another."""
        first = min(at for at, path in self._seen if path == target)
        return first - max(at for at, path in self._seen if path == source and at <= first)

    def _look(self) -> None:
        searched = 0.0
        while not self._is_over.wait(LOOK_SECONDS):
            if time.monotonic() - searched > SEARCH_SECONDS:
                for log in self._find():
                    self._sizes.setdefault(log, 0)
                searched = time.monotonic()
            for path, size in self._sizes.items():
                with suppress(OSError):  # its launcher has ended
                    new_size = path.stat().st_size
                    if new_size != size:
                        self._sizes[path] = new_size
                        self._seen.append((time.monotonic(), path))
