# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No entry is stale: what it says is in the code, can be taken out, and its tests exist."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.controlplane.guards.copy import ROOT, Copy
from tests.controlplane.guards.guard import Guard
from tests.controlplane.guards.listed import GUARDS

AT_LEAST = 300


@cache
def _read(file: str) -> str:
    return (ROOT / file).read_text()


@cache
def _parse(text: str) -> str:
    return ast.dump(ast.parse(text))


@pytest.mark.parametrize("guard", GUARDS, ids=lambda one: one.id)
def test_an_entry_is_what_the_code_says(guard: Guard) -> None:
    whole = _read(guard.file)
    assert whole.count(guard.line) == 1, f"found {whole.count(guard.line)} times: the entry is stale"
    read = _parse if guard.file.endswith(".py") else str
    assert read(whole.replace(guard.line, guard.without)) != read(whole), "without it, the code is the same"


@pytest.mark.parametrize("guard", GUARDS, ids=lambda one: one.id)
def test_an_entry_says_why_and_who_misses_it(guard: Guard) -> None:
    assert guard.because[0].isupper(), "a sentence"
    assert guard.because.endswith("."), "a sentence"
    assert len(guard.because.split()) > 4, "a sentence"
    assert guard.tests or guard.seeds, "nobody is named"
    for named in guard.tests:
        file, _unused, test = named.partition("::")
        path = ROOT / file
        assert path.exists(), f"{file} does not exist"
        assert not test or f"def {test}(" in _read(file), f"{named} does not exist"


def test_no_guard_is_listed_twice() -> None:
    counted = Counter((one.file, one.line, one.without) for one in GUARDS)
    assert [one for one, count in counted.items() if count > 1] == []


def test_there_are_as_many_as_promised() -> None:
    assert len(GUARDS) >= AT_LEAST


def test_a_copy_never_runs_the_bytecode_of_what_it_was(tmp_path: Path) -> None:
    """Python compares size and mtime in whole seconds: each state of a file has a second of its own."""
    copy, guard = Copy(tmp_path), GUARDS[0]
    path = tmp_path / guard.file
    seconds = {int(path.stat().st_mtime)}
    for _unused in range(3):
        with copy.without(guard):
            seconds.add(int(path.stat().st_mtime))
            assert guard.line not in path.read_text()
        seconds.add(int(path.stat().st_mtime))
    assert len(seconds) == 7
    assert path.read_text() == (ROOT / guard.file).read_text()
