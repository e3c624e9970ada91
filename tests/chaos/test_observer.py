# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The observer detects two guests of one machine, and when a guest was there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.chaos.observer import Observer

UUID, OTHER = "6a1a24a1-4061-4607-8bf4-a3963d0c5895", "0b5f1e2c-7a41-4d7e-9f43-2f2a54f0a111"


@dataclass
class Proc:
    """A fake /proc with processes that a test starts and ends."""

    path: Path

    def runs(self, pid: int, machine: str = UUID, *, lab: str = "chaos", program: str = "qemu-system-x86_64") -> None:
        words = (f"/usr/bin/{program}", "-name", f"guest=vmi-{pid},debug-threads=on", "-uuid", machine)
        self._write(pid, "\0".join(words), f"4:cpu:/lab/{lab}/node-1/kubepods/burstable/pod1\n")

    def is_dead(self, pid: int) -> None:
        """It stays a zombie until its parent reads its exit code."""
        self._write(pid, "", "0::/\n")

    def is_gone(self, pid: int) -> None:
        for name in ("cmdline", "cgroup", "stat"):
            (self.path / str(pid) / name).unlink()

    def _write(self, pid: int, line: str, groups: str) -> None:
        directory = self.path / str(pid)
        directory.mkdir(exist_ok=True)
        (directory / "cmdline").write_text(line)
        (directory / "cgroup").write_text(groups)
        (directory / "stat").write_text(f"{pid} (CPU 0) (x)) S " + " ".join(map(str, range(1, 40))))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    (tmp_path / "uptime").write_text("")
    return Proc(tmp_path)


def test_two_guests_of_one_machine_are_reported_once(proc: Proc) -> None:
    observer = Observer("chaos", proc.path)
    proc.runs(10)
    proc.runs(11)

    for _unused in range(2):
        observer.look()

    assert len(observer.doubles) == 1
    assert "pid=10" in observer.doubles[0]
    assert "pid=11" in observer.doubles[0]


def test_guests_of_two_machines_of_other_labs_and_other_processes_are_no_duplicates(proc: Proc) -> None:
    observer = Observer("chaos", proc.path)
    proc.runs(10)
    proc.runs(11, OTHER)
    proc.runs(12, lab="another")
    proc.runs(13, lab="chaos-2")
    proc.runs(14, program="python3")
    proc.runs(15)
    proc.is_dead(15)

    guests = observer.look()

    assert not observer.doubles
    assert [(guest.machine, guest.node, guest.instance) for guest in guests] == [
        (OTHER, "node-1", "vmi-11"),
        (UUID, "node-1", "vmi-10"),
    ]


def test_a_guest_after_the_end_of_the_first_is_no_duplicate(proc: Proc) -> None:
    observer = Observer("chaos", proc.path)
    proc.runs(10)
    observer.look()
    proc.is_gone(10)
    proc.runs(11)

    observer.look()

    assert not observer.doubles
    assert [(guest.pid, life.is_over) for guest, life in observer.lives.items()] == [(10, True), (11, False)]
