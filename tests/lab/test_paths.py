# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directories of labs and of the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.paths import Cache, State


@pytest.mark.parametrize("name", ["", "A", "a b", "../up", "-a", "a-", "x" * 31])
def test_a_name_that_is_no_directory_and_cgroup_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="lab name"):
        State(name=name)


def test_the_longest_name_leaves_room_for_a_socket() -> None:
    socket = State(name="x" * 30).node("node-100").socket
    assert len(str(socket)) < 108


def test_the_environment_names_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path))
    assert Cache.from_environment().programs == tmp_path / "bin"
