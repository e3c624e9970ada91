# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the images: a layer if its recipe has changed, an archive if a layer or its name has changed.

`build` uses root file systems of mmdebstrap and keeps all results in the store. `assemble` uses the root file system
that it runs in, the build stage of a Containerfile, and keeps nothing.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from images.mirrors import NO_MIRRORS, Mirrors, of_this_machine
from images.oci import Image, Layer, LayerWriter, digest_of, write_archive
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
    """An image, and whether its archive was written."""

    name: str
    image: Image
    written: bool


@dataclass(frozen=True, slots=True)
class Options:
    """What a build depends on besides the sources. mirrors: of Debian, or this machine's; fresh: fetch again."""

    prefix: str = DEFAULT_PREFIX
    tag: str = ""
    mirrors: Mirrors = NO_MIRRORS
    fresh: bool = False


def collection_version(collection: Path = COLLECTION) -> str:
    """Return the version of the collection: from galaxy.yml in a clone, from MANIFEST.json in an installed one."""
    manifest, galaxy = collection / "MANIFEST.json", collection / "galaxy.yml"
    if manifest.exists():
        return str(json.loads(manifest.read_text())["collection_info"]["version"])
    match = _VERSION.search(galaxy.read_text()) if galaxy.exists() else None
    if match is None:
        raise ValueError(f"no version in {galaxy} and no {manifest}: name the images' tag with --tag")
    return match[1]


def build(name: str, store: Store, output: Path | None, options: Options, collection: Path = COLLECTION) -> Built:
    """Bring an image's archive in the store up to date, and its copy at `output`/NAME.tar if `output` is given.

    Writes nothing if nothing has changed.
    """
    layers, making = _layers(name, store, options, collection)
    built = _archive(store, making, layers, _reference(name, options, collection))
    if output is None:
        return built
    path = output / f"{name}.tar"
    is_there = _is_copy(path, built.image.path)
    if not is_there:
        _copy(built.image.path, path)
    return Built(name, replace(built.image, path=path), written=not is_there)


def _layers(name: str, store: Store, options: Options, collection: Path) -> tuple[list[Layer], Recipe]:
    making = recipe(name)
    packages = parse_packages(packages_file(collection, name).read_text())
    # Another mirror may have other versions of the packages.
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
    return [_layer(store, making, layer, inputs, base) for layer in making.layers], making


def plan(name: str, store: Store, output: Path | None, options: Options, collection: Path = COLLECTION) -> Built:
    """Return what `build` would return, without a change. An image that would be written has no digest."""
    reference, readable = _reference(name, options, collection), store.for_reading()
    path = store.root if output is None else output / f"{name}.tar"
    to_write = Built(name, Image(path, reference, ""), written=True)
    try:
        layers, making = _layers(name, readable, options, collection)
        built = _archive(readable, making, layers, reference)
    except NotMadeError:
        return to_write
    if output is None:
        return built
    return Built(name, replace(built.image, path=path), written=False) if _is_copy(path, built.image.path) else to_write


def _interpreter(store: Store, name: str, base: str, tree: Callable[[], Mapping[str, Node]]) -> list[str]:
    def make(path: Path) -> None:
        unpack_interpreter(tree(), path)

    return interpreter_command(store.piece(f"{name}-python", key_of(base), make))


def _layer(store: Store, making: Recipe, layer: LayerRecipe, inputs: Inputs, base: str) -> Layer:
    key = key_of(layer.key(inputs.collection), base if layer.uses_rootfs else "", hash_of(COLLECTION / "images/oci.py"))

    def make(path: Path) -> None:
        with LayerWriter(path) as writer:
            write_layer(layer.make(inputs), writer)

    return store.layer(f"{making.name}-{layer.name}", key, make)


def _archive(store: Store, making: Recipe, layers: list[Layer], reference: str) -> Built:
    """Return the archive of an image. Its key is its content, so builds of other images do not change it."""
    digest, is_made = digest_of(layers, making.config), False

    def make(path: Path) -> None:
        nonlocal is_made
        write_archive(path, reference, layers, making.config)
        is_made = True

    key = key_of(reference, digest, hash_of(COLLECTION / "images/oci.py"))
    path = store.piece(f"{making.name}-archive", key, make)
    return Built(making.name, Image(path, reference, digest), written=is_made)


def _is_copy(path: Path, archive: Path) -> bool:
    """Tell whether a file is the copy of an archive in the store: both have the same time, to the nanosecond."""
    if not path.exists():
        return False
    copy, original = path.stat(), archive.stat()
    return (copy.st_size, copy.st_mtime_ns) == (original.st_size, original.st_mtime_ns)


def _copy(archive: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        shutil.copy2(archive, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _reference(name: str, options: Options, collection: Path) -> str:
    return f"{options.prefix}/{name}:{options.tag or collection_version(collection)}"


def assemble(name: str, root: Path, output: Path, collection: Path = COLLECTION) -> list[Path]:
    """Make an image's layers from a root file system on disk. Each layer is a directory in `output`.

    The running Python must be the Python of that root file system.
    """
    tree = functools.cache(lambda: read_directory(root))
    inputs = Inputs(collection, tree, lambda: [sys.executable])
    paths = []
    for layer in recipe(name).layers:
        path = output / layer.name
        shutil.rmtree(path, ignore_errors=True)
        write_directory(layer.make(inputs), path)
        paths.append(path)
    return paths
