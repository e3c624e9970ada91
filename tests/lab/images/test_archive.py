# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name and digest of an archive, and its copy in the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.images.archive import full_reference, keep, kept_archives, read_archive


def test_an_archive_has_a_reference(archive: Path) -> None:
    read = read_archive(archive)
    assert (read.reference, read.repository) == ("localhost/lab/hello:1", "localhost/lab/hello")
    assert read.manifest.startswith("sha256:")


def test_the_same_image_under_another_name_is_another_import(archive: Path) -> None:
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
def test_a_name_without_a_tag_means_latest(name: str, full: str) -> None:
    assert full_reference(name) == full


def test_another_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no")
    with pytest.raises(LabError, match="is not an OCI archive") as caught:
        read_archive(tmp_path / "x")
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no such file"):
        read_archive(tmp_path / "absent.tar")


def test_an_archive_is_kept_for_nodes_that_join_later(archive: Path, tmp_path: Path) -> None:
    read = read_archive(archive)
    kept = keep(read, tmp_path / "kept")
    assert kept.path != archive
    assert kept_archives({read.digest: read.reference, "gone": "x/y:1"}, tmp_path / "kept") == [kept]
