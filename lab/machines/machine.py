# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of the lab, node or control plane: start it, control its init, run commands, list its processes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.machines import cgroup
from lab.paths import MachinePaths, State
from lab.programs.ensure import Programs

# The kubelet requires these values of the host's settings. It reads them here and changes nothing.
KUBELET_MASKS = {
    "vm/overcommit_memory": "1",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
CONTROL_PLANE = "cp"
NAMESPACES = ("--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that the machine's init keeps running."""

    name: str
    argv: list[str]
    log: Path
    environment: list[str] = field(default_factory=list)
    remove: list[str] = field(default_factory=list)
    """Files to delete before each start."""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "argv": self.argv,
            "environment": self.environment,
            "log": str(self.log),
            "remove": self.remove,
        }


@dataclass(frozen=True, kw_only=True)
class ProgramState:
    """The state of a program. pid: in the host's namespace, 0 if the program does not run."""

    pid: int
    restarts: int
    held: bool


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One machine by name. Its cgroup is read each time to see whether it runs."""

    state: State
    name: str
    paths: MachinePaths

    @property
    def group(self) -> str:
        return cgroup.machine_group(self.state.name, self.name)

    def pid(self) -> int | None:
        """Return the init's pid in the host's namespace, None if the machine is down."""
        return cgroup.init_of(cgroup.processes(self.group))

    def running_pid(self) -> int:
        pid = self.pid()
        if pid is None:
            raise LabError(f"{self.name} of lab {self.state.name!r} is down; start it with `lab up`")
        return pid

    def is_frozen(self) -> bool:
        return cgroup.is_frozen(self.group)

    def start(self, init: Path, configuration: dict[str, Any]) -> int:
        """Start the machine, after a cleanup of its previous run. Return the pid of its init."""
        cgroup.kill(self.group)
        cgroup.remove(self.group)
        self.paths.logs.mkdir(parents=True, exist_ok=True)
        self.paths.socket.unlink(missing_ok=True)
        self.paths.configuration.write_text(json.dumps(configuration))
        done = subprocess.run(
            [init, "start", self.paths.configuration],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")},
        )
        if done.returncode != 0:
            raise LabError(f"cannot start {self.name}: {done.stderr.strip()}")
        return int(json.loads(done.stdout)["pid"])

    def kill(self) -> None:
        """Kill all processes of the machine and remove its cgroups."""
        cgroup.kill(self.group)
        cgroup.remove(self.group)

    def ensure(self, programs: Sequence[Program]) -> None:
        """Have the init run these programs. A program that runs with the same arguments is not restarted."""
        self._ask({"operation": "ensure", "programs": [program.as_json() for program in programs]})

    def hold(self, name: str) -> None:
        """Kill a program and keep it down until the next ensure."""
        self._ask({"operation": "hold", "name": name})

    def programs(self) -> dict[str, ProgramState]:
        """Return the state of each program. Empty if the machine is down or does not respond."""
        if self.is_frozen():
            return {}
        try:
            response = self._ask({"operation": "status"})
        except (OSError, ValueError):
            return {}
        host_pids = self._outer_pids()
        return {
            name: ProgramState(pid=host_pids.get(status["pid"], 0), restarts=status["restarts"], held=status["held"])
            for name, status in response["programs"].items()
        }

    def _outer_pids(self) -> dict[int, int]:
        """Return the host's pid of each process by its pid in the machine."""
        pids = {}
        for pid in cgroup.processes(self.group):
            numbers = cgroup.namespace_pids(pid)
            if len(numbers) == 2:
                pids[numbers[1]] = pid
        return pids

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.settimeout(5)
            connection.connect(str(self.paths.socket))
            connection.sendall(json.dumps(request).encode())
            with connection.makefile("rb") as stream:
                response: dict[str, Any] = json.loads(stream.readline())
        if response.get("error"):
            raise LabError(f"{self.name}: {response['error']}")
        return response

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return a command line that runs argv inside: it enters the machine's cgroups, then its namespaces.

        ctr and kubectl are on the PATH, as on a node installed from packages.
        """
        path = json.loads(self.paths.configuration.read_text())["path"]
        nsenter = ["nsenter", f"--target={self.running_pid()}", *NAMESPACES, "--", "env", f"PATH={path}", *argv]
        return ["/bin/sh", "-ec", f"{cgroup.join_script(self.group)}\nexec {shlex.join(nsenter)}"]

    def run(
        self, argv: Sequence[str], *, stdin: int | None = subprocess.DEVNULL, timeout_seconds: float = 600
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside and return its output as text. Raises LabError if it fails."""
        done = subprocess.run(
            self.command(argv), stdin=stdin, capture_output=True, text=True, check=False, timeout=timeout_seconds
        )
        if done.returncode != 0:
            output = (done.stderr or done.stdout).strip()
            raise LabError(f"on {self.name}, `{shlex.join(argv)}` ended with {done.returncode}: {output}")
        return done


def control_plane_machine(state: State) -> Machine:
    return Machine(state=state, name=CONTROL_PLANE, paths=state.control_plane)


def node_machine(state: State, name: str) -> Machine:
    return Machine(state=state, name=name, paths=state.node(name))


def describe_machine(
    machine: Machine,
    *,
    binds: Sequence[tuple[Path, str]],
    sysctls: dict[str, str],
    masks: dict[str, str],
    programs: Programs,
) -> dict[str, Any]:
    """Return the init's configuration, with the PATH for commands. The lab's directory has the same path inside."""
    own = machine.state.root
    return {
        "hostname": machine.name,
        "path": search_path(*programs.directories(*programs.copies)),
        "cgroup": machine.group,
        "directory": str(machine.paths.root),
        "socket": str(machine.paths.socket),
        "binds": [{"source": str(source), "target": target} for source, target in [(own, str(own)), *binds]],
        "masks": masks,
        "sysctls": sysctls,
    }


def search_path(*directories: Path) -> str:
    """Return PATH inside a machine: our directories, then the distribution's, and those of runc, nft and mount."""
    system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    tool_directories = {str(Path(path).parent) for name in ("runc", "nft", "mount") if (path := shutil.which(name))}
    return ":".join([*map(str, directories), *system, *sorted(tool_directories - set(system))])
