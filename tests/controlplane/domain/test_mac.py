# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.mac import guest_mac

UID = "6a1a24a1-4061-4607-8bf4-a3963d0c5895"


def test_a_derived_address_never_changes() -> None:
    """virt-controller and virt-handler both derive it: a changed value would cut running guests off from DHCP."""
    assert guest_mac(UID, "default") == "02:fd:dc:9e:5b:fb"


def test_a_derived_address_is_local_and_unicast() -> None:
    for number in range(200):
        first = int(guest_mac(UID, f"net{number}")[:2], 16)
        assert first & 0b11 == 0b10


def test_interfaces_and_instances_get_different_addresses() -> None:
    assert len({guest_mac(uid, name) for uid in (UID, UID[::-1]) for name in ("a", "b")}) == 4


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("52:54:00:12:34:56", "52:54:00:12:34:56", id="as libvirt spells it"),
        pytest.param("52-54-00-AB-CD-EF", "52:54:00:ab:cd:ef", id="dashes and capitals"),
    ],
)
def test_a_given_address_wins(given: str, expected: str) -> None:
    assert guest_mac(UID, "default", given) == expected


@pytest.mark.parametrize(
    "given", ["gg:00:00:00:00:00", "01:00:5e:00:00:01", "ff:ff:ff:ff:ff:ff", "02:00", "00:00:00:00:00:00"]
)
def test_an_address_that_is_not_a_unicast_address_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        guest_mac(UID, "default", given)
