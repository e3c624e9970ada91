# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decoders are built before threads use them: building one in two threads at once crashes the process."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from controlplane.api import decoders
from tests.controlplane.api.objects.first_reads import DOORS

CONTROL_PLANE = Path(__file__).resolve().parents[4] / "controlplane"
MAKERS = {CONTROL_PLANE / "api/objects/decode.py", CONTROL_PLANE / "api/decoders.py"}
NOTING = {"convert", "type_info", "multi_type_info", "Decoder"}
PLAIN = {"dict", "list", "tuple", "str", "int", "bool"}
"""Nothing is noted on these."""


class _Unread(msgspec.Struct):
    """Of which nobody has asked anything."""


@pytest.mark.parametrize("door", DOORS)
def test_threads_that_decode_the_first_objects_of_a_type_at_once_all_succeed(door: str) -> None:
    module = "tests.controlplane.api.objects.first_reads"

    ended = subprocess.run([sys.executable, "-m", module, door], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_two_threads_build_the_decoder_of_a_type(monkeypatch: pytest.MonkeyPatch) -> None:
    beside: list[bool] = []
    monkeypatch.setattr(decoders.inspect, "type_info", lambda _kind: beside.append(decoders._lock.locked()))
    monkeypatch.setattr(decoders.msgspec.json, "Decoder", lambda _kind: beside.append(decoders._lock.locked()))

    decoders.inspect_type(_Unread)
    decoders.decoder(_Unread)

    assert beside == [True, True]


def _first_uses(source: str) -> list[str]:
    """Return calls that build msgspec's information about a type of ours after the import of the module."""
    tree = ast.parse(source)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    functions = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    later = {id(node) for function in functions for node in ast.walk(function)}
    typed = [
        ast.unparse(call)
        for call in calls
        for keyword in call.keywords
        if keyword.arg == "type"
        and ast.unparse(call.func).startswith("msgspec.")
        and ast.unparse(keyword.value).partition("[")[0] not in PLAIN
    ]
    named = [
        ast.unparse(call)
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] in NOTING
        and (id(call) in later or "ecoder" not in ast.unparse(call.func))
    ]
    return typed + named


def test_such_a_call_is_detected() -> None:
    source = """
msgspec.json.decode(raw, type=_Kind)
msgspec.json.decode(raw, type=dict[str, str])
msgspec.convert(a, B)
inspect.type_info(B)
at_load = msgspec.json.Decoder(B)
def later(): return msgspec.json.Decoder(B)
"""

    assert _first_uses(source) == [
        "msgspec.json.decode(raw, type=_Kind)",
        "msgspec.convert(a, B)",
        "inspect.type_info(B)",
        "msgspec.json.Decoder(B)",
    ]


def test_every_module_builds_its_decoders_at_import() -> None:
    sources = {path: path.read_text() for path in CONTROL_PLANE.rglob("*.py") if path not in MAKERS}

    assert {path.name: uses for path, source in sources.items() if (uses := _first_uses(source))} == {}
