# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The store makes each piece once, whoever asks and however often."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from images.oci import Layer
from images.store import Store, cache_directory, hash_of, key_of


class Making:
    """Counts, and writes the count."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, path: Path) -> None:
        self.count += 1
        path.write_text(str(self.count))


def test_a_piece_is_made_once(tmp_path: Path) -> None:
    store, make, said = Store(tmp_path), Making(), []
    store = Store(tmp_path, said.append)
    key = key_of("a")
    assert store.piece("rootfs", key, make) == store.piece("rootfs", key, make)
    assert make.count == 1
    assert said == ["making rootfs"]


def test_a_fresh_piece_replaces_the_one_that_is_there(tmp_path: Path) -> None:
    store, make = Store(tmp_path), Making()
    store.piece("rootfs", key_of("a"), make)
    assert store.piece("rootfs", key_of("a"), make, fresh=True).read_text() == "2"


def test_a_piece_that_could_not_be_made_leaves_nothing(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Store(tmp_path).piece("rootfs", key_of("a"), fail)
    assert [path.name for path in tmp_path.iterdir()] == [".rootfs.lock"]


def test_old_pieces_of_a_name_are_removed_and_others_stay(tmp_path: Path) -> None:
    store, make = Store(tmp_path), Making()
    store.piece("rootfs-other", key_of("a"), make)
    made = [store.layer("rootfs", key_of(number), make).path for number in range(6)]
    assert all(path.exists() for path in made), "what was made just now may be on its way to nodes"
    for age, path in enumerate(reversed(made)):
        long_ago = time.time() - 3600 - age
        os.utime(path, (long_ago, long_ago))
    made.append(store.layer("rootfs", key_of("new"), make).path)
    left = sorted(path.name for path in tmp_path.iterdir() if path.name[0] != "." and path.suffix != ".sha256")
    assert left == sorted([*(path.name for path in made[3:]), f"rootfs-other-{key_of('a')}"])
    assert len(list(tmp_path.glob("*.sha256"))) == 4


def test_a_layer_knows_its_digest_also_when_it_was_there_before(tmp_path: Path) -> None:
    first = Store(tmp_path).layer("code", key_of("a"), Making())
    second = Store(tmp_path).layer("code", key_of("a"), Making())
    assert first == second == Layer(first.path, hash_of(first.path))


def test_keys_depend_on_values_and_their_order() -> None:
    assert key_of("a", {"x": 1, "y": 2}) == key_of("a", {"y": 2, "x": 1})
    assert key_of("a", "b") != key_of("b", "a")


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path / "images"
    monkeypatch.delenv("VIRTOPS_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache/virtops/images"
