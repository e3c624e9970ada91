# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preparation without an image and the real layout. test_launcher.py covers the whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.api.launch_plan import (
    ClaimDisk,
    CloudInit,
    ContainerDisk,
    EmptyDisk,
    ImageFile,
    LauncherReport,
    LaunchPlan,
    parse_report,
)
from controlplane.domain import layout
from controlplane.virt_launcher.disks import prepare as module
from controlplane.virt_launcher.disks.prepare import can_do_direct_io, finish_overlay, prepare, write_report
from controlplane.virt_launcher.errors import PreparationError
from controlplane.virt_launcher.files import write_file

MIB = 1 << 20
PLAN = LaunchPlan(
    domain="uid",
    title="ns/vm",
    grace_period_seconds=30,
    container_disk_limit_bytes=1 << 30,
    container_disks=(ContainerDisk("root"), ContainerDisk("tools")),
    empty_disks=(EmptyDisk("scratch", MIB), EmptyDisk("swap", 2 * MIB)),
    cloud_init=(CloudInit("seed", "{}"), CloudInit("other", "{}")),
    claim_disks=(ClaimDisk("data", is_block=False, size_bytes=MIB, is_read_only=False, is_shared=False),),
)


def test_the_report_is_written_atomically(tmp_path: Path) -> None:
    report = LauncherReport((ImageFile("root", "/img/volumes/root/disk/a", "raw"),), direct_io=False)
    write_report(report, str(tmp_path / "report.json"))
    data = (tmp_path / "report.json").read_bytes()
    assert parse_report(data, mounts={"root": "/img/volumes/root"}) == report
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_an_incomplete_report_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_unused: int, *_others: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(LauncherReport(), str(tmp_path / "report.json"))
    assert not (tmp_path / "report.json").exists()


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"what a launcher that was ended here has left")
    write_file(str(tmp_path / "disk"), b"new")
    assert (tmp_path / "disk").read_bytes() == b"new"


def test_a_sparse_file_takes_no_space(tmp_path: Path) -> None:
    write_file(str(tmp_path / "disk"), b"", size=1 << 34)
    status = (tmp_path / "disk").stat()
    assert (status.st_size, status.st_blocks, status.st_mode & 0o777 & ~0o640) == (1 << 34, 0, 0)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic link"):
        write_file(str(tmp_path / "link"), b"x")


def test_direct_io_is_tried_and_not_assumed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert can_do_direct_io([]) is True
    assert can_do_direct_io([str(tmp_path / "file"), str(tmp_path / "none")]) is False
    assert can_do_direct_io(["/proc/self/status"]) is False


def test_the_error_of_qemu_img_reaches_the_user() -> None:
    program = "import sys; sys.exit('qemu-img: Image is corrupt')"
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
    with pytest.raises(
        PreparationError, match="volume root: qemu-img cannot use the image: qemu-img: Image is corrupt"
    ):
        finish_overlay("root", process)


def test_a_killed_qemu_img_is_an_error() -> None:
    """Its limits or the OOM killer may end it. A half-written overlay is useless."""
    process = subprocess.Popen(["sh", "-c", "kill -KILL $$"], stderr=subprocess.PIPE)
    with pytest.raises(PreparationError, match="volume root: qemu-img cannot use the image: exit code -9"):
        finish_overlay("root", process)


def test_a_qemu_img_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QEMU_IMG_SECONDS", 0.01)
    process = subprocess.Popen(["sleep", "5"], stderr=subprocess.PIPE)
    with pytest.raises(PreparationError, match=r"volume root: qemu-img did not end within 0.01 s"):
        finish_overlay("root", process)
    assert process.returncode == -9


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directories of a launcher with images and claims, and a qemu-img that records its arguments and limits."""
    for name, directory in (("DISKS", "disks"), ("IMAGES", "images"), ("CLAIMS", "claims")):
        monkeypatch.setattr(layout, name, str(tmp_path / directory))
    for volume in ("root", "tools"):
        (tmp_path / "images" / volume / "disk").mkdir(parents=True)
        (tmp_path / "images" / volume / "disk" / f"{volume}.img").write_bytes(b"x" * 512)
    (tmp_path / "claims" / "data").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "qemu-img"
    limits = 'ulimit -v >"$overlay.limits"; ulimit -t >>"$overlay.limits"'
    tool.write_text(f'#!/bin/sh\nfor overlay; do :; done\necho "$@" >"$overlay"\n{limits}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return tmp_path


def test_every_disk_of_the_plan_is_created(pod: Path) -> None:
    report = prepare(PLAN)

    created = {path.name for path in (pod / "disks").iterdir() if path.suffix != ".limits"}
    assert created == {"root.qcow2", "tools.qcow2", "scratch.img", "swap.img", "seed.iso", "other.iso"}
    assert (pod / "claims" / "data" / "disk.img").stat().st_size == MIB
    assert [
        (container_disk.volume, container_disk.path, container_disk.format) for container_disk in report.container_disks
    ] == [(volume, str(pod / "images" / volume / "disk" / f"{volume}.img"), "raw") for volume in ("root", "tools")]


def test_qemu_img_gets_the_format_and_limits(pod: Path) -> None:
    """A tenant's image: its format is never probed, and reading it is limited in memory and CPU time."""
    prepare(PLAN)

    below, overlay = pod / "images" / "root" / "disk" / "root.img", pod / "disks" / "root.qcow2"
    assert overlay.read_text().split() == ["create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(below), str(overlay)]
    assert Path(f"{overlay}.limits").read_text().split() == ["1048576", "30"]


def test_direct_io_is_tried_on_every_opened_file(pod: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def refuse(paths: list[str]) -> bool:
        tried.extend(paths)
        return False

    monkeypatch.setattr(module, "can_do_direct_io", refuse)
    assert prepare(PLAN).direct_io is False
    overlays = ["disks/root.qcow2", "disks/tools.qcow2", "images/root/disk/root.img", "images/tools/disk/tools.img"]
    plain_files = ["disks/scratch.img", "disks/swap.img", "claims/data/disk.img"]
    assert sorted(tried) == sorted(str(pod / name) for name in (*overlays, *plain_files))
