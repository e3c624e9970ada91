# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes about ended programs, with the last lines of their logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.cluster.last_words import LINES, last_words
from lab.machines.machine import Machine, ProgramState, control_plane_machine
from lab.paths import State


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(State, "root", tmp_path)
    made = control_plane_machine(State(name="told"))
    made.paths.logs.mkdir(parents=True)
    return made


def words(machine: Machine, monkeypatch: pytest.MonkeyPatch, log: str, *, pid: int = 7, **other: object) -> list[str]:
    state = ProgramState(pid=pid, **{"restarts": 0, "held": False, **other})  # type: ignore[arg-type]
    monkeypatch.setattr(Machine, "programs", lambda self: {"etcd": state})
    (machine.paths.logs / "etcd.log").write_text(log)
    return last_words(machine)


def test_a_running_or_held_program_has_no_note(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words(machine, monkeypatch, "hello") == []
    assert words(machine, monkeypatch, "hello", pid=0, held=True) == []


@pytest.mark.parametrize("state", [{"restarts": 1}, {"pid": 0}])
def test_an_ended_program_has_a_note_with_the_end_of_its_log(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, state: dict[str, int]
) -> None:
    (note,) = words(machine, monkeypatch, "\n".join(map(str, range(100))), **state)
    assert note.startswith("etcd on cp ended")
    assert note.splitlines()[1:] == [str(number) for number in range(100 - LINES, 100)]


@pytest.mark.parametrize("line", ["fatal error: concurrent map writes", "panic: no", "F1128 05:59:59.6 1 hook failed"])
def test_a_note_has_the_fatal_error_and_not_the_stacks(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    stacks = "\n".join(["goroutine 1 [running]:"] * 1000)
    (note,) = words(machine, monkeypatch, f"before\n{line}\n{stacks}", restarts=1)
    assert note.splitlines()[1] == line
    assert len(note.splitlines()) == 1 + LINES


def test_a_note_about_an_empty_log_says_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (note,) = words(machine, monkeypatch, "", restarts=1)
    assert note.endswith("\nnothing")
