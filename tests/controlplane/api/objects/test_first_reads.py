# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What reads a type is complete before two threads can need it: half of it ends the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.api.objects.first_reads import DOORS

CONTROL_PLANE = Path(__file__).resolve().parents[4] / "controlplane"
DOOR = CONTROL_PLANE / "api/objects/decode.py"
PLAIN = {"dict", "list", "tuple", "str", "int", "bool"}
"""Nothing is noted on these."""


@pytest.mark.parametrize("door", DOORS)
def test_threads_that_read_the_first_objects_of_a_type_at_once_all_get_theirs(door: str) -> None:
    module = "tests.controlplane.api.objects.first_reads"

    ended = subprocess.run([sys.executable, "-m", module, door], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def _first_uses(source: str) -> list[str]:
    """Return the calls of msgspec that make what reads a type of ours at the moment of reading."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    typed = {
        ast.unparse(call): ast.unparse(keyword.value).partition("[")[0]
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "type" and ast.unparse(call.func).startswith("msgspec.")
    }
    converted = [ast.unparse(call) for call in calls if ast.unparse(call.func) == "msgspec.convert"]
    return [call for call, kind in typed.items() if kind not in PLAIN] + converted


def test_a_use_of_that_kind_is_seen() -> None:
    source = (
        "msgspec.json.decode(raw, type=_Kind)\nmsgspec.json.decode(raw, type=dict[str, str])\nmsgspec.convert(a, B)"
    )

    assert _first_uses(source) == ["msgspec.json.decode(raw, type=_Kind)", "msgspec.convert(a, B)"]


def test_every_module_makes_what_reads_its_types_when_it_is_loaded() -> None:
    sources = {path: path.read_text() for path in CONTROL_PLANE.rglob("*.py") if path != DOOR}

    assert {path.name: found for path, source in sources.items() if (found := _first_uses(source))} == {}
