# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an archive says of itself, and how it is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.images.archive import full_reference, keep, kept_archives, read_archive


def test_archive_says_what_it_is_called(archive: Path) -> None:
    found = read_archive(archive)
    assert (found.reference, found.repository) == ("localhost/lab/hello:1", "localhost/lab/hello")
    assert found.manifest.startswith("sha256:")


def test_same_image_under_another_name_is_another_import(archive: Path) -> None:
    other = read_archive(archive, reference="registry.example:5000/x")
    assert (other.reference, other.repository) == ("registry.example:5000/x:latest", "registry.example:5000/x")
    assert other.digest != read_archive(archive).digest
    assert other.manifest == read_archive(archive).manifest


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("a/b:1", "a/b:1"),
        ("a/b", "a/b:latest"),
        ("host:5000/b", "host:5000/b:latest"),
        ("host:5000/b:2", "host:5000/b:2"),
    ],
)
def test_name_without_a_tag_means_latest(name: str, full: str) -> None:
    assert full_reference(name) == full


def test_file_that_is_no_archive_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no")
    with pytest.raises(LabError, match="is not an OCI archive") as caught:
        read_archive(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no such file"):
        read_archive(tmp_path / "absent.tar")


def test_archive_is_kept_for_nodes_that_join_later(archive: Path, tmp_path: Path) -> None:
    found = read_archive(archive)
    kept = keep(found, tmp_path / "kept")
    assert kept.path != archive
    assert kept_archives({found.digest: found.reference, "gone": "x/y:1"}, tmp_path / "kept") == [kept]
