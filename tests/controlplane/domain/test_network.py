# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.domain.network import masquerade_network


@pytest.mark.parametrize(
    ("cidr", "gateway", "guest"),
    [
        pytest.param(None, "10.0.2.1/24", "10.0.2.2/24", id="default"),
        pytest.param("", "10.0.2.1/24", "10.0.2.2/24", id="empty"),
        pytest.param("192.168.66.0/24", "192.168.66.1/24", "192.168.66.2/24", id="chosen"),
        pytest.param("10.11.12.77/16", "10.11.0.1/16", "10.11.0.2/16", id="host bits are ignored"),
        pytest.param("172.16.5.4/30", "172.16.5.5/30", "172.16.5.6/30", id="smallest"),
    ],
)
def test_gateway_is_the_first_and_guest_the_second_host(cidr: str | None, gateway: str, guest: str) -> None:
    network = masquerade_network(cidr)
    assert (str(network.gateway_interface), str(network.guest_interface)) == (gateway, guest)


@pytest.mark.parametrize("cidr", ["10.0.2.0/31", "10.0.2.1/32", "fd10:0:2::/120", "10.0.2", "10.0.2.0/24; reboot"])
def test_a_too_small_or_malformed_network_is_refused(cidr: str) -> None:
    with pytest.raises(ValueError, match="vmNetworkCIDR"):
        masquerade_network(cidr)


@pytest.mark.parametrize(
    "cidr",
    [
        "127.0.0.0/8",
        "127.0.0.0/30",
        "0.0.0.0/0",
        "0.0.0.0/1",
        "0.0.0.0/8",
        "0.1.2.0/24",
        "224.0.0.0/8",
        "239.255.255.0/24",
        "240.0.0.0/8",
        "255.255.255.252/30",
        "169.254.0.0/16",
        "169.0.0.0/8",
        "10.0.0.0/7",
    ],
)
def test_a_reserved_network_is_refused(cidr: str) -> None:
    """Checked here and not only by admission: a node gets the network from virt-handler."""
    with pytest.raises(ValueError, match="cannot be a guest's"):
        masquerade_network(cidr)
