# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils.seed_image.iso9660 import write_iso
from ansible_collections.virtops.kubevirt.plugins.module_utils.seed_image.no_cloud import (
    PART_LIMIT_BYTES,
    PartTooLargeError,
    write_seed,
)


def test_a_seed_without_user_data_has_an_empty_file() -> None:
    assert write_seed(b"{}") == write_iso("cidata", {"meta-data": b"{}", "user-data": b""})


def test_empty_network_data_is_written() -> None:
    expected = write_iso("cidata", {"meta-data": b"{}", "user-data": b"x", "network-config": b""})
    assert write_seed(b"{}", b"x", b"") == expected


@pytest.mark.parametrize(
    ("part", "data"), [("user data", {"user_data": b"x"}), ("network data", {"network_data": b"x"})]
)
def test_a_part_that_is_too_large_is_refused(part: str, data: dict[str, bytes]) -> None:
    large = {name: text * (PART_LIMIT_BYTES + 1) for name, text in data.items()}
    with pytest.raises(PartTooLargeError, match=part):
        write_seed(b"{}", **large)
    assert write_seed(b"{}", **{name: text * PART_LIMIT_BYTES for name, text in data.items()})
