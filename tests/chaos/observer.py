# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts guests from outside: the QEMU processes in the control groups of a lab, independent of every report."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lab.machines.cgroup import lab_group


@dataclass(frozen=True, order=True)
class Guest:
    """A QEMU process that runs a domain."""

    machine: str
    """The UUID of its firmware: that of its machine, in every run."""
    instance: str
    """The UID of its VMI, which is the name of its domain."""
    node: str
    pid: int
    began: int
    """Ticks since the host's boot: unique with the pid."""


@dataclass
class Life:
    """When a guest was seen (monotonic)."""

    first: float
    last: float
    is_over: bool = False


@dataclass
class Observer:
    """Looks for guests, and records when each was there."""

    lab: str
    proc: Path = Path("/proc")
    lives: dict[Guest, Life] = field(default_factory=dict)
    doubles: list[str] = field(default_factory=list)
    looks: int = 0

    def guests(self) -> list[Guest]:
        """Return every current guest, without recording it."""
        return sorted(self._guests())

    def look(self) -> list[Guest]:
        """Record every current guest."""
        guests, now = sorted(self._guests()), time.monotonic()
        self.looks += 1
        self._compare(guests)
        for guest in guests:
            self.lives.setdefault(guest, Life(now, now)).last = now
        for guest, life in self.lives.items():
            life.is_over = life.is_over or (life.last < now and not self._is_alive(guest))
        return guests

    def _compare(self, guests: list[Guest]) -> None:
        """Report two guests of one machine. A look takes a moment: both must still be there after it."""
        by_machine = defaultdict[str, list[Guest]](list)
        for guest in guests:
            by_machine[guest.machine].append(guest)
        for several in by_machine.values():
            alive = [guest for guest in several if self._is_alive(guest)] if len(several) > 1 else several
            text = f"two guests of one machine: {alive}"
            if len(alive) > 1 and text not in self.doubles:
                self.doubles.append(text)

    def _is_alive(self, guest: Guest) -> bool:
        return self._read(guest.pid) == guest

    def _guests(self) -> Iterator[Guest]:
        for entry in self.proc.iterdir():
            if entry.name.isdecimal() and (guest := self._read(int(entry.name))) is not None:
                yield guest

    def _read(self, pid: int) -> Guest | None:
        """Return a process that is a guest of the lab; a zombie is none."""
        try:
            words = (self.proc / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if not words[0].endswith("/qemu-system-x86_64") or "-uuid" not in words:
                return None
            groups = (self.proc / str(pid) / "cgroup").read_text()
            began = int((self.proc / str(pid) / "stat").read_text().rpartition(")")[2].split()[19])
        except (OSError, ValueError):
            return None
        _unused, is_in_lab, rest = groups.partition(f"/{lab_group(self.lab)}/")
        if not is_in_lab:
            return None
        instance = words[words.index("-name") + 1].removeprefix("guest=").partition(",")[0]
        return Guest(words[words.index("-uuid") + 1], instance, rest.partition("/")[0], pid, began)
