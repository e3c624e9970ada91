# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives and what they say of themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from images.oci import Config, LayerWriter, write_archive
from lab.errors import LabError
from lab.images import clone_store, full_reference, import_commands, keep, kept_archives, read_archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    with LayerWriter(tmp_path / "layer") as layer:
        layer.file("hello", b"hello")
    return write_archive(tmp_path / "image.tar", "localhost/lab/hello:1", [layer.layer], Config()).path


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


def test_import_makes_tag_and_digest_resolve(archive: Path) -> None:
    found = read_archive(archive)
    load, tag = import_commands(found, Path("/c/ctr"), "/run/s", "-")
    assert {"--local", "--digests"} <= set(load)
    assert tag[-2:] == [f"localhost/lab/hello@{found.manifest}", "localhost/lab/hello:1"]


def test_archive_is_kept_for_nodes_that_join_later(archive: Path, tmp_path: Path) -> None:
    found = read_archive(archive)
    kept = keep(found, tmp_path / "kept")
    assert kept.path != archive
    assert kept_archives({found.digest: found.reference, "gone": "x/y:1"}, tmp_path / "kept") == [kept]


def test_clone_shares_layers_and_copies_databases(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "layer").write_text("layer")
    (store / "meta.db").write_text("before")
    clone_store(store, tmp_path / "clone")
    (tmp_path / "clone" / "meta.db").write_text("after")
    assert (store / "meta.db").read_text() == "before"
    assert (tmp_path / "clone" / "layer").stat().st_ino == (store / "layer").stat().st_ino
    assert not list((tmp_path / "clone").glob("*.copy"))
