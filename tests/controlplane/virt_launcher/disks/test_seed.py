# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from seed_image.iso9660 import write_iso
from seed_image.no_cloud import PART_LIMIT_BYTES

from controlplane.api.launch_plan import CloudInit
from controlplane.virt_launcher.disks.seed import build_seed
from controlplane.virt_launcher.errors import PreparationError

META = "{}"


def test_inline_parts_are_in_the_seed() -> None:
    plan = CloudInit("seed", META, user_data="#!/bin/sh", network_data="version: 2")
    expected = {"meta-data": b"{}", "user-data": b"#!/bin/sh", "network-config": b"version: 2"}
    assert build_seed(plan) == write_iso("cidata", expected)


def test_missing_user_data_becomes_an_empty_file() -> None:
    """cloud-init ignores a seed without the file."""
    assert build_seed(CloudInit("seed", META)) == write_iso("cidata", {"meta-data": b"{}", "user-data": b""})


@pytest.mark.parametrize("key", ["userdata", "userData"])
def test_a_mounted_secret_is_read_through_the_kubelets_link(tmp_path: Path, key: str) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / key).write_bytes(b"\x1f\x8b\x08 gzip is opaque")
    (tmp_path / key).symlink_to(f"..data/{key}")
    seed = build_seed(CloudInit("seed", META, user_data_file=f"{tmp_path}/userdata"))
    assert seed == write_iso("cidata", {"meta-data": b"{}", "user-data": b"\x1f\x8b\x08 gzip is opaque"})


def test_an_empty_network_configuration_is_in_the_seed(tmp_path: Path) -> None:
    """Without the file, cloud-init generates its own configuration."""
    (tmp_path / "networkdata").write_bytes(b"")
    seed = build_seed(CloudInit("seed", META, user_data="x", network_data_file=f"{tmp_path}/networkdata"))
    assert seed == write_iso("cidata", {"meta-data": b"{}", "user-data": b"x", "network-config": b""})


def test_a_part_at_the_size_limit_is_in_the_seed(tmp_path: Path) -> None:
    (tmp_path / "userdata").write_bytes(b"x" * PART_LIMIT_BYTES)
    seed = build_seed(CloudInit("seed", META, user_data_file=f"{tmp_path}/userdata"))
    assert seed == write_iso("cidata", {"meta-data": b"{}", "user-data": b"x" * PART_LIMIT_BYTES})


def test_a_missing_key_of_a_secret_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreparationError, match=r"volume seed: .* has no key networkdata nor networkData"):
        build_seed(CloudInit("seed", META, network_data_file=f"{tmp_path}/networkdata"))


def test_a_part_above_the_size_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "userdata").write_bytes(b"x" * (PART_LIMIT_BYTES + 1))
    with pytest.raises(PreparationError, match="CloudInitTooLarge") as raised:
        build_seed(CloudInit("seed", META, user_data_file=f"{tmp_path}/userdata"))
    assert "xxx" not in str(raised.value)
