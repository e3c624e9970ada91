# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trees: what is read is what was there, links are followed as in a container, and writing gives it back."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from images.oci import LayerWriter
from images.tree import (
    Node,
    directory,
    read_directory,
    read_tar,
    regular,
    resolve,
    symlink,
    write_directory,
    write_layer,
)

TREE: dict[str, Node] = {
    "bin": symlink("usr/bin"),
    "usr": directory(),
    "usr/bin": directory(),
    "usr/bin/python": symlink("python3"),
    "usr/bin/python3": symlink("/usr/bin/python3.13"),
    "usr/bin/python3.13": regular(b"\x7fELF", mode=0o755),
    "usr/up": symlink("../bin/python"),
    "loop": symlink("loop"),
    "nowhere": symlink("usr/absent"),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("usr/bin/python3.13", ("usr/bin/python3.13", ()), id="a file"),
        pytest.param("usr/bin/python", ("usr/bin/python3.13", ("usr/bin/python", "usr/bin/python3")), id="a chain"),
        pytest.param("/bin/python3", ("usr/bin/python3.13", ("bin", "usr/bin/python3")), id="a linked directory"),
        pytest.param(
            "usr/up", ("usr/bin/python3.13", ("usr/up", "bin", "usr/bin/python", "usr/bin/python3")), id="upwards"
        ),
        pytest.param("loop", None, id="a loop"),
        pytest.param("nowhere", None, id="a dangling link"),
        pytest.param("usr/absent", None, id="nothing"),
    ],
)
def test_links_are_followed_from_the_trees_root(name: str, expected: object) -> None:
    assert resolve(TREE, name) == expected


def _kinds(tree: dict[str, Node]) -> dict[str, tuple[str, int, str, bytes]]:
    return {
        name: (node.kind, 0 if node.kind == "symlink" else node.mode, node.target, node.read() if node.size else b"")
        for name, node in tree.items()
    }


def test_a_tree_survives_a_layer(tmp_path: Path) -> None:
    with LayerWriter(tmp_path / "layer.tar") as writer:
        write_layer(TREE, writer)
    assert _kinds(read_tar(tmp_path / "layer.tar")) == _kinds(TREE)


def test_a_tree_survives_a_directory(tmp_path: Path) -> None:
    write_directory(TREE, tmp_path)
    assert _kinds(read_directory(tmp_path)) == _kinds(TREE)


def test_a_hard_link_is_a_file_of_its_own_and_a_device_is_left_out(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "root.tar", "w") as tar:
        original = tarfile.TarInfo("./usr/bin/perl")
        original.size = 3
        tar.addfile(original, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("./usr/bin/perl5")
        link.type, link.linkname = tarfile.LNKTYPE, "./usr/bin/perl"
        tar.addfile(link)
        device = tarfile.TarInfo("./dev/null")
        device.type = tarfile.CHRTYPE
        tar.addfile(device)
    tree = read_tar(tmp_path / "root.tar")
    assert sorted(tree) == ["usr/bin/perl", "usr/bin/perl5"]
    assert tree["usr/bin/perl5"].read() == b"abc"


def test_sockets_and_pipes_of_a_directory_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"x")
    assert list(read_directory(tmp_path)) == ["file"]
