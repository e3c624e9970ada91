# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What failed in a whole run, kept for its end, which is all that many a CI shows: `make test` prints it last."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

FAILED = Path(__file__).resolve().parent.parent / ".cache/failed-tests.txt"
TOLD_LINES, TOLD_WIDTH = 12, 300


def note(name: str, said: Iterable[str]) -> None:
    """Keep what failed, and the lines that tell why."""
    FAILED.parent.mkdir(exist_ok=True)
    with FAILED.open("a", encoding="utf-8") as out:
        out.write("\n".join([f"FAILED {name}", *(line[:TOLD_WIDTH] for line in said)]) + "\n")
