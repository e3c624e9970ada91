# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.api.launch_plan import ClaimDisk
from controlplane.domain import layout
from controlplane.virt_launcher.disks.claim import MIB, prepare_claim
from controlplane.virt_launcher.errors import PreparationError


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The volume of claim "data"; what it has room for is said with `has_room`."""
    monkeypatch.setattr(layout, "CLAIMS", str(tmp_path))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def has_room(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _unused: SimpleNamespace(f_bavail=size // 4096, f_frsize=4096))


def a_plan(size: int = 8 * MIB, **options: Any) -> ClaimDisk:
    plain = {"is_block": False, "is_read_only": False, "is_shared": False}
    return ClaimDisk("data", size_bytes=size, **{**plain, **options})


def test_an_empty_volume_gets_a_sparse_disk_of_what_the_claim_asks_for(volume: Path) -> None:
    assert prepare_claim(a_plan()) == str(volume / "disk.img")

    made = (volume / "disk.img").stat()
    assert (made.st_size, made.st_blocks) == (8 * MIB, 0)
    assert made.st_mode & 0o007 == 0


def test_a_disk_that_is_there_keeps_what_is_on_it(volume: Path) -> None:
    (volume / "disk.img").write_bytes(b"data" * MIB)

    prepare_claim(a_plan(4 * MIB))

    assert (volume / "disk.img").read_bytes() == b"data" * MIB


def test_a_disk_grows_with_its_claim(volume: Path) -> None:
    (volume / "disk.img").write_bytes(b"x" * MIB)

    prepare_claim(a_plan(3 * MIB + 5))

    content = (volume / "disk.img").read_bytes()
    assert (len(content), content[:MIB], set(content[MIB:])) == (3 * MIB, b"x" * MIB, {0})


def test_a_disk_is_never_made_smaller(volume: Path) -> None:
    (volume / "disk.img").write_bytes(b"x" * 2 * MIB)

    prepare_claim(a_plan(MIB))

    assert (volume / "disk.img").stat().st_size == 2 * MIB


@pytest.mark.parametrize("options", [{"is_shared": True}, {"is_read_only": True}])
def test_a_disk_that_others_may_have_open_is_left_as_it_is(options: dict[str, bool], volume: Path) -> None:
    (volume / "disk.img").write_bytes(b"x" * MIB)

    prepare_claim(a_plan(**options))

    assert (volume / "disk.img").stat().st_size == MIB


def test_a_file_system_may_take_a_tenth_of_a_volume(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_room(93 * MIB, monkeypatch)

    prepare_claim(a_plan(100 * MIB))

    assert (volume / "disk.img").stat().st_size == 92 * MIB


def test_an_empty_volume_that_others_may_write_to_gets_its_disk(volume: Path) -> None:
    """Nobody has it open yet: there is none."""
    prepare_claim(a_plan(is_shared=True))

    assert (volume / "disk.img").stat().st_size == 8 * MIB


def test_a_disk_grows_into_what_is_left_of_its_volume(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes itself is its own room."""
    (volume / "disk.img").write_bytes(b"x" * 4 * MIB)
    has_room(3 * MIB, monkeypatch)

    prepare_claim(a_plan(100 * MIB))

    assert (volume / "disk.img").stat().st_size == 6 * MIB


def test_a_volume_with_much_less_room_than_its_claim_is_refused_and_left_empty(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_room(50 * MIB, monkeypatch)

    with pytest.raises(PreparationError, match="has room for 52297728 bytes, its claim asks for 104857600"):
        prepare_claim(a_plan(100 * MIB))
    assert list(volume.iterdir()) == []


def test_a_full_volume_does_not_keep_its_disk_from_being_used(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (volume / "disk.img").write_bytes(b"x" * MIB)
    has_room(0, monkeypatch)

    prepare_claim(a_plan())

    assert (volume / "disk.img").stat().st_size == MIB


def test_a_read_only_volume_needs_a_disk(volume: Path) -> None:
    with pytest.raises(PreparationError, match=r"there is no disk.img on it"):
        prepare_claim(a_plan(is_read_only=True))
    assert list(volume.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory"])
def test_what_is_no_plain_file_is_refused(kind: str, volume: Path, tmp_path: Path) -> None:
    """Whoever filled the volume may have had the launcher in mind."""
    other = tmp_path / "other"
    other.write_bytes(b"secret")
    disk = volume / "disk.img"
    if kind == "link":
        disk.symlink_to(other)
    elif kind == "dangling":
        disk.symlink_to(tmp_path / "new")
    elif kind == "fifo":
        os.mkfifo(disk)
    else:
        disk.mkdir()

    with pytest.raises(PreparationError, match="volume data: "):
        prepare_claim(a_plan())
    assert other.read_bytes() == b"secret"
    assert not (tmp_path / "new").exists()


def test_a_device_that_is_none_is_refused(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "claim_device", lambda _unused: str(volume / "device"))
    (volume / "device").write_bytes(b"")

    with pytest.raises(PreparationError, match="volume data: its device is not a block device"):
        prepare_claim(a_plan(is_block=True))


def test_a_device_that_is_not_there_is_said(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "claim_device", lambda _unused: str(volume / "device"))

    with pytest.raises(PreparationError, match=r"volume data: cannot open its device: No such file or directory$"):
        prepare_claim(a_plan(is_block=True))


def test_a_device_of_another_user_is_said_with_what_to_do(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a setting of the node's runtime; nobody would look for it there."""

    def refuse(*_unused: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PreparationError, match=r"Permission denied; .* device_ownership_from_security_context"):
        prepare_claim(a_plan(is_block=True))
