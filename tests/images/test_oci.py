# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layers and archives: what a runtime finds in them, and that equal contents give equal digests."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from images.oci import MODIFIED_SECONDS, Config, Image, Layer, LayerWriter, write_archive

REFERENCE = "localhost/virtops/example:1.0"


def a_layer(path: Path, text: bytes = b"hello") -> Layer:
    with LayerWriter(path) as writer:
        writer.file("usr/bin/hello", text, mode=0o755)
        writer.symlink("bin", "usr/bin")
        writer.directory("img", mode=0o755, owner=107)
    return writer.layer


def blobs(image: Image) -> dict[str, bytes]:
    with tarfile.open(image.path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def parsed(image: Image, digest: str) -> Any:
    return json.loads(blobs(image)["blobs/sha256/" + digest.removeprefix("sha256:")])


def test_a_layer_holds_its_files_with_parents_fixed_times_and_numeric_owners(tmp_path: Path) -> None:
    layer = a_layer(tmp_path / "layer.tar")
    with tarfile.open(layer.path) as tar:
        members = {member.name: member for member in tar}
    assert list(members) == ["usr", "usr/bin", "usr/bin/hello", "bin", "img"]
    assert {member.mtime for member in members.values()} == {MODIFIED_SECONDS}
    assert members["usr/bin/hello"].mode == 0o755
    assert members["bin"].linkname == "usr/bin"
    assert (members["img"].uid, members["img"].gid, members["img"].uname) == (107, 107, "")


def test_a_layers_digest_is_that_of_its_file(tmp_path: Path) -> None:
    layer = a_layer(tmp_path / "layer.tar")
    assert layer == Layer.measure(layer.path)
    assert layer.sha256 == hashlib.sha256(layer.path.read_bytes()).hexdigest()


def test_a_file_given_twice_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    def write_twice() -> None:
        with LayerWriter(tmp_path / "layer.tar") as writer:
            writer.file("a", b"")
            writer.file("/a", b"")

    with pytest.raises(ValueError, match="would hold a twice"):
        write_twice()
    assert list(tmp_path.iterdir()) == []


def test_every_digest_in_an_archive_is_that_of_its_blob(tmp_path: Path) -> None:
    layers = [a_layer(tmp_path / "1.tar"), a_layer(tmp_path / "2.tar", b"other")]
    found = blobs(write_archive(tmp_path / "image.tar", REFERENCE, layers, Config()))
    assert json.loads(found.pop("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
    found.pop("index.json")
    assert len(found) == 4
    for name, data in found.items():
        assert name == "blobs/sha256/" + hashlib.sha256(data).hexdigest()


def test_the_index_names_the_image_and_leads_to_its_layers(tmp_path: Path) -> None:
    layer = a_layer(tmp_path / "1.tar")
    image = write_archive(tmp_path / "image.tar", REFERENCE, [layer], Config(architecture="arm64"))
    (entry,) = json.loads(blobs(image)["index.json"])["manifests"]
    assert entry["digest"] == image.digest
    assert entry["annotations"]["io.containerd.image.name"] == REFERENCE
    assert entry["platform"] == {"architecture": "arm64", "os": "linux"}
    manifest = parsed(image, image.digest)
    assert [layer["digest"] for layer in manifest["layers"]] == [f"sha256:{layer.sha256}"]
    assert parsed(image, manifest["config"]["digest"])["rootfs"]["diff_ids"] == [f"sha256:{layer.sha256}"]


def test_the_configuration_says_how_to_run_and_leaves_out_what_was_not_given(tmp_path: Path) -> None:
    config = Config(entrypoint=("/init",), environment={"LANG": "C", "A": "b"}, user="107")
    image = write_archive(tmp_path / "image.tar", REFERENCE, [], config)
    run = parsed(image, parsed(image, image.digest)["config"]["digest"])["config"]
    assert run == {"Entrypoint": ["/init"], "Env": ["A=b", "LANG=C"], "User": "107", "WorkingDir": "/"}


def test_equal_contents_give_equal_archives(tmp_path: Path) -> None:
    first = write_archive(tmp_path / "one.tar", REFERENCE, [a_layer(tmp_path / "1.tar")], Config())
    second = write_archive(tmp_path / "two.tar", REFERENCE, [a_layer(tmp_path / "2.tar")], Config())
    assert first.digest == second.digest
    assert first.path.read_bytes() == second.path.read_bytes()


@pytest.mark.parametrize("reference", ["example", "localhost/example", "localhost/Example:1", "localhost/example:", ""])
def test_a_reference_without_registry_or_tag_is_refused(reference: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not of the form registry/repository:tag"):
        write_archive(tmp_path / "image.tar", reference, [], Config())
