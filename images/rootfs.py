# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a Debian root file system with mmdebstrap, as a tar file: the base of images without a container engine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from images.mirrors import Mirrors, source_lines, source_lines_with_older

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
OPTIONS = (
    "--variant=minbase",
    "--format=tar",
    '--aptopt=Apt::Install-Recommends "false"',
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/info/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)
_LINES_SHOWN = 15


@dataclass(frozen=True, slots=True)
class Debian:
    """The Debian of an image. The mirror is not part of it, because it does not change the image."""

    suite: str = "trixie"
    architectures: tuple[str, ...] = ("amd64",)
    """Programs of the first architecture run while the root file system is made."""
    has_updates: bool = True
    older: tuple[str, str] | None = None
    """An older suite and its architecture, for packages that `suite` has no more. Without updates."""


TRIXIE = Debian()


class RootfsError(Exception):
    """The root file system cannot be made here. The text has the reason and the remedy."""


def parse_packages(text: str) -> tuple[str, ...]:
    """Return the sorted package names of a list with one name per line and comments."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return tuple(sorted({line for line in lines if line}))


def missing_prerequisites() -> list[str]:
    """Return what this machine lacks to make a root file system, each with its remedy."""
    engine = "or build the images with podman, buildah or docker from images/*/Containerfile"
    problems = []
    if shutil.which("mmdebstrap") is None:
        problems.append(f"mmdebstrap is not installed: apt-get install mmdebstrap, {engine}")
    if not KEYRING.exists():
        problems.append(f"{KEYRING} is not there: apt-get install debian-archive-keyring, {engine}")
    if os.geteuid() != 0 and shutil.which("newuidmap") is None:
        problems.append("newuidmap is not installed: apt-get install uidmap, or run as root")
    return problems


def make_rootfs(packages: Sequence[str], path: Path, debian: Debian, mirrors: Mirrors) -> None:
    """Write a tar file of a minimal Debian with packages. mirrors: mmdebstrap's own if unknown.

    Raises RootfsError with the remedy, or with the last lines of mmdebstrap's output.
    """
    problems = missing_prerequisites()
    if problems:
        raise RootfsError("cannot make a Debian root file system: " + "; ".join(problems))
    command = [
        "mmdebstrap",
        *OPTIONS,
        f"--architectures={','.join(debian.architectures)}",
        f"--include={','.join(packages)}",
        debian.suite,
        str(path),
    ]
    for lines in _sources(debian, mirrors):
        done = _run([*command, *lines])
        if done.returncode == 0:
            return
    output = "\n".join(done.stderr.strip().splitlines()[-_LINES_SHOWN:])
    raise RootfsError(
        f"mmdebstrap could not make a {debian.suite} root file system"
        f" (is a Debian mirror reachable? asked: {mirrors.archive or 'its own choice'}):\n{output}"
    )


def _sources(debian: Debian, mirrors: Mirrors) -> list[list[str]]:
    """Return apt's source lines, in the order in which they are tried."""
    if debian.older:
        return source_lines_with_older(debian.suite, mirrors, debian.older)
    return [source_lines(debian.suite, mirrors, has_updates=debian.has_updates)]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin",
        "LC_ALL": "C",
        "INITRD": "No",  # the kernel's package would build an initramfs, which no image uses
    }
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    keep = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    return subprocess.run(command, env=environment | proxies | keep, capture_output=True, text=True, check=False)
