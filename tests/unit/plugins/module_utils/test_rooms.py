# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which room of module_utils may use which: what every plugin shares knows nothing of what each of them is about.

Not in .importlinter: rooms import one another by the collection's full name, which is that of no package here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

UTILS = Path(__file__).resolve().parents[4] / "plugins/module_utils"
MAY_USE: dict[str, set[str]] = {
    "kubevirt_api": set(),
    "_client": set(),
    "_node": {"_client"},
    "_cluster": {"_client", "kubevirt_api"},
    "_vm": {"_client", "kubevirt_api"},
    "_migration": {"_client", "_vm", "kubevirt_api"},
    "_service": {"_client", "_vm", "kubevirt_api"},
}


def imported(room: str) -> Iterator[tuple[str, str]]:
    """Yield file and room of each import of another room, wherever in the file it stands."""
    for path in sorted((UTILS / room).glob("**/*.py")):
        depth = len(path.relative_to(UTILS).parts)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == depth:
                rooms = [node.module] if node.module else [one.name for one in node.names]
                yield from ((path.name, one.partition(".")[0]) for one in rooms)
            elif isinstance(node, ast.ImportFrom):
                assert not (node.module or "").startswith("ansible_collections"), f"{path}: name it relatively"


def test_every_room_is_told() -> None:
    assert {path.name for path in UTILS.iterdir() if (path / "__init__.py").exists()} == set(MAY_USE)


@pytest.mark.parametrize("room", MAY_USE)
def test_a_room_uses_those_below_it_only(room: str) -> None:
    assert {(file, other) for file, other in imported(room) if other not in MAY_USE[room]} == set()
