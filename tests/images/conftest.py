# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures over the built images: their archives, their files, and QEMU out of the launcher image."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from images.build import Options, build
from images.store import Store, cache_directory
from images.tree import Node, read_tar, write_directory


@dataclass(frozen=True)
class BuiltImage:
    """What a runtime finds in an archive."""

    config: dict[str, Any]
    layers: tuple[dict[str, Node], ...]

    @property
    def files(self) -> dict[str, Node]:
        """All layers, one over the other."""
        return {name: node for layer in self.layers for name, node in layer.items()}


def open_image(name: str, scratch: Path) -> BuiltImage:
    """Bring an image's layers up to date in the cache, and read an archive of them."""
    built = build(name, Store(cache_directory()), None, Options(tag="test"))
    subprocess.run(["tar", "--extract", "--file", built.image.path, "--directory", scratch], check=True)

    def blob(digest: str) -> Path:
        return scratch / "blobs/sha256" / digest.removeprefix("sha256:")

    manifest = json.loads(blob(built.image.digest).read_text())
    config = json.loads(blob(manifest["config"]["digest"]).read_text())
    return BuiltImage(config["config"], tuple(read_tar(blob(layer["digest"])) for layer in manifest["layers"]))


@pytest.fixture(scope="session")
def virt_launcher(tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    return open_image("virt-launcher", tmp_path_factory.mktemp("virt-launcher"))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    return open_image("control-plane", tmp_path_factory.mktemp("control-plane"))


@pytest.fixture(scope="session")
def test_guest(tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    return open_image("test-guest", tmp_path_factory.mktemp("test-guest"))


@pytest.fixture(scope="session")
def launcher_root(virt_launcher: BuiltImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The launcher image, unpacked."""
    root = tmp_path_factory.mktemp("launcher-root")
    write_directory(virt_launcher.files, root)
    return root


@pytest.fixture(scope="session")
def control_plane_root(control_plane: BuiltImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The control-plane image, unpacked."""
    root = tmp_path_factory.mktemp("control-plane-root")
    write_directory(control_plane.files, root)
    return root


@pytest.fixture(scope="session")
def guest_files(test_guest: BuiltImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test guest's image, unpacked: disk/guest.img, boot/vmlinuz, boot/initrd."""
    root = tmp_path_factory.mktemp("guest")
    write_directory(test_guest.files, root)
    return root
