# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable

import pytest

from controlplane.domain import layout

PATHS: list[Callable[[str], str]] = [
    layout.pod_volume,
    layout.image_mount,
    layout.claim_mount,
    layout.claim_file,
    layout.claim_device,
    layout.overlay,
    layout.sparse_disk,
    layout.cloud_init_iso,
    lambda volume: layout.cloud_init_secret(volume, "userdata"),
]


@pytest.mark.parametrize("place", PATHS)
@pytest.mark.parametrize("volume", ["", "..", "a/b", "A", "-a", "a-", "a\n", "a" * 64], ids=repr)
def test_no_volume_name_escapes_its_directory(place: Callable[[str], str], volume: str) -> None:
    """Admission refuses it too, but the layout does not rely on admission."""
    with pytest.raises(ValueError, match="is not a DNS label"):
        place(volume)


@pytest.mark.parametrize(
    ("volume", "expected"),
    [("root", "vol-root"), ("a" * 59, "vol-" + "a" * 59), ("a" * 58 + "-b", "vol-" + "a" * 58)],
    ids=["short", "as long as admission lets in", "cut at a hyphen"],
)
def test_the_name_of_a_pod_volume_is_valid_for_kubernetes(volume: str, expected: str) -> None:
    assert layout.pod_volume(volume) == expected
