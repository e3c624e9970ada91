# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Building with a root file system that costs nothing: what is made again and what is not; errors of the command."""

from __future__ import annotations

import io
import json
import multiprocessing
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from images import build as building
from images.__main__ import main
from images.build import Options, build, collection_version, plan
from images.mirrors import Mirrors
from images.oci import Config
from images.recipes import Inputs, LayerRecipe, Recipe
from images.rootfs import Debian
from images.store import Store, hash_of
from images.tree import Node, regular

MACHINES = "http://mirror.example/of-this-machine"


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A collection with one image of two layers, and an mmdebstrap that makes one file."""
    root = tmp_path / "collection"
    (root / "images/toy").mkdir(parents=True)
    (root / "images/toy/packages").write_text("tini\n")
    (root / "code.py").write_text("1")
    (root / "galaxy.yml").write_text("namespace: virtops\nversion: 1.2.3\n")

    def make_rootfs(packages: Sequence[str], path: Path, _debian: Debian, mirrors: Mirrors) -> None:
        with tarfile.open(path, "w") as tar:
            entry = tarfile.TarInfo("packages")
            data = " ".join([*packages, mirrors.archive]).encode()
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))

    def packages_layer(inputs: Inputs) -> dict[str, Node]:
        return dict(inputs.rootfs())

    def code_layer(inputs: Inputs) -> dict[str, Node]:
        return {"code.py": regular((inputs.collection / "code.py").read_bytes())}

    layers = (
        LayerRecipe("packages", lambda _unused: "", packages_layer),
        LayerRecipe("code", lambda where: hash_of(where / "code.py"), code_layer, uses_rootfs=False),
    )
    monkeypatch.setattr(building, "make_rootfs", make_rootfs)
    monkeypatch.setattr(building, "of_this_machine", lambda: Mirrors(MACHINES))
    monkeypatch.setattr(building, "recipe", lambda name: Recipe(name, layers, Config()))
    return root


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, said: list[str]) -> Store:
    return Store(tmp_path / "store", said.append)


def test_the_first_build_makes_everything_and_the_second_nothing(
    collection: Path, store: Store, said: list[str], tmp_path: Path
) -> None:
    first = build("toy", store, tmp_path / "out", Options(), collection)
    assert (first.written, first.image.reference) == (True, "localhost/virtops/toy:1.2.3")
    assert said == [f"making toy-{item}" for item in ("rootfs", "packages", "code", "archive")]
    second = build("toy", store, tmp_path / "out", Options(), collection)
    assert (second.written, second.image) == (False, first.image)
    assert len(said) == 4


def test_a_change_of_code_makes_only_the_code_layer(
    collection: Path, store: Store, said: list[str], tmp_path: Path
) -> None:
    first = build("toy", store, tmp_path / "out", Options(), collection)
    (collection / "code.py").write_text("2")
    del said[:]
    second = build("toy", store, tmp_path / "out", Options(), collection)
    assert said == ["making toy-code", "making toy-archive"]
    assert second.written
    assert second.image.digest != first.image.digest


def test_a_change_of_the_packages_makes_a_new_root_file_system(
    collection: Path, store: Store, said: list[str], tmp_path: Path
) -> None:
    build("toy", store, tmp_path / "out", Options(), collection)
    (collection / "images/toy/packages").write_text("tini\nbusybox\n")
    del said[:]
    build("toy", store, tmp_path / "out", Options(), collection)
    assert said == ["making toy-rootfs", "making toy-packages", "making toy-archive"]


def test_the_same_packages_fetched_anew_give_the_same_image(collection: Path, store: Store, tmp_path: Path) -> None:
    first = build("toy", store, tmp_path / "out", Options(), collection)
    second = build("toy", store, tmp_path / "out", Options(fresh=True), collection)
    assert second.image.digest == first.image.digest


def reference_and_digest(archive: Path) -> tuple[str, str]:
    """Return the reference and the digest that an archive has in it."""
    with tarfile.open(archive) as tar:
        index = tar.extractfile("index.json")
        assert index is not None
        (entry,) = json.loads(index.read())["manifests"]
    return entry["annotations"]["io.containerd.image.name"], entry["digest"]


def test_an_archive_stays_what_it_was_while_others_are_built(collection: Path, store: Store) -> None:
    """A caller copies an archive to nodes, which takes a while."""
    first = build("toy", store, None, Options(prefix="registry.example/one"), collection)
    (collection / "code.py").write_text("2")
    second = build("toy", store, None, Options(prefix="registry.example/two"), collection)

    assert first.image.path != second.image.path
    for item in (first, second):
        assert reference_and_digest(item.image.path) == (item.image.reference, item.image.digest)
    assert not build("toy", store, None, Options(prefix="registry.example/two"), collection).written


def test_two_that_build_at_once_into_one_store_each_get_their_own(collection: Path, tmp_path: Path) -> None:
    forked = multiprocessing.get_context("fork")
    begin, answers = forked.Barrier(4), forked.Queue()

    def work(prefix: str) -> None:
        begin.wait()
        built = build("toy", Store(tmp_path / "store"), None, Options(prefix=prefix), collection)
        answers.put((built.image.reference, built.image.digest, reference_and_digest(built.image.path), built.written))

    prefixes = ("example/one", "example/one", "example/two", "example/two")
    processes = [forked.Process(target=work, args=(prefix,)) for prefix in prefixes]
    for process in processes:
        process.start()
    found: list[Any] = [answers.get(timeout=300) for _unused in processes]
    for process in processes:
        process.join()

    assert sorted(reference for reference, *_unused in found) == [f"{prefix}/toy:1.2.3" for prefix in prefixes]
    for reference, digest, said, _unused in found:
        assert said == (reference, digest)
    assert sum(written for *_unused, written in found) == 2, "the second process finds it written"


def packages_of(archive: Path) -> str:
    """Return what the toy's first layer holds."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            blob = tar.extractfile(member)
            if blob is None or not member.name.startswith("blobs/") or tarfile.is_tarfile(blob) is False:
                continue
            blob.seek(0)
            with tarfile.open(fileobj=blob) as layer:
                if "packages" in layer.getnames():
                    found = layer.extractfile("packages")
                    assert found is not None
                    return found.read().decode()
    raise AssertionError("no layer of packages")


