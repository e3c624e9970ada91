# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The name of a launcher Pod."""

from __future__ import annotations

import msgspec
import pytest

from controlplane.virt_controller.vmi.world import pod_name
from tests.controlplane.virt_controller.builders import a_vmi

NAMES = {
    "short": ("web", "virt-launcher-web-bbbbbbbb-1"),
    "with dots": ("web.example", "virt-launcher-web-example-bbbbbbbb-1"),
    "long": ("n" * 253, "virt-launcher-" + "n" * 38 + "-bbbbbbbb-1"),
    "cut at a dash": ("n" * 37 + "-" + "m" * 10, "virt-launcher-" + "n" * 37 + "-bbbbbbbb-1"),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.values(), ids=NAMES.keys())
def test_the_pod_s_name_is_valid_and_always_the_same(name: str, expected: str) -> None:
    vmi = a_vmi()
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, name=name))
    assert pod_name(vmi, 1) == expected
    assert len(expected) <= 63
