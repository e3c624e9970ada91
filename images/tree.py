# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A root file system as a dictionary, read from a tar file or a directory, and written as a layer or a directory.

Names are relative and have no leading slash. Device nodes and sockets are skipped: our images have none.
trim.py decides which files an image keeps.
"""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from images.oci import LayerWriter

_LINKS_FOLLOWED = 40  # as the kernel


@dataclass(frozen=True, slots=True)
class Node:
    """One entry. A file's bytes are `data`, or are in the file at `path`."""

    kind: Literal["directory", "file", "symlink"]
    mode: int
    target: str = ""
    """Of a symbolic link: where it points."""
    data: bytes | None = None
    path: Path = Path()
    offset: int = 0
    size: int = 0
    owner: int = 0

    def read(self, limit: int = -1) -> bytes:
        """Return a file's bytes, at most `limit` of them if that is not negative."""
        count = self.size if limit < 0 else min(limit, self.size)
        if self.data is not None:
            return self.data[:count]
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            return stream.read(count)


Tree = Mapping[str, Node]


def directory(*, mode: int = 0o755, owner: int = 0) -> Node:
    """Make a directory node."""
    return Node("directory", mode, owner=owner)


def regular(data: bytes, *, mode: int = 0o644, owner: int = 0) -> Node:
    """Make a file node from bytes."""
    return Node("file", mode, data=data, size=len(data), owner=owner)


def regular_at(path: Path, *, mode: int = 0o644, owner: int = 0) -> Node:
    """Make a file node from the file at a path. The file must not change until the node is read."""
    return Node("file", mode, path=path, size=path.stat().st_size, owner=owner)


def symlink(target: str) -> Node:
    """Make a symbolic link node."""
    return Node("symlink", 0o777, target=target)


def read_tar(path: Path) -> dict[str, Node]:
    """Index an uncompressed tar file, from which the nodes read later. Hard links become separate files."""
    tree: dict[str, Node] = {}
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            name = posixpath.normpath(member.name).lstrip("/")
            if member.isdir() and name != ".":
                tree[name] = directory(mode=member.mode)
            elif member.issym():
                tree[name] = symlink(member.linkname)
            elif member.islnk():
                tree[name] = tree[posixpath.normpath(member.linkname).lstrip("/")]
            elif member.isreg():
                tree[name] = Node("file", member.mode, path=path, offset=member.offset_data, size=member.size)
    return tree


def read_directory(root: Path) -> dict[str, Node]:
    """Index a directory without other mounted file systems, so the index of / has no /proc."""
    tree: dict[str, Node] = {}
    device = root.stat().st_dev
    pending = [root]
    while pending:
        for entry in os.scandir(pending.pop()):
            name = os.path.relpath(entry.path, root)
            status = entry.stat(follow_symlinks=False)
            if entry.is_symlink():
                tree[name] = symlink(os.readlink(entry.path))
            elif entry.is_dir():
                tree[name] = directory(mode=stat.S_IMODE(status.st_mode))
                if status.st_dev == device:
                    pending.append(Path(entry.path))
            elif entry.is_file():
                tree[name] = regular_at(Path(entry.path), mode=stat.S_IMODE(status.st_mode))
    return tree


def resolve(tree: Tree, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Follow every symbolic link in a name. Return the real name and the followed links in order.

    None if the name does not exist. Absolute targets start at the tree's root, as inside a container.
    """
    links: list[str] = []
    rest, done = name.strip("/").split("/"), ""
    while rest:
        part = rest.pop(0)
        if part == "..":
            done = posixpath.dirname(done)
        if part in ("", ".", ".."):
            continue
        path = posixpath.join(done, part)
        node = tree.get(path)
        if node is None:
            return None
        if node.kind != "symlink":
            done = path
            continue
        links.append(path)
        if len(links) > _LINKS_FOLLOWED:
            return None
        rest = node.target.split("/") + rest
        done = "" if node.target.startswith("/") else done
    return done, tuple(dict.fromkeys(links))


def write_layer(tree: Tree, writer: LayerWriter) -> None:
    """Write a tree to a layer, in the order of its names."""
    for name in sorted(tree):
        node = tree[name]
        if node.kind == "directory":
            writer.directory(name, mode=node.mode, owner=node.owner)
        elif node.kind == "symlink":
            writer.symlink(name, node.target)
        elif node.data is not None:
            writer.file(name, node.data, mode=node.mode, owner=node.owner)
        else:
            with node.path.open("rb") as stream:
                stream.seek(node.offset)
                writer.stream(name, stream, node.size, mode=node.mode, owner=node.owner)


def write_directory(tree: Tree, root: Path) -> None:
    """Write a tree below a directory. Owners are set only as root."""
    for name in sorted(tree):
        node, path = tree[name], root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if node.kind == "symlink":
            path.symlink_to(node.target)
            continue
        if node.kind == "directory":
            path.mkdir(exist_ok=True)
        else:
            path.write_bytes(node.read())
        path.chmod(node.mode)
        if node.owner and os.geteuid() == 0:
            os.chown(path, node.owner, node.owner)
