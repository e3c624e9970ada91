# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import msgspec
import pytest

from controlplane.domain.guest_identity import guest_identity
from tests.controlplane.domain.builders.vmis import a_vmi

NAMES = {
    "the object's": ("", "web.example", "web"),
    "the spec's": ("Mail", "web", "mail"),
    "long": ("", "n" * 100, "n" * 63),
    "cut at a hyphen": ("", "n" * 62 + "-more", "n" * 62),
    "nothing that a host name may have": ("", "...", "vm"),
}


@pytest.mark.parametrize(("hostname", "name", "expected"), NAMES.values(), ids=NAMES.keys())
def test_the_guests_host_name_is_one_dns_label(hostname: str, name: str, expected: str) -> None:
    vmi = a_vmi()
    meta = msgspec.structs.replace(vmi.metadata, name=name)
    spec = msgspec.structs.replace(vmi.spec, hostname=hostname)
    assert guest_identity(msgspec.structs.replace(vmi, metadata=meta, spec=spec)).hostname == expected


def test_without_a_firmware_uuid_the_guest_gets_the_uid_of_the_vmi() -> None:
    assert guest_identity(a_vmi()).uuid == "uid-1"


def test_the_guest_gets_the_firmware_uuid() -> None:
    assert guest_identity(a_vmi(firmware={"uuid": "the-uuid"})).uuid == "the-uuid"
