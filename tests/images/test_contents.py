# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the built images hold and what they do not: no shell, no package manager, nothing setuid, nothing missing."""

from __future__ import annotations

import ast
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from controlplane.domain import layout
from images.build import COLLECTION
from images.recipes import HANDLER_UID, recipe
from images.store import cache_directory
from images.tree import read_tar, write_directory
from images.trim import unresolved
from tests.images.conftest import BuiltImage

pytestmark = pytest.mark.guest

PROGRAM_DIRECTORIES = ("usr/bin/", "usr/sbin/", "usr/lib/libvirt/libvirt_", "usr/local/bin/")
PROGRAMS = {
    "control-plane": {"python3", "python3.13"},
    "virt-launcher": {
        "dumb-init",
        "libvirt_iohelper",
        "libvirtd",
        "python3",
        "python3.13",
        "qemu-img",
        "qemu-system-x86_64",
    },
}


@pytest.fixture(params=sorted(PROGRAMS))
def image(request: pytest.FixtureRequest) -> tuple[str, BuiltImage]:
    name = request.param
    return name, request.getfixturevalue(name.replace("-", "_"))


def test_an_image_has_its_programs_and_no_other(image: tuple[str, BuiltImage]) -> None:
    """So neither a shell, nor a package manager, nor an emulator of another machine."""
    name, built = image
    found = {path.rpartition("/")[2] for path in built.files if path.startswith(PROGRAM_DIRECTORIES)}
    assert found == PROGRAMS[name]


def test_nothing_in_an_image_raises_privileges_or_is_writable_by_all(image: tuple[str, BuiltImage]) -> None:
    _unused, built = image
    files = {path: node for path, node in built.files.items() if node.kind != "symlink"}
    assert [path for path, node in files.items() if node.mode & 0o6000] == []
    assert [path for path, node in files.items() if node.mode & 0o002] == ["tmp"]
    assert {path: node.owner for path, node in files.items() if node.owner} in ({}, {"run/launcher": 107})


def test_every_library_that_an_image_links_to_is_in_it(image: tuple[str, BuiltImage]) -> None:
    _unused, built = image
    assert unresolved(built.files) == []


def test_every_python_file_of_an_image_is_compiled(image: tuple[str, BuiltImage]) -> None:
    _unused, built = image
    sources = [path for path, node in built.files.items() if path.endswith(".py") and node.kind == "file"]
    compiled = re.compile(r"(.*/)?__pycache__/([^/]*)\.cpython-313\.pyc")
    found = {f"{match[1].removesuffix('/')}/{match[2]}.py" for match in map(compiled.fullmatch, built.files) if match}
    assert [path for path in sources if path not in {name.replace("/__pycache__", "") for name in found}] == []


def test_the_launcher_runs_as_the_user_of_qemu_without_anything_of_the_client(virt_launcher: BuiltImage) -> None:
    assert virt_launcher.config["User"] == "107:107"
    assert virt_launcher.config["Env"] == ["LANG=C", "PATH=/usr/local/bin:/usr/bin:/usr/sbin"]
    files = virt_launcher.files
    assert b"qemu:x:107:107:" in files["etc/passwd"].read()
    assert f"virt-handler:x:{layout.HANDLER_UID}:{layout.HANDLER_UID}:".encode() in files["etc/passwd"].read()
    assert files["var/lock"].target == "/run/launcher/lock"
    ours = {path for path in files if path.startswith("usr/lib/virtops/") and path.endswith(".py")}
    assert "usr/lib/virtops/controlplane/virt_launcher/__main__.py" in ours
    other = ("kube", "virt_api", "virt_controller", "virt_handler", "virt_node", "node_link")
    assert [
        path for path in ours if path.startswith(tuple(f"usr/lib/virtops/controlplane/{item}/" for item in other))
    ] == []


def test_the_control_plane_runs_without_privileges_by_itself(control_plane: BuiltImage) -> None:
    assert control_plane.config["User"] == "65532:65532"
    assert not any(path.startswith("usr/lib/virtops/controlplane/virt_launcher/") for path in control_plane.files)
    assert f"virt-handler:x:{layout.HANDLER_UID}:".encode() in control_plane.files["etc/passwd"].read()
    assert "usr/lib/virtops/kvm_probe.py" in control_plane.files


def _imports_of(files: list[Path]) -> list[str]:
    """Return every absolute import in some files, also those inside functions."""
    found: set[str] = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module)
    return sorted(found)


@pytest.mark.parametrize("root", ["control_plane_root", "launcher_root"])
def test_everything_that_our_code_imports_can_be_imported_inside(root: str, request: pytest.FixtureRequest) -> None:
    """Run with the image's own Python and libraries, from its unpacked files."""
    if os.geteuid() != 0:
        pytest.fail("needs root, for chroot")
    unpacked: Path = request.getfixturevalue(root)
    null = unpacked / "dev/null"  # as every container has it; libvirt's log goes there
    if not null.exists():
        null.parent.mkdir(exist_ok=True)
        os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    ours = unpacked / "usr/lib/virtops"
    modules = _imports_of(list(ours.rglob("*.py")))
    assert len(modules) > 20
    program = f"import importlib\nfor name in {modules!r}: importlib.import_module(name)\nprint('imported')"
    command = ["chroot", str(unpacked), "/usr/bin/python3", "-I", "-B", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/usr/sbin"})
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["virt-launcher", "test-guest"])
def test_a_containerfile_builds_the_same_image(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Does what the Containerfile does after its packages are there, in the root file system of the other way."""
    if os.geteuid() != 0:
        pytest.fail("needs root, for chroot")
    built: BuiltImage = request.getfixturevalue(name.replace("-", "_"))
    rootfs = max(cache_directory().glob(f"{name}-rootfs-*"), key=lambda path: path.stat().st_mtime_ns)
    stage = tmp_path / "stage"
    write_directory(read_tar(rootfs), stage)
    for line in (COLLECTION / "images" / name / "Containerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line and "packages" not in line:
            _unused, source, target = line.split()
            subprocess.run(["cp", "-r", "-T", COLLECTION / source, _made(stage / "src" / target)], check=True)
    command = ["/usr/bin/env", "-C", "/src", "python3", "-B", "-m", "images", "assemble", name]
    subprocess.run(
        ["chroot", stage, *command, "--root", "/", "--output", "/out"], check=True, stdout=subprocess.DEVNULL
    )
    for layer, files in zip(recipe(name).layers, built.layers, strict=True):
        made = {
            path.relative_to(stage / "out" / layer.name).as_posix() for path in (stage / "out" / layer.name).rglob("*")
        }
        assert made == set(files)
        for path, node in files.items():
            target = stage / "out" / layer.name / path
            if node.kind == "file":
                assert target.read_bytes() == node.read(), path
                assert target.stat().st_mode & 0o7777 == node.mode


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_everybody_knows_virt_handler_by_the_same_number() -> None:
    variables = yaml.safe_load((COLLECTION / "roles/control_plane/vars/main.yml").read_text())
    assert variables["__control_plane_handler_uid"] == layout.HANDLER_UID == HANDLER_UID
