# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python packages of the control-plane image: locked with hashes, fetched as wheels for the image's Python.

`python3 -m images lock` renews the lock file from the pins in pyproject.toml. Nothing is built from source.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from images.precompile import VERSION

_GLIBC = ("2_36", "2_34", "2_31", "2_28", "2_17")  # glibc versions that wheels are built for, up to trixie's 2.41
_ABI = "cp" + VERSION.replace(".", "")
_TARGET = (
    "--only-binary=:all:",
    f"--python-version={VERSION}",
    "--implementation=cp",
    *(f"--abi={abi}" for abi in (_ABI, "abi3", "none")),
    *(f"--platform=manylinux_{glibc}_x86_64" for glibc in _GLIBC),
    "--platform=manylinux2014_x86_64",
    "--platform=manylinux1_x86_64",
)
_LINES_SHOWN = 15


class WheelError(Exception):
    """The packages cannot be fetched. The text has the reason or pip's output, and the remedy."""


def install(requirements: Path, target: Path) -> None:
    """Unpack the locked wheels into a directory. pip checks their hashes."""
    options = [
        "--no-deps",
        "--require-hashes",
        "--no-compile",
        "--target",
        str(target),
        "--requirement",
        str(requirements),
    ]
    _pip(["install", *_TARGET, *options])


def lock(pyproject: Path, requirements: Path) -> None:
    """Write the lock file: the `controlplane` pins of pyproject.toml and their dependencies, with hashes."""
    pins = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]["controlplane"]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        options = ["--dry-run", "--ignore-installed", "--target", scratch, "--report", str(report)]
        _pip(["install", *_TARGET, *options, *pins])
        resolved = json.loads(report.read_text())["install"]
    requirements.write_text(render_lock(resolved))


def render_lock(resolved: list[dict[str, Any]]) -> str:
    """Render the `install` list of a pip report as a lock file."""
    lines = ["# The wheels of the control-plane image. Made by `python3 -m images lock`; do not edit.\n"]
    for package in sorted(resolved, key=lambda package: str(package["metadata"]["name"]).lower()):
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{package['metadata']['name']}=={package['metadata']['version']} --hash=sha256:{digest}\n")
    return "".join(lines)


def _pip(arguments: list[str]) -> None:
    if importlib.util.find_spec("pip") is None:
        remedy = "apt-get install python3-pip, or run this with the Python of a virtual environment"
        raise WheelError(f"{sys.executable} has no pip to fetch the control plane's packages with: {remedy}")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PIP_USER": "0"})
    if done.returncode != 0:
        output = "\n".join((done.stderr or done.stdout).strip().splitlines()[-_LINES_SHOWN:])
        raise WheelError(f"pip cannot fetch the control plane's packages (is a package index reachable?):\n{output}")