def test_a_mirror_that_is_named_goes_before_it_and_is_fetched_from_at_once(
    collection: Path, store: Store, tmp_path: Path
) -> None:
    build("toy", store, tmp_path / "out", Options(), collection)
    options = Options(mirrors=Mirrors("http://mirror.example/named"))
    assert packages_of(build("toy", store, tmp_path / "out", options, collection).image.path).endswith("/named")


def test_a_plan_names_the_image_that_is_up_to_date(collection: Path, store: Store, tmp_path: Path) -> None:
    built = build("toy", store, tmp_path / "out", Options(), collection)
    planned = plan("toy", store, tmp_path / "out", Options(), collection)
    assert (planned.written, planned.image) == (False, built.image)
    assert plan("toy", store, tmp_path / "elsewhere", Options(), collection).written
    assert plan("toy", store, tmp_path / "out", Options(fresh=True), collection).written
    (collection / "code.py").write_text("2")
    assert plan("toy", store, tmp_path / "out", Options(), collection).written
    assert not (tmp_path / "elsewhere").exists()


def test_names_are_those_that_the_caller_wants(collection: Path, store: Store, tmp_path: Path) -> None:
    built = build("toy", store, tmp_path, Options(prefix="registry.example:5000/vm", tag="latest"), collection)
    assert built.image.reference == "registry.example:5000/vm/toy:latest"


def test_an_installed_collection_takes_its_version_from_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": "3.4.5"}}))
    assert collection_version(tmp_path) == "3.4.5"


def test_without_a_version_the_tag_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name the images' tag with --tag"):
        collection_version(tmp_path)


def test_a_problem_is_one_message_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path / "cache"))
    assert main(["build", "--only", "virt-launcher", "--tag", "1"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("images: cannot make a Debian root file system: mmdebstrap is not installed")
    assert not any("Traceback" in line for line in lines)


def test_check_prints_what_would_be_made_and_needs_nothing_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VIRTOPS_CACHE", str(tmp_path / "cache"))
    assert main(["build", "--check", "--json", "--only", "virt-launcher", "--tag", "1"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["built"], entry["digest"], entry["size_bytes"]) == (True, "", 0)
    assert entry["reference"] == "localhost/virtops/virt-launcher:1"
    assert main(["build", "--check", "--only", "virt-launcher", "--tag", "1"]) == 0
    assert capsys.readouterr().out == "localhost/virtops/virt-launcher:1  would be written\n"
    assert list(tmp_path.iterdir()) == []
