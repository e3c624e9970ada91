# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups of both versions. They identify the processes of a lab; there are no pid files.

Every machine has one group, lab/<lab>/<machine>, in every hierarchy. The code for cgroup v2 follows its documentation
and is not tested.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

ROOT = Path("/sys/fs/cgroup")
PARENT = "lab"


@dataclass(frozen=True, kw_only=True)
class Hierarchy:
    path: Path
    unified: bool
    options: frozenset[str]


def parse_hierarchies(mountinfo: str) -> list[Hierarchy]:
    """Read the mounted cgroup hierarchies from the text of /proc/self/mountinfo."""
    by_path: dict[Path, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, _unused, after = line.partition(" - ")
        kind, _unused, options = after.split(" ", 2)
        path = Path(before.split(" ")[4])
        if kind in ("cgroup", "cgroup2") and path.is_relative_to(ROOT):
            by_path.setdefault(
                path, Hierarchy(path=path, unified=kind == "cgroup2", options=frozenset(options.split(",")))
            )
    return list(by_path.values())


def hierarchies() -> list[Hierarchy]:
    mounted = parse_hierarchies(Path("/proc/self/mountinfo").read_text())
    if not mounted:
        raise LabError(
            "no cgroup hierarchy is mounted below /sys/fs/cgroup; mount one (mount -t cgroup2 cgroup2 /sys/fs/cgroup)"
        )
    return mounted


def lab_group(lab: str) -> str:
    return f"{PARENT}/{lab}"


def machine_group(lab: str, machine: str) -> str:
    return f"{PARENT}/{lab}/{machine}"


def machines(lab: str) -> set[str]:
    """Return the names of the machines with a group, running or not."""
    names: set[str] = set()
    for hierarchy in hierarchies():
        with contextlib.suppress(FileNotFoundError):
            names.update(entry.name for entry in os.scandir(hierarchy.path / lab_group(lab)) if entry.is_dir())
    return names


def processes(group: str) -> set[int]:
    """Return all processes in the group and below, in any hierarchy."""
    pids: set[int] = set()
    for hierarchy in hierarchies():
        for directory in _walk(hierarchy.path / group):
            with contextlib.suppress(OSError):
                pids.update(int(line) for line in (directory / "cgroup.procs").read_text().split())
    return pids - {0}


def init_of(pids: set[int]) -> int | None:
    """Return PID 1 of the machine's pid namespace, which is one level below ours."""
    for pid in pids:
        numbers = namespace_pids(pid)
        if len(numbers) == 2 and numbers[-1] == 1:
            return pid
    return None


def namespace_pids(pid: int) -> list[int]:
    """Return the pid in each namespace, the host's first. Empty if the process is gone or a zombie."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return []
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    if fields.get("State", "Z").startswith("Z"):
        return []
    return [int(number) for number in fields.get("NSpid", "").split()]


def freeze(group: str, *, frozen: bool) -> None:
    """Stop or continue every process of the group. Returns when the kernel reports the new state."""
    path, value, state = _freezer(group, frozen)
    if not path.exists():
        raise LabError(f"cgroup {group} does not exist: is the lab up?")
    path.write_text(value)
    deadline = time.monotonic() + 10
    while not _freezer_says(path, state):
        if time.monotonic() > deadline:
            raise LabError(f"cgroup {group}: the kernel did not reach {state!r} within 10 s")
        time.sleep(0.005)


def is_frozen(group: str) -> bool:
    path, _unused, state = _freezer(group, True)
    return path.exists() and _freezer_says(path, state)


def _freezer(group: str, frozen: bool) -> tuple[Path, str, str]:
    for hierarchy in hierarchies():
        if "freezer" in hierarchy.options and not hierarchy.unified:
            state = "FROZEN" if frozen else "THAWED"
            return hierarchy.path / group / "freezer.state", state, state
    unified = next((candidate for candidate in hierarchies() if candidate.unified), None)
    if unified is None:
        raise LabError("this kernel has no freezer cgroup: freeze and thaw cannot work here")
    number = "1" if frozen else "0"
    return unified.path / group / "cgroup.freeze", number, f"frozen {number}"


def _freezer_says(path: Path, line: str) -> bool:
    if path.name == "cgroup.freeze":
        return line in (path.parent / "cgroup.events").read_text().splitlines()
    return path.read_text().strip() == line


def kill(group: str, *, timeout_seconds: float = 10) -> None:
    """Kill all processes of the group and wait until they are gone. The kernel kills the rest after the init."""
    deadline = time.monotonic() + timeout_seconds
    if is_frozen(group):
        freeze(group, frozen=False)
    while pids := {pid for pid in processes(group) if namespace_pids(pid)}:
        first = init_of(pids)
        for pid in [first] if first else pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"processes {sorted(pids)} of {group} do not die: look at /proc/<pid>/stack")
        time.sleep(0.01)


def remove(group: str) -> None:
    """Remove the group's directories, deepest first, in every hierarchy."""
    deadline = time.monotonic() + 30  # on a busy machine the kernel needs time to free an API server
    for hierarchy in hierarchies():
        for directory in sorted(_walk(hierarchy.path / group), key=lambda path: len(path.parts), reverse=True):
            _rmdir(directory, deadline)


def remove_if_empty(group: str) -> None:
    for hierarchy in hierarchies():
        with contextlib.suppress(OSError):
            (hierarchy.path / group).rmdir()


def _rmdir(directory: Path, deadline: float) -> None:
    while True:
        try:
            directory.rmdir()
        except FileNotFoundError:
            return
        except OSError as error:
            # A group stays busy for a moment after its last process is reaped.
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise LabError(f"cannot remove cgroup {directory}: {error.strerror}") from error
            time.sleep(0.02)
        else:
            return


def _walk(directory: Path) -> Iterator[Path]:
    if directory.is_dir():
        for path, _unused, _unused in os.walk(directory):
            yield Path(path)


def join_script(group: str) -> str:
    """Return a shell script that moves its shell into the group, in every hierarchy."""
    lines = []
    for hierarchy in hierarchies():
        leaf = "/init" if hierarchy.unified and (hierarchy.path / group / "init").is_dir() else ""
        lines.append(f"echo $$ > {hierarchy.path}/{group}{leaf}/cgroup.procs")
    return "\n".join(lines)
