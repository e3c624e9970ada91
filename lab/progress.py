# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress lines for the user. Callers of the library may pass their own function, or `silent`."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

Progress = Callable[[str], None]

EVERY_SECONDS = 10.0
"""Seconds between two lines of a count in a log."""

_began = time.monotonic()


def to_stderr(text: str) -> None:
    print(_stamped(text), file=sys.stderr, flush=True)


def silent(text: str) -> None:
    """Say nothing."""


def terminal_of(progress: Progress) -> TextIO | None:
    """Return the terminal of the progress. None for a log or a caller's own function."""
    return sys.stderr if progress is to_stderr and sys.stderr.isatty() else None


class Count:
    """A line about a long step that is updated: in place on a terminal, every ten seconds in a log."""

    def __init__(
        self, progress: Progress, terminal: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress, self._terminal, self._clock = progress, terminal, clock
        self._said_at, self._said = clock(), ""

    def say(self, text: str) -> None:
        if self._terminal is not None:
            if text != self._said:
                width = shutil.get_terminal_size().columns - 1
                self._terminal.write(f"\r\x1b[K{_stamped(text)[:width]}")
                self._terminal.flush()
            self._said = text
        elif self._clock() - self._said_at >= EVERY_SECONDS:
            self._said_at = self._clock()
            self._progress(text)

    def close(self) -> None:
        """Clear the line on the terminal."""
        if self._terminal is not None and self._said:
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()


def _stamped(text: str) -> str:
    return f"lab: {time.monotonic() - _began:6.1f} s  {text}"
