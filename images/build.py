# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the images: each layer from its recipe where that has changed, and an archive where a layer has.

`build` works from mmdebstrap's root file systems and keeps everything in the store. `assemble` works from the root
file system that it runs in, a Containerfile's build stage, and keeps nothing.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from images.mirrors import NO_MIRRORS, Mirrors, of_this_machine
from images.oci import Image, Layer, LayerWriter, write_archive
from images.precompile import interpreter_command, unpack_interpreter
from images.recipes import Inputs, LayerRecipe, Recipe, packages_file, recipe
from images.rootfs import OPTIONS, make_rootfs, parse_packages
from images.store import NotMadeError, Store, hash_of, key_of
from images.tree import Node, read_directory, read_tar, write_directory, write_layer

COLLECTION = Path(__file__).resolve().parents[1]
DEFAULT_PREFIX = "localhost/virtops"
_VERSION = re.compile(r"^version:\s*[\"']?([^\s\"']+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Built:
    """An image and whether its archive had to be written."""

    name: str
    image: Image
    written: bool


@dataclass(frozen=True, slots=True)
class Options:
    """What a build depends on besides the sources. mirrors: of Debian, this machine's if none; fresh: fetch anew."""

    prefix: str = DEFAULT_PREFIX
    tag: str = ""
    mirrors: Mirrors = NO_MIRRORS
    fresh: bool = False


def collection_version(collection: Path = COLLECTION) -> str:
    """Return the version of the collection: from galaxy.yml in a clone, from MANIFEST.json where it is installed."""
    manifest, galaxy = collection / "MANIFEST.json", collection / "galaxy.yml"
    if manifest.exists():
        return str(json.loads(manifest.read_text())["collection_info"]["version"])
    found = _VERSION.search(galaxy.read_text()) if galaxy.exists() else None
    if found is None:
        raise ValueError(f"no version in {galaxy} and no {manifest}: name the images' tag with --tag")
    return found[1]


def build(name: str, store: Store, output: Path, options: Options, collection: Path = COLLECTION) -> Built:
    """Bring an image's archive up to date: `output`/NAME.tar. Nothing is written when nothing has changed."""
    layers, making = _layers(name, store, options, collection)
    return _archive(making, layers, output, options, collection)


def _layers(name: str, store: Store, options: Options, collection: Path) -> tuple[list[Layer], Recipe]:
    making = recipe(name)
    packages = parse_packages(packages_file(collection, name).read_text())
    # A mirror that somebody names may hold another Debian than the last one did.
    rootfs_key = key_of(repr(making.debian), repr(options.mirrors), OPTIONS, packages)
    rootfs = store.piece(
        f"{name}-rootfs",
        rootfs_key,
        lambda path: make_rootfs(
            packages, path, making.debian, options.mirrors if options.mirrors.archive else of_this_machine()
        ),
        fresh=options.fresh,
    )
    base = f"{rootfs_key}-{rootfs.stat().st_mtime_ns}"
    tree = functools.cache(lambda: read_tar(rootfs))
    inputs = Inputs(collection, tree, functools.cache(lambda: _interpreter(store, name, base, tree)))
    return [_layer(store, making, one, inputs, base) for one in making.layers], making


def plan(name: str, store: Store, output: Path, options: Options, collection: Path = COLLECTION) -> Built:
    """Say what `build` would do, and do nothing: the image as it is, or one without a digest that is to be written."""
    path = output / f"{name}.tar"
    to_write = Built(name, Image(path, _reference(name, options, collection), ""), written=True)
    try:
        layers, making = _layers(name, store.for_reading(), options, collection)
    except NotMadeError:
        return to_write
    image = _current(making, layers, path, options, collection)
    return to_write if image is None else Built(name, image, written=False)


def _interpreter(store: Store, name: str, base: str, tree: Callable[[], Mapping[str, Node]]) -> list[str]:
    def make(path: Path) -> None:
        unpack_interpreter(tree(), path)

    return interpreter_command(store.piece(f"{name}-python", key_of(base), make))


def _layer(store: Store, making: Recipe, one: LayerRecipe, inputs: Inputs, base: str) -> Layer:
    key = key_of(one.key(inputs.collection), base if one.uses_rootfs else "", hash_of(COLLECTION / "images/oci.py"))

    def make(path: Path) -> None:
        with LayerWriter(path) as writer:
            write_layer(one.make(inputs), writer)

    return store.layer(f"{making.name}-{one.name}", key, make)


def _archive(making: Recipe, layers: list[Layer], output: Path, options: Options, collection: Path) -> Built:
    path = output / f"{making.name}.tar"
    known = _current(making, layers, path, options, collection)
    if known is not None:
        return Built(making.name, known, written=False)
    image = write_archive(path, _reference(making.name, options, collection), layers, making.config)
    key = _archive_key(making, layers, image.reference)
    _note(path).write_text(json.dumps({"key": key, "digest": image.digest, "modified": path.stat().st_mtime_ns}))
    return Built(making.name, image, written=True)


def _reference(name: str, options: Options, collection: Path) -> str:
    return f"{options.prefix}/{name}:{options.tag or collection_version(collection)}"


def _archive_key(making: Recipe, layers: list[Layer], reference: str) -> str:
    return key_of(reference, [one.sha256 for one in layers], repr(making.config), hash_of(COLLECTION / "images/oci.py"))


def _note(path: Path) -> Path:
    return path.with_name(f".{path.stem}.json")


def _current(making: Recipe, layers: list[Layer], path: Path, options: Options, collection: Path) -> Image | None:
    """Return the image of an archive that is up to date and as it was written."""
    if not (path.exists() and _note(path).exists()):
        return None
    known, reference = json.loads(_note(path).read_text()), _reference(making.name, options, collection)
    is_it = known["key"] == _archive_key(making, layers, reference) and known["modified"] == path.stat().st_mtime_ns
    return Image(path, reference, known["digest"]) if is_it else None


def assemble(name: str, root: Path, output: Path, collection: Path = COLLECTION) -> list[Path]:
    """Make an image's layers from a root file system on disk, each as a directory of `output` named like the layer.

    The Python that runs this must be the one of that root file system.
    """
    tree = functools.cache(lambda: read_directory(root))
    inputs = Inputs(collection, tree, lambda: [sys.executable])
    made = []
    for one in recipe(name).layers:
        path = output / one.name
        shutil.rmtree(path, ignore_errors=True)
        write_directory(one.make(inputs), path)
        made.append(path)
    return made
