# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The console of a guest, read as it is printed, and the time limits of tests."""

from __future__ import annotations

import os
import select
import subprocess
import time
from dataclasses import dataclass

LIMIT_SECONDS = 600
"""A wait ends after this time, on any machine: it ends a hung test and judges nothing. pytest ends a test after 900."""


class NotYet(AssertionError):
    """The wait has timed out; the text has the last state."""


@dataclass
class Console:
    """The console of a guest while it is printed."""

    process: subprocess.Popen[bytes]
    seen: str = ""

    def expect(self, text: str, *, seconds: float = LIMIT_SECONDS) -> str:
        """Read until the text appears, and return its line."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        while text not in self.seen or "\n" not in self.seen[self.seen.index(text) :]:
            remaining = deadline - time.monotonic()
            ready, _unused, _unused = select.select([self.process.stdout], [], [], max(0.0, remaining))
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                raise NotYet(f"console has no {text!r}; it has:\n{self.seen[-4000:]}")
            self.seen += piece.decode(errors="replace")
        start = (
            self.seen.rindex("\n", 0, self.seen.index(text)) + 1 if "\n" in self.seen[: self.seen.index(text)] else 0
        )
        return self.seen[start : self.seen.index("\n", self.seen.index(text))]
