# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The initramfs writer, read back field by field."""

from __future__ import annotations

import stat

from images.cpio import CharacterDevice, archive
from images.tree import directory, regular, symlink


def parse(data: bytes) -> dict[str, tuple[int, tuple[int, int], bytes]]:
    """Return mode, device and content of each entry."""
    found, at = {}, 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * index : at + 14 + 8 * index], 16) for index in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        at = -(-(at + 110 + fields[11]) // 4) * 4
        if name == "TRAILER!!!":
            return found
        found[name] = (fields[1], (fields[9], fields[10]), data[at : at + fields[6]])
        at = -(-(at + fields[6]) // 4) * 4


def test_files_directories_links_and_devices_arrive_with_their_parents() -> None:
    tree = {
        "init": regular(b"#!/bin/sh\n", mode=0o755),
        "etc/deep/file": regular(b"12345"),
        "bin": symlink("usr/bin"),
        "tmp": directory(mode=0o1777),
    }
    found = parse(archive(tree, {"dev/console": CharacterDevice(5, 1)}))
    assert found == {
        "bin": (stat.S_IFLNK | 0o777, (0, 0), b"usr/bin"),
        "dev": (stat.S_IFDIR | 0o755, (0, 0), b""),
        "dev/console": (stat.S_IFCHR | 0o600, (5, 1), b""),
        "etc": (stat.S_IFDIR | 0o755, (0, 0), b""),
        "etc/deep": (stat.S_IFDIR | 0o755, (0, 0), b""),
        "etc/deep/file": (stat.S_IFREG | 0o644, (0, 0), b"12345"),
        "init": (stat.S_IFREG | 0o755, (0, 0), b"#!/bin/sh\n"),
        "tmp": (stat.S_IFDIR | 0o1777, (0, 0), b""),
    }


def test_parents_come_before_their_children() -> None:
    names = list(parse(archive({"a/b/c": regular(b"")}, {})))
    assert names == ["a", "a/b", "a/b/c"]
