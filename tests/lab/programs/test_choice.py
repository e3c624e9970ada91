# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored choices of programs: all of them change, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import Cache
from lab.programs.choice import choose, recall

WriteProgram = Callable[[str, str], Path]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(root=tmp_path / "cache")


def _recalled(cache: Cache) -> dict[str, str]:
    return {each.name: each.version for each in recall(cache)}


def test_no_program_is_named_at_first(cache: Cache) -> None:
    choose(cache, [])
    assert recall(cache) == []
    assert not cache.root.exists()


def test_choices_add_up_and_an_empty_path_removes_one(cache: Cache, a_program: WriteProgram) -> None:
    kubelet, etcd = a_program("k", "Kubernetes v1.36.5"), a_program("e", "etcd Version: 3.6.4")
    choose(cache, [f"kubelet={kubelet}"])
    choose(cache, [f"etcd={etcd}"])
    assert _recalled(cache) == {"etcd": "3.6.4", "kubelet": "1.36.5"}
    choose(cache, ["kubelet="])
    assert _recalled(cache) == {"etcd": "3.6.4"}


def test_a_refused_program_changes_no_choice(cache: Cache, a_program: WriteProgram) -> None:
    kubelet, old = a_program("k", "Kubernetes v1.36.5"), a_program("old", "etcd Version: 2.3.8")
    with pytest.raises(LabError, match="program etcd="):
        choose(cache, [f"kubelet={kubelet}", f"etcd={old}"])
    assert _recalled(cache) == {}


def test_a_changed_file_is_examined_again(cache: Cache, a_program: WriteProgram) -> None:
    choose(cache, [f"kubelet={a_program('k', 'Kubernetes v1.36.5')}"])
    a_program("k", "Kubernetes v1.36.10")
    assert _recalled(cache) == {"kubelet": "1.36.10"}
    a_program("k", "Kubernetes v1.99.0")
    with pytest.raises(LabError, match="one minor version"):
        recall(cache)


def test_a_removed_program_is_reported(cache: Cache, a_program: WriteProgram) -> None:
    path = a_program("e", "etcd Version: 3.6.4")
    choose(cache, [f"etcd={path}"])
    path.unlink()
    with pytest.raises(LabError, match=r"program etcd=.*No such file.*`lab build --program etcd=`"):
        recall(cache)
    choose(cache, ["etcd="])
    assert recall(cache) == []


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": "etcd"}]', "{}x"])
def test_a_damaged_file_of_choices_is_reported(cache: Cache, text: str) -> None:
    cache.root.mkdir()
    cache.named_programs.write_text(text)
    with pytest.raises(LabError, match=r"programs\.json is damaged .*; remove it"):
        recall(cache)
