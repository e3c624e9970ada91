# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.virt_launcher.disks.image import Image, find_image
from controlplane.virt_launcher.errors import PreparationError

LIMIT = 2 << 30


def qcow2(*, version: int = 3, backing: int = 0, size: int = 1 << 30, crypt: int = 0, incompatible: int = 0) -> bytes:
    header = b"QFI\xfb" + struct.pack(">IQIIQI", version, backing, 0, 16, size, crypt)
    return header.ljust(72, b"\0") + struct.pack(">Q", incompatible) + bytes(432)


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path


def test_the_only_file_in_disk_is_the_image(mount: Path) -> None:
    (mount / "disk" / "guest.img").write_bytes(b"\xeb\x63" + bytes(510))
    assert find_image("root", str(mount), "", LIMIT) == Image(f"{mount}/disk/guest.img", "raw", 512)


def test_a_given_path_is_used(mount: Path) -> None:
    (mount / "disk" / "a.qcow2").write_bytes(qcow2(version=2, size=4096))
    (mount / "disk" / "b.qcow2").write_bytes(qcow2())
    assert find_image("root", str(mount), "/disk/a.qcow2", LIMIT) == Image(f"{mount}/disk/a.qcow2", "qcow2", 4096)


Make = Callable[[Path], object]


@pytest.mark.parametrize(
    ("make", "path", "message"),
    [
        pytest.param(lambda disk: None, "", "no file in /disk", id="empty directory"),
        pytest.param(lambda disk: disk.rmdir(), "", "cannot open '/disk': there is no such file", id="no directory"),
        pytest.param(lambda disk: [(disk / n).touch() for n in "ab"], "", r"2 files \(a, b", id="two files"),
        pytest.param(
            lambda disk: Path(os.fsdecode(bytes(disk) + b"/a\xff.img")).touch(), "", "not UTF-8", id="no text"
        ),
        pytest.param(lambda disk: (disk / "a\nb").touch(), "", "control characters", id="two lines"),
        pytest.param(lambda disk: (disk / "a").symlink_to("/etc/passwd"), "", "symbolic link", id="link out"),
        pytest.param(lambda disk: os.mkfifo(disk / "a"), "", "not a regular file", id="fifo"),
        pytest.param(lambda disk: (disk / "a").mkdir(), "", "not a regular file", id="directory"),
        pytest.param(lambda disk: (disk / "a").touch(), "", "is empty", id="empty file"),
        pytest.param(lambda disk: None, "/disk/none", "no such file", id="wrong path"),
        pytest.param(lambda disk: None, "/disk/../../etc/passwd", "not a plain absolute path", id="dots"),
        pytest.param(lambda disk: (disk / "a").touch(), "/disk//a", "not a plain absolute path", id="empty part"),
        pytest.param(lambda disk: None, "/", "not a plain absolute path", id="root"),
        pytest.param(lambda disk: (disk.parent / "l").symlink_to("/"), "/l/etc/passwd", "symbolic link", id="link"),
        pytest.param(lambda disk: (disk / "a").write_bytes(b"\x1f\x8b\x08" + bytes(99)), "", "gzip-comp", id="gzip"),
        pytest.param(lambda disk: (disk / "a").write_bytes(b"KDMV" + bytes(99)), "", "a VMDK image", id="vmdk"),
        pytest.param(lambda disk: (disk / "a").write_bytes(b"QFI\xfb"), "", "header is cut off", id="cut qcow2"),
        pytest.param(lambda disk: (disk / "a").write_bytes(qcow2(backing=512)), "", "has a backing file", id="backing"),
        pytest.param(
            lambda disk: (disk / "a").write_bytes(qcow2(incompatible=4)), "", "in another file", id="data file"
        ),
        pytest.param(lambda disk: (disk / "a").write_bytes(qcow2(incompatible=2)), "", "marked corrupt", id="corrupt"),
        pytest.param(lambda disk: (disk / "a").write_bytes(qcow2(crypt=1)), "", "is encrypted", id="encrypted"),
        pytest.param(lambda disk: (disk / "a").write_bytes(qcow2(version=9)), "", "has version 9", id="version"),
    ],
)
def test_an_untrustworthy_image_is_refused(mount: Path, make: Make, path: str, message: str) -> None:
    make(mount / "disk")
    with pytest.raises(PreparationError, match=rf"InvalidDisk: volume root: .*{message}"):
        find_image("root", str(mount), path, LIMIT)


@pytest.mark.parametrize("size", [LIMIT + 512, 64 << 40, 8 << 60])
def test_a_disk_above_the_size_limit_is_refused(mount: Path, size: int) -> None:
    (mount / "disk" / "a").write_bytes(qcow2(size=size))
    with pytest.raises(
        PreparationError, match=f"DiskTooLarge: volume root: .* {size} bytes, at most {LIMIT} .*disk-limit"
    ):
        find_image("root", str(mount), "", LIMIT)


def test_a_disk_at_the_size_limit_is_accepted(mount: Path) -> None:
    (mount / "disk" / "a").write_bytes(qcow2(size=LIMIT))
    assert find_image("root", str(mount), "", LIMIT).virtual_bytes == LIMIT


def test_the_size_of_a_raw_image_is_its_file_size(mount: Path) -> None:
    with (mount / "disk" / "a").open("wb") as file:
        file.truncate(LIMIT + 1)
    with pytest.raises(PreparationError, match="DiskTooLarge"):
        find_image("root", str(mount), "", LIMIT)


def test_no_descriptor_is_left_open(mount: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    (mount / "disk" / "a").write_bytes(qcow2(backing=1))
    for _unused in range(3):
        with pytest.raises(PreparationError):
            find_image("root", str(mount), "", LIMIT)
    assert len(os.listdir("/proc/self/fd")) == before
