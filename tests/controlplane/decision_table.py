# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every combination of a decision's inputs, as a golden table.

A change of one cell changes one line, or splits one. UPDATE_GOLDEN=1 writes the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from controlplane.engine.plan import Plan

GOLDEN = Path(__file__).parent / "golden" / "decisions"


def steps(plan: Plan[object]) -> str:
    """Name the steps of a plan; "-" for none."""
    return "+".join(type(step).__name__ for step in plan.steps) or "-"


def render(title: str, rows: Sequence[str], columns: Sequence[str], cell: Callable[[str, str], str]) -> str:
    """Render one table: a title, a line of columns, a line for each set of rows with equal cells, named at its end."""
    equal: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        equal.setdefault(tuple(cell(row, column) for column in columns), []).append(row)
    lines = [[*columns, ""], *([*cells, " | ".join(labels)] for cells, labels in equal.items())]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns) + 1)]
    text = "\n".join(
        "  ".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
    return f"{title}\n{text}\n"


def merge(tables: Iterable[str]) -> str:
    """Join tables. Those that differ only in the title share one table."""
    titles: dict[str, list[str]] = {}
    for table in tables:
        title, _unused, body = table.partition("\n")
        titles.setdefault(body, []).append(title)
    return "\n".join("\n".join([*shared, body]) for body, shared in titles.items())


def check(name: str, tables: Mapping[str, str]) -> None:
    """Compare with the golden file."""
    path, text = GOLDEN / f"{name}.txt", merge(tables.values())
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
