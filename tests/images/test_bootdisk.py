# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The layout of the boot disk. That it boots is tested in test_guest_boot.py."""

from __future__ import annotations

import struct

import pytest

from images.bootdisk import SECTOR, layout

BOOT_SECTOR = bytes(range(256)) * 2
FILES = b"f" * 1000


def test_boot_sector_core_and_partition_are_where_grub_looks() -> None:
    disk = layout(BOOT_SECTOR, b"core" * 300, FILES)
    assert disk[:446] == BOOT_SECTOR[:446]
    assert disk[510:512] == b"\x55\xaa"
    assert disk[SECTOR : SECTOR + 1200] == b"core" * 300
    active, kind, first, count = struct.unpack("<BxxxBxxxII", disk[446:462])
    assert (active, kind, first, count) == (0x80, 0xDA, 2048, 2)
    assert disk[first * SECTOR :][: len(FILES)] == FILES
    assert len(disk) == 2 << 20


def test_a_core_image_that_would_reach_into_the_partition_is_refused() -> None:
    with pytest.raises(ValueError, match="too many for the gap"):
        layout(BOOT_SECTOR, bytes(2048 * SECTOR), FILES)
