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
from controlplane.virt_launcher.disks.claim import MIB, prepare_claim, shared_directories
from controlplane.virt_launcher.errors import PreparationError


@pytest.fixture
def volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The volume of claim "data". `has_room` sets its free space."""
    monkeypatch.setattr(layout, "CLAIMS", str(tmp_path))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def has_room(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _unused: SimpleNamespace(f_bavail=size // 4096, f_frsize=4096))


def a_plan(size: int = 8 * MIB, **options: Any) -> ClaimDisk:
    plain = {"is_block": False, "is_read_only": False, "is_shared": False}
    return ClaimDisk("data", size_bytes=size, **{**plain, **options})


def test_an_empty_volume_gets_a_sparse_disk_of_the_claims_size(volume: Path) -> None:
    assert prepare_claim(a_plan()) == str(volume / "disk.img")
    status = (volume / "disk.img").stat()
    assert (status.st_size, status.st_blocks) == (8 * MIB, 0)
    assert status.st_mode & 0o007 == 0


@pytest.mark.parametrize(
    ("before", "claim", "room", "options", "after"),
    [
        pytest.param(4 * MIB, 4 * MIB, None, {}, 4 * MIB, id="as large as its claim"),
        pytest.param(MIB, 3 * MIB + 5, None, {}, 3 * MIB, id="grows with its claim"),
        pytest.param(2 * MIB, MIB, None, {}, 2 * MIB, id="never shrinks"),
        pytest.param(MIB, 8 * MIB, None, {"is_shared": True}, MIB, id="a shared disk is not resized"),
        pytest.param(MIB, 8 * MIB, None, {"is_read_only": True}, MIB, id="a read-only disk is not resized"),
        pytest.param(0, 8 * MIB, None, {"is_shared": True}, 8 * MIB, id="no guest can have a missing disk open"),
        pytest.param(0, 100 * MIB, 93 * MIB, {}, 92 * MIB, id="a file system may take a tenth of the volume"),
        pytest.param(4 * MIB, 100 * MIB, 3 * MIB, {}, 6 * MIB, id="its own space counts as free"),
        pytest.param(MIB, 8 * MIB, 0, {}, MIB, id="a full volume"),
        pytest.param(2 * MIB + 512, 2 * MIB, None, {}, 2 * MIB + 4096, id="of another size than blocks have"),
        pytest.param(MIB + 512, 8 * MIB, 0, {}, MIB + 4096, id="of such a size on a full volume"),
        pytest.param(MIB + 512, 8 * MIB, None, {"is_shared": True}, MIB + 512, id="of such a size, and shared"),
    ],
)
def test_a_disk_keeps_its_content_and_gets_its_size(
    volume: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: int,
    claim: int,
    room: int | None,
    options: dict[str, bool],
    after: int,
) -> None:
    if before:
        (volume / "disk.img").write_bytes(b"x" * before)
    if room is not None:
        has_room(room, monkeypatch)
    prepare_claim(a_plan(claim, **options))
    assert (volume / "disk.img").stat().st_size == after
    with (volume / "disk.img").open("rb") as disk:
        assert disk.read(before) == b"x" * before


def test_directories_of_shared_claims_are_shared() -> None:
    claims = (
        ClaimDisk("both", is_block=False, size_bytes=MIB, is_read_only=False, is_shared=True),
        ClaimDisk("here", is_block=False, size_bytes=MIB, is_read_only=False, is_shared=False),
        ClaimDisk("device", is_block=True, size_bytes=MIB, is_read_only=False, is_shared=True),
        ClaimDisk("read", is_block=False, size_bytes=MIB, is_read_only=True, is_shared=True),
    )
    assert shared_directories(claims) == ("/img/claims/both", "/img/claims/read")


def test_a_volume_much_smaller_than_its_claim_is_refused_and_left_empty(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_room(50 * MIB, monkeypatch)

    with pytest.raises(PreparationError, match="has room for 52297728 bytes, its claim asks for 104857600"):
        prepare_claim(a_plan(100 * MIB))
    assert list(volume.iterdir()) == []


def test_a_read_only_volume_needs_a_disk(volume: Path) -> None:
    with pytest.raises(PreparationError, match=r"has no disk.img"):
        prepare_claim(a_plan(is_read_only=True))
    assert list(volume.iterdir()) == []


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "directory"])
def test_only_a_regular_file_is_accepted_as_a_disk(kind: str, volume: Path, tmp_path: Path) -> None:
    """The content of the volume may be an attack on the launcher."""
    secret = tmp_path / "other"
    secret.write_bytes(b"secret")
    disk = volume / "disk.img"
    if kind == "link":
        disk.symlink_to(secret)
    elif kind == "dangling":
        disk.symlink_to(tmp_path / "new")
    elif kind == "fifo":
        os.mkfifo(disk)
    else:
        disk.mkdir()

    with pytest.raises(PreparationError, match="volume data: "):
        prepare_claim(a_plan())
    assert secret.read_bytes() == b"secret"
    assert not (tmp_path / "new").exists()


def test_a_claim_device_that_is_no_block_device_is_refused(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "claim_device", lambda _unused: str(volume / "device"))
    (volume / "device").write_bytes(b"")

    with pytest.raises(PreparationError, match="volume data: its device is not a block device"):
        prepare_claim(a_plan(is_block=True))


def test_a_missing_claim_device_is_reported(volume: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "claim_device", lambda _unused: str(volume / "device"))

    with pytest.raises(PreparationError, match=r"volume data: cannot open its device: No such file or directory$"):
        prepare_claim(a_plan(is_block=True))


def test_a_claim_device_without_permission_is_reported_with_the_fix(
    volume: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cause is a setting of the node's container runtime, which users do not expect."""

    def refuse(*_unused: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PreparationError, match=r"Permission denied; .* device_ownership_from_security_context"):
        prepare_claim(a_plan(is_block=True))
