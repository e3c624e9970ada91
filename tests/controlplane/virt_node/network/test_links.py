# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read of a Pod's own interface. What is made in its namespace: test_netns."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain import layout
from controlplane.node_link.messages import ADDRESSES_LIMIT, PodInterface
from controlplane.virt_node.network.links import _pod_interface

GLOBAL, LINK, IPV4, IPV6 = 0, 253, 2, 10


class Route:
    """A namespace with these addresses on eth0: family, scope, text. No addresses: without eth0."""

    def __init__(self, *addresses: tuple[int, int, str]) -> None:
        self._addresses = addresses

    def link_lookup(self, ifname: str) -> list[int]:
        return [7] if ifname == layout.POD_INTERFACE and self._addresses else []

    def get_links(self, index: int) -> list[dict[str, Any]]:
        return [{"attrs": [("IFLA_IFNAME", "eth0"), ("IFLA_MTU", 1450)]}]

    def get_addr(self, index: int) -> list[dict[str, Any]]:
        return [
            {"family": family, "scope": scope, "attrs": [("IFA_ADDRESS", text)]}
            for family, scope, text in self._addresses
        ]


def test_a_pod_has_its_global_addresses_ipv4_first() -> None:
    route = Route((IPV6, LINK, "fe80::1"), (IPV6, GLOBAL, "fd00::7"), (IPV4, GLOBAL, "10.244.0.7"))
    assert _pod_interface(route) == PodInterface(("10.244.0.7", "fd00::7"), 1450)


def test_no_more_of_them_are_told_than_an_answer_carries() -> None:
    many = [(IPV6, GLOBAL, f"fd00::{number}") for number in range(ADDRESSES_LIMIT + 1)]
    assert len(_pod_interface(Route(*many)).addresses) == ADDRESSES_LIMIT


def test_a_pod_without_its_interface_has_no_network() -> None:
    with pytest.raises(LookupError, match="has no interface eth0"):
        _pod_interface(Route())
