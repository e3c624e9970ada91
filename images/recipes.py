# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of each image: its layers, the inputs of each layer, and how the image runs.

A recipe reads a root file system as a tree and does not know its source (mmdebstrap or the build stage of a
Containerfile), so both give the same image. build.py decides when to make a layer, store.py where it is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from images import guest, wheels
from images.imports import files_of
from images.oci import Config
from images.precompile import VERSION, compiled
from images.rootfs import TRIXIE, Debian
from images.store import hash_of, key_of
from images.tree import Node, directory, read_directory, regular, regular_at, symlink
from images.trim import parse_keep_list, select, trim

CODE = "usr/lib/virtops"
"""Directory of our packages in an image. A .pth file adds it to the path, so `python3 -I` finds them."""

NAMES = ("control-plane", "virt-launcher", "test-guest")
_PATH_FILE = "usr/lib/python3/dist-packages/virtops.pth"
_WHEELS = f"usr/local/lib/python{VERSION}/dist-packages"
_SEARCH_PATH = "/usr/local/bin:/usr/bin:/usr/sbin"
_SHARED_WITH_MODULES = ("kubevirt_api", "libvirt_domain", "seed_image")
"""Packages below plugins/module_utils that the control plane imports."""
_PAGE = "controlplane/virt_api/page"
"""The console page, which virt-api reads at start."""
_PROBE = "roles/node_kvm/files/kvm_probe.py"
_GUEST_DEBIAN = Debian("bookworm", ("amd64", "i386"), has_updates=False, older=("bullseye", "i386"))
"""bullseye's kernel is the last for i386 that is tickless. Without updates, because the guest is only for tests."""
_LAUNCHER = 107
_UNPRIVILEGED = 65532
HANDLER_UID = 60107
"""A test compares this with controlplane/domain/layout.py."""
_LABELS = {
    "org.opencontainers.image.source": "https://github.com/virtops/virtops.kubevirt",
    "org.opencontainers.image.licenses": "GPL-3.0-or-later",
}


@dataclass(frozen=True)
class Inputs:
    """The inputs of a layer."""

    collection: Path
    """The root of the collection: the directory of images/ and controlplane/."""
    rootfs: Callable[[], Mapping[str, Node]]
    interpreter: Callable[[], list[str]]
    """The command that runs the root file system's Python."""


@dataclass(frozen=True)
class LayerRecipe:
    """One layer. `key` hashes all inputs of `make` except the root file system, and must be fast."""

    name: str
    key: Callable[[Path], str]
    make: Callable[[Inputs], Mapping[str, Node]]
    uses_rootfs: bool = True
    """A new root file system requires a new layer."""


@dataclass(frozen=True)
class Recipe:
    """One image."""

    name: str
    layers: tuple[LayerRecipe, ...]
    config: Config
    debian: Debian = TRIXIE


def packages_file(collection: Path, name: str) -> Path:
    """Return the list of Debian packages of an image."""
    return collection / "images" / name / "packages"


def recipe(name: str) -> Recipe:
    """Return a recipe by the image's name. Raises KeyError for an unknown name."""
    return {recipe.name: recipe for recipe in (_control_plane(), _virt_launcher(), _test_guest())}[name]


def _virt_launcher() -> Recipe:
    return Recipe(
        "virt-launcher",
        (_packages_layer("virt-launcher"), _code_layer(("controlplane.virt_launcher",), _launcher_files())),
        Config(
            entrypoint=(
                "/usr/bin/dumb-init",  # reaps children and otherwise sleeps; tini wakes up every second
                "--single-child",
                "--",
                "/usr/bin/python3",
                "-I",
                "-B",
                "-m",
                "controlplane.virt_launcher",
            ),
            environment={"LANG": "C", "PATH": _SEARCH_PATH},
            user=f"{_LAUNCHER}:{_LAUNCHER}",
            labels=_LABELS,
        ),
    )


def _control_plane() -> Recipe:
    components = ("virt_api", "virt_controller", "virt_handler", "virt_node")
    entries = tuple(f"controlplane.{name}" for name in components)
    return Recipe(
        "control-plane",
        (
            _packages_layer("control-plane"),
            _wheels_layer(),
            _code_layer(entries, _accounts("virtops", _UNPRIVILEGED, "/"), {"kvm_probe.py": _PROBE, _PAGE: _PAGE}),
        ),
        Config(
            entrypoint=("/usr/bin/python3", "-I", "-B"),
            environment={"LANG": "C.UTF-8", "PATH": _SEARCH_PATH},
            user=f"{_UNPRIVILEGED}:{_UNPRIVILEGED}",
            labels=_LABELS,
        ),
    )


def _test_guest() -> Recipe:
    """Only data: a containerDisk, and a kernel with its initrd for kernelBoot. The image has no program."""
    layer = LayerRecipe("disk", _guest_key, lambda inputs: guest.image_files(inputs.rootfs(), _guest_root(inputs)))
    return Recipe("test-guest", (layer,), Config(labels=_LABELS), _GUEST_DEBIAN)


def _guest_root(inputs: Inputs) -> Path:
    return inputs.collection / "images/test-guest"


