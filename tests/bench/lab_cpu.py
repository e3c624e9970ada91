# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CPU time of a lab: of everything in it, of its guests' virtual CPUs, and by program."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lab.machines.cgroup import hierarchies, lab_group, processes

_TICKS = os.sysconf("SC_CLK_TCK")
_VIRTUAL_CPU = "CPU "
"""Prefix of the name that QEMU gives the thread of a virtual CPU."""


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds since the lab's start, or between two moments."""

    total: float
    guests: float
    """What guests ran: their firmware and their kernel."""
    programs: Counter[str]
    """With the children of each process that have ended, and without guests."""

    def since(self, before: CpuTime) -> CpuTime:
        """Return the time between two moments. A program that has ended meanwhile counts for its parent."""
        return CpuTime(self.total - before.total, self.guests - before.guests, self.programs - before.programs)


def read_cpu_time(lab: str) -> CpuTime:
    """Read the CPU time of a lab."""
    programs, guests = Counter[str](), 0.0
    for pid in processes(lab_group(lab)):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            own, of_guest = _seconds(pid), sum(_of_virtual_cpus(pid))
            programs[_program(pid)] += own - of_guest  # type: ignore[assignment]
            guests += of_guest
    return CpuTime(_total(lab), guests, programs)


def _total(lab: str) -> float:
    for hierarchy in hierarchies():
        group = hierarchy.path / lab_group(lab)
        if "cpuacct" in hierarchy.options:
            return int((group / "cpuacct.usage").read_text()) / 1e9
    unified = next(hierarchy for hierarchy in hierarchies() if hierarchy.unified)
    fields = (unified.path / lab_group(lab) / "cpu.stat").read_text().split()
    return int(fields[fields.index("usage_usec") + 1]) / 1e6


def _seconds(pid: int) -> float:
    """Return the time of a process and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def _of_virtual_cpus(pid: int) -> Iterator[float]:
    for thread in Path(f"/proc/{pid}/task").iterdir():
        if (thread / "comm").read_text().startswith(_VIRTUAL_CPU):
            yield int((thread / "schedstat").read_text().split()[0]) / 1e9


def _program(pid: int) -> str:
    """Return the module of a Python process of ours, else the kernel's name of the program."""
    name = Path(f"/proc/{pid}/comm").read_text().strip()
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    if name.startswith("python") and "-m" in words:
        return words[words.index("-m") + 1].removeprefix("controlplane.")
    return name
