# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which QEMU processes execute a guest, seen from outside: by the CPU time that the kernel counts.

A migration has two processes of one machine, and only one may execute. A stopped vCPU thread uses no CPU time. So when
one starts to execute, the other must have stopped for good: it uses none any more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.observer import Guest

RUNS_NANOSECONDS = 3_000_000
"""Per poll: libvirt and QEMU alone use less CPU time, the clock of a running guest uses more."""


@dataclass
class Motion:
    """Polled repeatedly for every QEMU process."""

    proc: Path = Path("/proc")
    doubles: list[str] = field(default_factory=list)
    _used: dict[Guest, int] = field(default_factory=dict)
    _runner: dict[str, Guest] = field(default_factory=dict)
    """The QEMU that executed last, by machine."""
    _at_rest: dict[str, set[Guest]] = field(default_factory=lambda: defaultdict(set))
    """QEMUs with a successor: they never execute again."""

    def look(self, guests: list[Guest]) -> None:
        """Compare with the last look."""
        moved = [guest for guest in guests if self._has_run(guest)]
        for mover in moved:
            if mover in self._at_rest[mover.machine]:
                self.doubles.append(f"{mover} runs, and {self._runner[mover.machine]} has run before")
        for machine in {mover.machine for mover in moved}:
            self._follow(machine, [mover for mover in moved if mover.machine == machine])
        self._used = {guest: self._used[guest] for guest in guests if guest in self._used}

    def _follow(self, machine: str, moved: list[Guest]) -> None:
        """When the guest switches between two looks, both have executed: the one that did not before is the new one."""
        before = self._runner.get(machine)
        others = [guest for guest in moved if guest != before]
        if len(others) > 1:
            self.doubles.append(f"two guests of one machine begin to run: {others}")
        if not others:
            return
        if before is not None:
            self._at_rest[machine].add(before)
        self._runner[machine] = others[0]

    def _has_run(self, guest: Guest) -> bool:
        used = self._processor_nanoseconds(guest.pid)
        before, self._used[guest] = self._used.get(guest, used), used
        return used - before > RUNS_NANOSECONDS

    def _processor_nanoseconds(self, pid: int) -> int:
        total = 0
        try:
            for task in (self.proc / str(pid) / "task").iterdir():
                if (task / "comm").read_text().startswith("CPU "):
                    total += int((task / "schedstat").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return 0
        return total
