# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loop devices of a lab. They belong to the host and survive a node's power cut, so the lab detaches them.

Each Block volume has two: the lab's on the volume's file, and a pin of the kubelet on the device node. Both are
identified by the inode of their file, because their paths are from another mount namespace.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

_VOLUMES = ("", "shared/*/", "nodes/*/volumes/*/")
"""Patterns of volumes, below a volume itself or below the lab's directory."""

Inode = tuple[str, int]
"""major:minor of the file system, and the number of the inode."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    device: str
    stands_on: Inode


def parse_loops(listing: str) -> list[Loop]:
    """Parse the output of `losetup --list --json` with the columns of `attached`."""
    if not listing.strip():
        return []
    return [
        Loop(device=entry["name"], stands_on=(entry["back-maj:min"].strip(), int(entry["back-ino"])))
        for entry in json.loads(listing)["loopdevices"]
    ]


def on_files(loops: Iterable[Loop], disks: set[Inode], devices: set[Inode]) -> list[str]:
    """Return the loop devices on these files, the kubelet's pins first."""
    loops = list(loops)
    return [loop.device for files in (devices, disks) for loop in loops if loop.stands_on in files]


def attached() -> list[Loop]:
    columns = "NAME,BACK-MAJ:MIN,BACK-INO"
    done = subprocess.run(
        ["losetup", "--list", "--json", "--output", columns], capture_output=True, text=True, check=False
    )
    return parse_loops(done.stdout)


def attach(file: Path) -> str:
    """Attach a loop device to a file, unless it has one. Return the name of the device."""
    if existing := on_files(attached(), {inode(file)}, set()):
        return os.path.basename(existing[0])
    done = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"no loop device for {file}: {done.stderr.strip()}; Block volumes need the loop driver")
    return os.path.basename(done.stdout.strip())


def detach_below(root: Path) -> None:
    """Detach the loop devices of a volume, or of all volumes of a lab."""
    disks, devices = (
        {inode(path) for pattern in _VOLUMES for path in root.glob(pattern + name)} for name in ("disk", "device")
    )
    if not disks | devices:
        return
    for name in on_files(attached(), disks, devices):
        subprocess.run(["losetup", "--detach", name], capture_output=True, check=False)


def inode(path: Path) -> Inode:
    status = path.stat()
    return f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}", status.st_ino
