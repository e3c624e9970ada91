# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that the user names instead of a built one: which programs may be named, and their checks.

choice.py stores the named programs.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.programs.modules import CNI_PROGRAMS, KUBE_PROGRAMS, KUBERNETES

Version = tuple[int, int, int]

ANSWER_SECONDS = 10
_NUMBERS = r"v?(\d+)\.(\d+)\.(\d+)"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How a program prints its version, and which versions are accepted: floor <= version < below."""

    ask: tuple[str, ...] = ("--version",)
    says: str
    floor: Version
    below: Version


_KUBERNETES_FLOOR: Version = (1, 36, 0)
"""The first version whose kubelet has image volumes, which launchers use."""
_CONTAINERD_FLOOR: Version = (2, 1, 0)
"""The first version that mounts image volumes."""
_CNI_FLOOR: Version = (1, 6, 0)
"""The first version whose portmap supports nftables."""


def _kubernetes(says: str = "Kubernetes", ask: tuple[str, ...] = ("--version",)) -> Rule:
    return Rule(ask=ask, says=says, floor=_KUBERNETES_FLOOR, below=(2, 0, 0))


def _containerd(says: str, ask: tuple[str, ...] = ("--version",)) -> Rule:
    return Rule(ask=ask, says=says, floor=_CONTAINERD_FLOOR, below=(3, 0, 0))


RULES: dict[str, Rule] = {
    "etcd": Rule(says="etcd Version:", floor=(3, 5, 0), below=(4, 0, 0)),
    **{name: _kubernetes() for name in KUBE_PROGRAMS},
    "kubectl": _kubernetes("Client Version:", ("version", "--client")),
    "containerd": _containerd(r"containerd \S+"),
    "containerd-shim-runc-v2": _containerd("Version:", ("-v",)),
    "ctr": _containerd(r"ctr \S+"),
    "runc": Rule(says="runc version", floor=(1, 1, 0), below=(2, 0, 0)),
    "coredns": Rule(ask=("-version",), says="CoreDNS-", floor=(1, 11, 0), below=(2, 0, 0)),
    **{name: Rule(ask=(), says=f"CNI {name} plugin", floor=_CNI_FLOOR, below=(2, 0, 0)) for name in CNI_PROGRAMS},
}


@dataclass(frozen=True, kw_only=True)
class Named:
    """A program that passed its check. `stamp` changes with the file."""

    name: str
    path: Path
    version: str
    stamp: str


def parse_named(word: str) -> tuple[str, Path | None]:
    """Parse NAME=PATH. NAME= means the built program; its path is None."""
    name, equals, path = word.partition("=")
    if not equals:
        raise LabError(f"--program {word}: write NAME=PATH, such as kubelet=/usr/local/bin/kubelet")
    if name not in RULES:
        raise LabError(f"--program {word}: {name!r} cannot be replaced; these can: {', '.join(sorted(RULES))}")
    return name, Path(path).absolute() if path else None


def examine(name: str, path: Path) -> Named:
    """Run the program for its version. Raises LabError if it cannot replace the built one."""
    mark = stamp_of(name, path)
    version = _fitting_version(name, path, _answer(name, path))
    return Named(name=name, path=path, version=".".join(map(str, version)), stamp=mark)


def stamp_of(name: str, path: Path) -> str:
    """Return an identifier of this version of the file. Raises LabError if it is no program."""
    try:
        status = path.stat()
    except OSError as error:
        raise LabError(f"program {_pair(name, path)}: {error.strerror}; {_way_back(name)}") from error
    if not stat.S_ISREG(status.st_mode) or not os.access(path, os.X_OK):
        raise LabError(f"program {_pair(name, path)}: not an executable file; {_way_back(name)}")
    return f"{status.st_dev}-{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"


def check_kubernetes(named: Iterable[Named]) -> None:
    """Raise LabError unless all Kubernetes programs of a lab, named and built, have one minor version."""
    versions = dict.fromkeys(KUBE_PROGRAMS, KUBERNETES)
    paths = {program.name: program.path for program in named if program.name in versions}
    versions |= {program.name: program.version for program in named if program.name in versions}
    minors: dict[str, list[str]] = {}
    for name, version in versions.items():
        minors.setdefault(version.rpartition(".")[0], []).append(name)
    if len(minors) > 1:
        groups = "; ".join(f"{minor}: {', '.join(names)}" for minor, names in sorted(minors.items()))
        pairs = " ".join(_pair(name, path) for name, path in paths.items())
        raise LabError(f"program {pairs}: all Kubernetes programs of a lab are of one minor version, not {groups}")


def _answer(name: str, path: Path) -> str:
    command = [str(path), *RULES[name].ask]
    # CNI plug-ins read their command from the environment. Without it they print their version.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CNI_")}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = error.strerror if isinstance(error, OSError) else f"no answer within {ANSWER_SECONDS} s"
        raise LabError(f"program {_pair(name, path)}: `{shlex.join(command)}`: {reason}") from error
    return done.stdout.decode(errors="replace")


def _fitting_version(name: str, path: Path, output: str) -> Version:
    rule = RULES[name]
    match = re.search(rf"^\s*{rule.says}\s*{_NUMBERS}", output, re.MULTILINE)
    if match is None:
        first = next((line for line in output.splitlines() if line.strip()), "nothing")
        command = shlex.join([str(path), *rule.ask])
        raise LabError(f"program {_pair(name, path)}: not a {name} of a release; `{command}` says: {first[:200]}")
    version = (int(match[1]), int(match[2]), int(match[3]))
    if not rule.floor <= version < rule.below:
        floor, below = (".".join(map(str, bound)) for bound in (rule.floor, rule.below))
        printed = ".".join(map(str, version))
        raise LabError(
            f"program {_pair(name, path)}: its version is {printed}; the lab needs {floor} or newer, below {below}"
        )
    return version


def _pair(name: str, path: Path) -> str:
    return f"{name}={path}"


def _way_back(name: str) -> str:
    return f"`lab build --program {name}=` goes back to the lab's own"
