# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far a build is, told by a Go that is a script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import SOURCES
from lab.programs.compiling import compile_module, describe, lines_and_ticks
from lab.programs.modules import MODULES
from lab.programs.toolchain import Go
from lab.progress import Count

ETCD = MODULES[0]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every count that was to be said, however little time has passed."""
    said: list[str] = []
    monkeypatch.setattr(Count, "say", lambda _self, text: said.append(text.strip()))
    return said


def a_go(directory: Path, *, listing: str, building: str) -> Go:
    program = directory / "go"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {directory}/asked\ncase $1 in\nlist) {listing};;\nbuild) {building};;\nesac\n'
    )
    program.chmod(0o755)
    return Go(program=program, version=(1, 26, 8))


def test_packages_are_counted_against_those_the_cache_lacks(tmp_path: Path, counts: list[str]) -> None:
    said: list[str] = []
    go = a_go(
        tmp_path,
        listing="echo 'go: downloading x v1' >&2; printf 'a/b\\n\\nc\\nmain\\n'",
        building="printf 'a/b\\n# c\\nwarning: c\\nc\\nmain\\n' >&2",
    )
    compile_module(go, ETCD, tmp_path / "out", said.append)
    assert "etcd: 1 modules fetched" in counts
    assert [text for text in dict.fromkeys(counts) if "compiled" in text] == [
        "etcd: 1 of 3 packages compiled",
        "etcd: 2 of 3 packages compiled",
        "etcd: 3 of 3 packages compiled, linking",
    ]
    assert said == ["built etcd in 0 s (3 packages compiled)"]


def test_what_only_had_to_be_linked_is_not_said_to_be_compiled(tmp_path: Path) -> None:
    """Go calls a program's own package stale when its file is not there."""
    said: list[str] = []
    compile_module(a_go(tmp_path, listing="echo main", building="true"), ETCD, tmp_path / "out", said.append)
    assert said == ["built etcd in 0 s (0 packages compiled)"]


def test_both_are_asked_about_the_same_packages(tmp_path: Path) -> None:
    compile_module(a_go(tmp_path, listing="true", building="true"), ETCD, tmp_path / "out", print)
    listed, built = (tmp_path / "asked").read_text().splitlines()
    shared = " ".join(ETCD.settings)
    assert listed.startswith("list -deps ")
    assert shared in listed
    assert f"build -v {shared} -o {tmp_path}/out/etcd ." in built


@pytest.mark.parametrize(("set_to", "used"), [(None, "400"), ("50", "50")], ids=["not set", "set"])
def test_compilers_collect_less_garbage_unless_the_user_says_how_much(
    set_to: str | None, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOGC", raising=False)
    if set_to:
        monkeypatch.setenv("GOGC", set_to)
    go = a_go(tmp_path, listing="true", building=f"echo $GOGC >> {tmp_path}/asked")
    compile_module(go, ETCD, tmp_path / "out", print)
    assert (tmp_path / "asked").read_text().splitlines()[-1] == used


@pytest.mark.parametrize(
    ("listing", "building", "word"),
    [("echo no network >&2; exit 1", "true", "list"), ("true", "echo c/x.go: syntax error >&2; exit 2", "build")],
)
def test_failure_shows_gos_last_lines_and_what_to_do(
    listing: str, building: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LabError, match=f"^`go {word}` of lab/go/etcd failed.*set GOPROXY"):
        compile_module(a_go(tmp_path, listing=listing, building=building), ETCD, tmp_path / "out", print)
    assert capsys.readouterr().err.strip() in ("no network", "c/x.go: syntax error")


def test_count_says_when_only_the_linker_is_left() -> None:
    assert describe("kube", 7, 9) == "  kube: 7 of 9 packages compiled"
    assert describe("kube", 9, 9) == "  kube: 9 of 9 packages compiled, linking"


def test_silence_is_heard_too() -> None:
    """A package that takes a minute is no reason to say nothing for a minute."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "w") as source:
        heard = lines_and_ticks(stream, tick_seconds=0.01)
        assert next(heard) == ""
        source.write("a/b\nc\n")
        source.close()
        assert [line for line in heard if line] == ["a/b", "c"]


def test_sources_are_where_go_is_run() -> None:
    assert (SOURCES / ETCD.name / "go.mod").is_file()
