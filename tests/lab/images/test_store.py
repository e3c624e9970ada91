# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new node's copy of the image store."""

from __future__ import annotations

from pathlib import Path

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
