# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that the user names instead of a built one: which may be named, and what is asked of them.

Which ones the user has named is in choice.py.
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
    """How a program says its version, and which versions fit: from `floor` up to, but without, `below`."""

    ask: tuple[str, ...] = ("--version",)
    says: str
    floor: Version
    below: Version


_KUBERNETES_FLOOR: Version = (1, 36, 0)
"""Launchers use image volumes, which every kubelet has from here on."""
_CONTAINERD_FLOOR: Version = (2, 1, 0)
"""The first one that mounts image volumes."""
_CNI_FLOOR: Version = (1, 6, 0)
"""The first one whose portmap speaks nftables."""


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
    """A program that was examined. `stamp` changes with the file."""

    name: str
    path: Path
    version: str
    stamp: str


def parse_named(word: str) -> tuple[str, Path | None]:
    """Read NAME=PATH; NAME= alone stands for the built program, and its path is None."""
    name, equals, path = word.partition("=")
    if not equals:
        raise LabError(f"--program {word}: write NAME=PATH, such as kubelet=/usr/local/bin/kubelet")
    if name not in RULES:
        raise LabError(f"--program {word}: {name!r} cannot be named; what can be: {', '.join(sorted(RULES))}")
    return name, Path(path).absolute() if path else None


def examine(name: str, path: Path) -> Named:
    """Run the program for its version; raise LabError, with its name, when it cannot take the built one's place."""
    mark = stamp_of(name, path)
    version = _fitting_version(name, path, _answer(name, path))
    return Named(name=name, path=path, version=".".join(map(str, version)), stamp=mark)


def stamp_of(name: str, path: Path) -> str:
    """Tell this file from what was or will be at its path; raise LabError when there is no program."""
    try:
        found = path.stat()
    except OSError as error:
        raise LabError(f"program {_pair(name, path)}: {error.strerror}; {_way_back(name)}") from error
    if not stat.S_ISREG(found.st_mode) or not os.access(path, os.X_OK):
        raise LabError(f"program {_pair(name, path)}: not an executable file; {_way_back(name)}")
    return f"{found.st_dev}-{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def check_kubernetes(named: Iterable[Named]) -> None:
    """Raise LabError unless all Kubernetes programs of a lab, named and built, are of one minor version."""
    versions = dict.fromkeys(KUBE_PROGRAMS, KUBERNETES)
    paths = {each.name: each.path for each in named if each.name in versions}
    versions |= {each.name: each.version for each in named if each.name in versions}
    minors: dict[str, list[str]] = {}
    for name, version in versions.items():
        minors.setdefault(version.rpartition(".")[0], []).append(name)
    if len(minors) > 1:
        told = "; ".join(f"{minor}: {', '.join(names)}" for minor, names in sorted(minors.items()))
        pairs = " ".join(_pair(name, path) for name, path in paths.items())
        raise LabError(f"program {pairs}: all Kubernetes programs of a lab are of one minor version, not {told}")


def _answer(name: str, path: Path) -> str:
    command = [str(path), *RULES[name].ask]
    # CNI plug-ins read what to do from the environment, and without it say what they are.
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


def _fitting_version(name: str, path: Path, answer: str) -> Version:
    rule = RULES[name]
    found = re.search(rf"^\s*{rule.says}\s*{_NUMBERS}", answer, re.MULTILINE)
    if found is None:
        first = next((line for line in answer.splitlines() if line.strip()), "nothing")
        asked = shlex.join([str(path), *rule.ask])
        raise LabError(f"program {_pair(name, path)}: not a {name} of a release; `{asked}` says: {first[:200]}")
    version = (int(found[1]), int(found[2]), int(found[3]))
    if not rule.floor <= version < rule.below:
        floor, below = (".".join(map(str, each)) for each in (rule.floor, rule.below))
        said = ".".join(map(str, version))
        raise LabError(
            f"program {_pair(name, path)}: its version is {said}; the lab needs {floor} or newer, below {below}"
        )
    return version


def _pair(name: str, path: Path) -> str:
    return f"{name}={path}"


def _way_back(name: str) -> str:
    return f"`lab build --program {name}=` goes back to the lab's own"
