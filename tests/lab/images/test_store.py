# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new node's copy of the image store."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.images.store import clone_store


def test_a_clone_shares_layers_and_copies_databases(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "layer").write_text("layer")
    (store / "meta.db").write_text("before")
    clone_store(store, tmp_path / "clone")
    (tmp_path / "clone" / "meta.db").write_text("after")
    assert (store / "meta.db").read_text() == "before"
    assert (tmp_path / "clone" / "layer").stat().st_ino == (store / "layer").stat().st_ino
    assert not list((tmp_path / "clone").glob("*.copy"))


@pytest.mark.parametrize("program", ["usr/sbin/libvirtd", "usr/bin/qemu-system-x86_64"])
def test_another_node_does_not_change_the_ctime_of_a_program_that_libvirt_identifies_by_it(
    program: str, tmp_path: Path
) -> None:
    path = f"io.containerd.snapshotter.v1.overlayfs/snapshots/6/fs/{program}"
    file = tmp_path / "store" / path
    file.parent.mkdir(parents=True)
    file.write_text("program")
    file.chmod(0o755)
    clone_store(tmp_path / "store", tmp_path / "first")
    before = (tmp_path / "first" / path).stat()
    clone_store(tmp_path / "store", tmp_path / "second")
    after = (tmp_path / "first" / path).stat()
    assert (after.st_ctime_ns, after.st_nlink, oct(after.st_mode)) == (before.st_ctime_ns, 1, "0o100755")
