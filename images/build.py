# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the images: each layer from its recipe where that has changed, and an archive where a layer has.

`build` works from mmdebstrap's root file systems and keeps everything in the store. `assemble` works from the root
file system that it runs in, a Containerfile's build stage, and keeps nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from images.oci import Image, Layer, LayerWriter, write_archive
from images.precompile import interpreter_command, unpack_interpreter
from images.recipes import Inputs, LayerRecipe, Recipe, packages_file, recipe
from images.rootfs import OPTIONS, make_rootfs, parse_packages
from images.store import Store, hash_of, key_of
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
    """What a build depends on besides the sources. mirror: of Debian, "" for its own; fresh: fetch packages anew."""

    prefix: str = DEFAULT_PREFIX
    tag: str = ""
    mirror: str = ""
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
    making = recipe(name)
    packages = parse_packages(packages_file(collection, name).read_text())
    debian = dataclasses.replace(making.debian, mirror=options.mirror) if options.mirror else making.debian
    rootfs_key = key_of(repr(debian), OPTIONS, packages)
    rootfs = store.piece(
        f"{name}-rootfs",
        rootfs_key,
        lambda path: make_rootfs(packages, path, debian),
        fresh=options.fresh,
    )
    base = f"{rootfs_key}-{rootfs.stat().st_mtime_ns}"
    tree = functools.cache(lambda: read_tar(rootfs))
    inputs = Inputs(collection, tree, functools.cache(lambda: _interpreter(store, name, base, tree)))
    layers = [_layer(store, making, one, inputs, base) for one in making.layers]
    return _archive(making, layers, output, options, collection)


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
    tag = options.tag or collection_version(collection)
    reference = f"{options.prefix}/{making.name}:{tag}"
    path = output / f"{making.name}.tar"
    noted = output / f".{making.name}.json"
    key = key_of(reference, [one.sha256 for one in layers], repr(making.config), hash_of(COLLECTION / "images/oci.py"))
    if path.exists() and noted.exists():
        known = json.loads(noted.read_text())
        if known["key"] == key and known["modified"] == path.stat().st_mtime_ns:
            return Built(making.name, Image(path, reference, known["digest"]), written=False)
    image = write_archive(path, reference, layers, making.config)
    noted.write_text(json.dumps({"key": key, "digest": image.digest, "modified": path.stat().st_mtime_ns}))
    return Built(making.name, image, written=True)


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
