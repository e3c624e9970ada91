# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every combination of a decision's inputs, as a golden table.

A change of one cell is one line of a diff. UPDATE_GOLDEN=1 writes the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from controlplane.engine.plan import Plan

GOLDEN = Path(__file__).parent / "golden" / "decisions"


def steps(plan: Plan[object]) -> str:
    """Name the steps of a plan; "-" for none."""
    return "+".join(type(step).__name__ for step in plan.steps) or "-"


def render(title: str, rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], str]) -> str:
    """Render one table: a title, a line of columns, a line for each row."""
    lines = [["", *columns], *([row, *(cell(row, column) for column in columns)] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns) + 1)]
    text = "\n".join(
        "  ".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
    return f"{title}\n{text}\n"


def check(name: str, tables: Mapping[str, str]) -> None:
    """Compare with the golden file."""
    path, text = GOLDEN / f"{name}.txt", "\n".join(tables.values())
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
