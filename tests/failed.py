# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The failures of a whole run. `make test` prints them last, because many CIs show only the end of a log."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FAILED = Path(__file__).resolve().parent.parent / ".cache/failed-tests.txt"
SHOWN_LINES, SHOWN_WIDTH = 12, 300


def note(name: str, lines: Iterable[str]) -> None:
    """Record a failure with the lines that show its reason."""
    FAILED.parent.mkdir(exist_ok=True)
    with FAILED.open("a", encoding="utf-8") as out:
        out.write("\n".join([f"FAILED {name}", *(line[:SHOWN_WIDTH] for line in lines)]) + "\n")