def _guest_key(collection: Path) -> str:
    sources = sorted(path for path in (collection / "images/test-guest").rglob("*") if path.is_file())
    code = [collection / "images" / name for name in ("guest.py", "bootdisk.py", "cpio.py")]
    return key_of([(str(path.relative_to(collection)), hash_of(path)) for path in (*sources, *code)])


def _packages_layer(name: str) -> LayerRecipe:
    """The layer of Debian packages, with compiled Python files."""

    def keep_list(collection: Path) -> Path:
        return collection / "images" / name / "keep"

    def key(collection: Path) -> str:
        code = [collection / "images" / name for name in ("tree.py", "trim.py", "precompile.py")]
        return key_of([hash_of(path) for path in (keep_list(collection), *code)])

    def make(inputs: Inputs) -> dict[str, Node]:
        files = trim(inputs.rootfs(), parse_keep_list(keep_list(inputs.collection).read_text()))
        return {**files, **compiled(files, inputs.interpreter())}

    return LayerRecipe("packages", key, make)


def _wheels_layer() -> LayerRecipe:
    def requirements(collection: Path) -> Path:
        return collection / "images/control-plane/requirements.txt"

    def keep_list(collection: Path) -> Path:
        return collection / "images/control-plane/keep-wheels"

    def make(inputs: Inputs) -> dict[str, Node]:
        with tempfile.TemporaryDirectory(prefix="virtops-wheels-") as scratch:
            wheels.install(requirements(inputs.collection), Path(scratch))
            installed = read_directory(Path(scratch))
            patterns = parse_keep_list(keep_list(inputs.collection).read_text())
            files = {f"{_WHEELS}/{name}": _in_memory(node) for name, node in select(installed, patterns).items()}
            return {**files, **compiled(files, inputs.interpreter())}

    def key(collection: Path) -> str:
        code = [collection / "images" / name for name in ("wheels.py", "trim.py", "precompile.py")]
        return key_of([hash_of(path) for path in (requirements(collection), keep_list(collection), *code)])

    return LayerRecipe("wheels", key, make, uses_rootfs=False)


def _in_memory(node: Node) -> Node:
    return regular(node.read(), mode=0o755 if node.mode & 0o100 else 0o644) if node.kind == "file" else node


def _code_layer(
    entries: tuple[str, ...], fixed: Mapping[str, Node], others: Mapping[str, str] = MappingProxyType({})
) -> LayerRecipe:
    """The layer of our modules that the entry packages import, and of the image's fixed files.

    others: files, and directories of files, that no import names: path beside the packages -> path in the collection.
    """

    def sources(collection: Path) -> dict[str, Path]:
        shared = {name: collection / "plugins/module_utils" / name for name in _SHARED_WITH_MODULES}
        return files_of({"controlplane": collection / "controlplane", **shared}, entries) | {
            name: file for target, path in others.items() for name, file in _files_at(target, collection / path)
        }

    def key(collection: Path) -> str:
        code = [hash_of(collection / "images" / name) for name in ("recipes.py", "precompile.py")]
        return key_of(code, [(name, hash_of(path)) for name, path in sources(collection).items()])

    def make(inputs: Inputs) -> dict[str, Node]:
        modules = {f"{CODE}/{name}": regular_at(path) for name, path in sources(inputs.collection).items()}
        path_file = {_PATH_FILE: regular(f"/{CODE}\n".encode())}
        return {**fixed, **path_file, **modules, **compiled(modules, inputs.interpreter())}

    return LayerRecipe("code", key, make, uses_rootfs=False)


def _files_at(target: str, path: Path) -> Iterator[tuple[str, Path]]:
    """Yield a file, or all files below a directory, with their paths below `target`."""
    if path.is_file():
        yield target, path
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield f"{target}/{file.relative_to(path).as_posix()}", file


def _accounts(user: str, number: int, home_directory: str) -> dict[str, Node]:
    """Return the files of users: the image's, root, and virt-handler. libvirtd refuses a peer without a name."""
    users = (("root", 0, "/root"), (user, number, home_directory), ("virt-handler", HANDLER_UID, "/"))
    passwd = "".join(f"{name}:x:{uid}:{uid}::{where}:/sbin/nologin\n" for name, uid, where in users)
    group = "".join(f"{name}:x:{uid}:\n" for name, uid, _unused in users)
    return {
        "etc/passwd": regular(passwd.encode()),
        "etc/group": regular(group.encode()),
        "etc/nsswitch.conf": regular(b"passwd: files\ngroup: files\nhosts: files dns\n"),
        "tmp": directory(mode=0o1777),
    }


def _launcher_files() -> dict[str, Node]:
    """Return the fixed files. /var/lock is in the emptyDir: libvirt locks consoles there; the root is read-only."""
    return {
        **_accounts("qemu", _LAUNCHER, "/run/launcher"),
        "img": directory(),
        "run": directory(),
        "run/launcher": directory(owner=_LAUNCHER),
        "var/lock": symlink("/run/launcher/lock"),
        "var/run": symlink("/run"),
    }
