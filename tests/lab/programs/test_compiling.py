# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a build, with a script in place of Go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.programs.compiling import compile_module, lines_and_ticks
from lab.programs.modules import MODULES
from lab.programs.toolchain import Go
from lab.progress import Count

ETCD = MODULES[0]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every progress text, without the limit of one per ten seconds."""
    printed: list[str] = []
    monkeypatch.setattr(Count, "say", lambda _self, text: printed.append(text.strip()))
    return printed


def a_go(directory: Path, *, listing: str, building: str) -> Go:
    program = directory / "go"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {directory}/asked\ncase $1 in\nlist) {listing};;\nbuild) {building};;\nesac\n'
    )
    program.chmod(0o755)
    return Go(program=program, version=(1, 26, 8))


def test_progress_counts_the_packages_that_the_cache_lacks(tmp_path: Path, counts: list[str]) -> None:
    printed: list[str] = []
    go = a_go(
        tmp_path,
        listing="echo 'go: downloading x v1' >&2; printf 'a/b\\n\\nc\\nmain\\n'",
        building="printf 'a/b\\n# c\\nwarning: c\\nc\\nmain\\n' >&2",
    )
    compile_module(go, ETCD, tmp_path / "out", printed.append)
    assert "etcd: 1 modules fetched" in counts
    assert [text for text in dict.fromkeys(counts) if "compiled" in text] == [
        "etcd: 1 of 3 packages compiled",
        "etcd: 2 of 3 packages compiled",
        "etcd: 3 of 3 packages compiled, linking",
    ]
    assert printed == ["built etcd in 0 s (3 packages compiled)"]


def test_a_linked_program_is_not_counted_as_compiled(tmp_path: Path) -> None:
    """Go reports a program's own package as stale if its file does not exist."""
    printed: list[str] = []
    compile_module(a_go(tmp_path, listing="echo main", building="true"), ETCD, tmp_path / "out", printed.append)
    assert printed == ["built etcd in 0 s (0 packages compiled)"]


def test_list_and_build_get_the_same_settings(tmp_path: Path) -> None:
    compile_module(a_go(tmp_path, listing="true", building="true"), ETCD, tmp_path / "out", print)
    listed, built = (tmp_path / "asked").read_text().splitlines()
    shared = " ".join(ETCD.settings)
    assert listed.startswith("list -deps ")
    assert shared in listed
    assert f"build -v {shared} -o {tmp_path}/out/etcd ." in built


@pytest.mark.parametrize(("set_to", "used"), [(None, "off"), ("50", "50")], ids=["default", "user's"])
def test_gogc_has_a_default_that_the_user_can_override(
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
def test_a_failure_shows_the_last_lines_of_go_and_the_remedy(
    listing: str, building: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LabError, match=f"^`go {word}` of .*etcd failed.*set GOPROXY"):
        compile_module(a_go(tmp_path, listing=listing, building=building), ETCD, tmp_path / "out", print)
    assert capsys.readouterr().err.strip() in ("no network", "c/x.go: syntax error")


def test_an_interval_without_a_line_yields_a_tick() -> None:
    """Progress must continue while one package compiles for a minute."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as stream, os.fdopen(writing, "w") as source:
        heard = lines_and_ticks(stream, tick_seconds=0.01)
        assert next(heard) == ""
        source.write("a/b\nc\n")
        source.close()
        assert [line for line in heard if line] == ["a/b", "c"]
