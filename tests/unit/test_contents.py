# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a tarball are named."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from ansible_collections.virtops.kubevirt.tests.sanity.contents import empty_folders, problems

TRACKED = frozenset({"galaxy.yml", "README.md", ".gitignore", "roles/a/README.md", "controlplane/x.py", "tests/x.py"})
PACKED = frozenset({"MANIFEST.json", "FILES.json", "README.md", "roles/a/README.md", "controlplane/x.py"})


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        pytest.param(PACKED, [], id="right"),
        pytest.param(PACKED - {"controlplane/x.py"}, ["controlplane/x.py: is used, but not"], id="missing"),
        pytest.param(PACKED | {".venv/x"}, [".venv/x: is in the tarball, but nothing"], id="junk"),
        pytest.param(PACKED | {"tests/x.py"}, ["tests/x.py: is in the tarball, but nothing"], id="the project's own"),
        pytest.param(
            PACKED | {"roles/b/x"}, ["roles/b/x: is in", "roles/b: has no README.md"], id="a role without README"
        ),
    ],
)
def test_problems_of_a_tarball(packed: frozenset[str], words: list[str]) -> None:
    result = problems(packed, TRACKED)
    assert len(result) == len(words)
    assert all(text.startswith(word) for text, word in zip(result, words, strict=True))


def test_an_empty_folder_of_a_tarball_is_found(tmp_path: Path) -> None:
    """A pattern that ignores the files of a folder leaves the folder."""
    (tmp_path / "tests/chaos").mkdir(parents=True)
    (tmp_path / "tests/config.yml").touch()
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "tests", "tests")
    assert empty_folders(tmp_path / "x.tar.gz") == ["tests/chaos"]
