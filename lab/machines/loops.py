# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loop devices of a lab. They belong to the whole host and survive a node's power cut, so they are taken down here.

There are two on each Block volume: the lab's on the volume's file, and one that the kubelet puts on the device node
to pin it. Both are known by the inode they stand on; their paths are those of another mount namespace.
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
"""Where volumes lie, seen from a volume itself or from the lab's directory."""

Inode = tuple[str, int]
"""major:minor of the file system, and the number in it."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    device: str
    stands_on: Inode


def parse_loops(listing: str) -> list[Loop]:
    """Read what `losetup --list --json` says with the columns that `attached` asks for."""
    if not listing.strip():
        return []
    return [
        Loop(device=each["name"], stands_on=(each["back-maj:min"].strip(), int(each["back-ino"])))
        for each in json.loads(listing)["loopdevices"]
    ]


def on_files(loops: Iterable[Loop], disks: set[Inode], devices: set[Inode]) -> list[str]:
    """Name the loop devices on these files, the kubelet's pins before what they pin."""
    loops = list(loops)
    return [loop.device for files in (devices, disks) for loop in loops if loop.stands_on in files]


def attached() -> list[Loop]:
    columns = "NAME,BACK-MAJ:MIN,BACK-INO"
    done = subprocess.run(
        ["losetup", "--list", "--json", "--output", columns], capture_output=True, text=True, check=False
    )
    return parse_loops(done.stdout)


def attach(file: Path) -> str:
    """Put a loop device on a file and return its name; the one it has already, if any."""
    if found := on_files(attached(), {inode(file)}, set()):
        return os.path.basename(found[0])
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
