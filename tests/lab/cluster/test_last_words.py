# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs are told of, and which lines of a log are a program's last."""

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


def test_who_has_run_all_the_time_or_is_held_is_not_told_of(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert words(machine, monkeypatch, "hello") == []
    assert words(machine, monkeypatch, "hello", pid=0, held=True) == []


@pytest.mark.parametrize("state", [{"restarts": 1}, {"pid": 0}])
def test_who_has_ended_is_told_of_by_the_end_of_its_log(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, state: dict[str, int]
) -> None:
    (said,) = words(machine, monkeypatch, "\n".join(map(str, range(100))), **state)
    assert said.startswith("etcd on cp ended")
    assert said.splitlines()[1:] == [str(number) for number in range(100 - LINES, 100)]


@pytest.mark.parametrize("line", ["fatal error: concurrent map writes", "panic: no", "F1128 05:59:59.6 1 hook failed"])
def test_what_go_says_first_of_its_death_is_told_and_not_its_stacks(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    stacks = "\n".join(["goroutine 1 [running]:"] * 1000)
    (said,) = words(machine, monkeypatch, f"before\n{line}\n{stacks}", restarts=1)
    assert said.splitlines()[1] == line
    assert len(said.splitlines()) == 1 + LINES


def test_a_program_that_wrote_nothing_has_said_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    (said,) = words(machine, monkeypatch, "", restarts=1)
    assert said.endswith("\nnothing")
