# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loop devices of a lab. They belong to the whole host and survive a node's power cut, so they are taken down here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BLOCK = Path("/sys/block")


@dataclass(frozen=True, kw_only=True)
class Loop:
    name: str
    backing_file: str
    number: str
    """major:minor of the loop device itself."""


def ours(loops: Iterable[Loop], root: Path, *, devices: dict[str, str]) -> list[str]:
    """Name a lab's loop devices, topmost first: those on its files, and those the kubelet put on top to pin them.

    devices: by the backing path of a loop device that is itself a block device, that device's major:minor.
    """
    loops = list(loops)
    direct = {loop.number: loop.name for loop in loops if Path(loop.backing_file).is_relative_to(root)}
    pins = [loop.name for loop in loops if devices.get(loop.name) in direct]
    return pins + [name for name in direct.values() if name not in pins]


def attached() -> list[Loop]:
    found = []
    for entry in sorted(BLOCK.glob("loop*")):
        try:
            backing = (entry / "loop/backing_file").read_text().strip()
            number = (entry / "dev").read_text().strip()
        except OSError:
            continue
        found.append(Loop(name=entry.name, backing_file=backing.removesuffix(" (deleted)"), number=number))
    return found


def attach(file: Path) -> str:
    """Put a loop device on a file and return its name; the one it has already, if any."""
    for loop in attached():
        if loop.backing_file == str(file):
            return loop.name
    done = subprocess.run(["losetup", "--find", "--show", str(file)], capture_output=True, text=True, check=True)
    return os.path.basename(done.stdout.strip())


def detach(names: Iterable[str]) -> None:
    for name in names:
        subprocess.run(["losetup", "--detach", f"/dev/{name}"], capture_output=True, check=False)


def detach_below(root: Path) -> None:
    """Detach every loop device that stands on a file below root."""
    loops = attached()
    detach(ours(loops, root, devices=_backing_devices(loops)))


def _backing_devices(loops: Iterable[Loop]) -> dict[str, str]:
    """major:minor of what each loop device stands on, where that is a block device."""
    listed = subprocess.run(
        ["losetup", "--list", "--noheadings", "--raw", "--output", "NAME,BACK-FILE"],
        capture_output=True,
        text=True,
        check=False,
    )
    by_name = {loop.name: loop for loop in loops}
    found = {}
    for line in listed.stdout.splitlines():
        name = os.path.basename(line.split(" ")[0])
        backing = os.path.basename(by_name[name].backing_file) if name in by_name else ""
        # Seen from outside, a node's /dev/loop3 is /loop3 (the private /dev is a file system of its own).
        if backing.startswith("loop") and backing in by_name:
            found[name] = by_name[backing].number
    return found
