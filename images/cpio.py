# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write an initramfs: a cpio archive in the "newc" format. It is uncompressed, which boots fastest under emulation.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of Linux.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from images.oci import MODIFIED_SECONDS
from images.tree import Node

_ALIGNMENT = 4


@dataclass(frozen=True, slots=True)
class CharacterDevice:
    """A device node. Trees have none."""

    major: int
    minor: int
    mode: int = 0o600


def archive(tree: Mapping[str, Node], devices: Mapping[str, CharacterDevice]) -> bytes:
    """Return an archive of a tree and device nodes. Missing parent directories are added."""
    names = {*tree, *devices}
    parents = {parent for name in names for parent in _parents(name)} - names
    members: list[bytes] = []
    for number, name in enumerate(sorted(names | parents), start=1):
        if name in devices:
            device = devices[name]
            members.append(_member(number, name, stat.S_IFCHR | device.mode, b"", device))
        else:
            mode, data = _of_node(tree.get(name))
            members.append(_member(number, name, mode, data))
    members.append(_member(0, "TRAILER!!!", 0, b""))
    return b"".join(members)


def _parents(name: str) -> Iterator[str]:
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _of_node(node: Node | None) -> tuple[int, bytes]:
    if node is None:
        return stat.S_IFDIR | 0o755, b""
    if node.kind == "directory":
        return stat.S_IFDIR | node.mode, b""
    if node.kind == "symlink":
        return stat.S_IFLNK | 0o777, node.target.encode()
    return stat.S_IFREG | node.mode, node.read()


def _member(number: int, name: str, mode: int, data: bytes, device: CharacterDevice | None = None) -> bytes:
    major, minor = (device.major, device.minor) if device else (0, 0)
    links = 2 if stat.S_ISDIR(mode) else 1
    # inode, mode, uid, gid, links, time, size, device of the file system (2), of the node (2), name's length, checksum
    fields = (number, mode, 0, 0, links, MODIFIED_SECONDS, len(data), 0, 0, major, minor, len(name) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return _padded(header) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNMENT)
