# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a Pod's own interface. Changes in its namespace: test_netns."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.links.node.messages import ADDRESSES_LIMIT, PodInterface
from controlplane.virt_node.network.links import _addresses, _links, _pod_interface

GLOBAL, LINK, IPV4, IPV6 = 0, 253, 2, 10


class Route:
    """A namespace with these addresses (family, scope, text) on eth0. Without addresses it has no eth0."""

    def __init__(self, *addresses: tuple[int, int, str]) -> None:
        self._addresses = addresses

    def get_links(self) -> list[dict[str, Any]]:
        attributes = [("IFLA_IFNAME", "eth0"), ("IFLA_MTU", 1450)]
        return [{"index": 7, "flags": 1, "attrs": attributes}] if self._addresses else []

    def get_addr(self) -> list[dict[str, Any]]:
        return [
            {"index": index, "family": family, "scope": scope, "attrs": [("IFA_ADDRESS", text)]}
            for index, (family, scope, text) in [
                (1, (IPV4, 254, "127.0.0.1")),
                *((7, address) for address in self._addresses),
            ]
        ]


def seen(*addresses: tuple[int, int, str]) -> PodInterface:
    route = Route(*addresses)
    return _pod_interface(_links(route), _addresses(route))


def test_a_pod_has_its_global_addresses_ipv4_first() -> None:
    interface = seen((IPV6, LINK, "fe80::1"), (IPV6, GLOBAL, "fd00::7"), (IPV4, GLOBAL, "10.244.0.7"))
    assert interface == PodInterface(("10.244.0.7", "fd00::7"), 1450)


def test_the_number_of_addresses_is_limited() -> None:
    many = [(IPV6, GLOBAL, f"fd00::{number}") for number in range(ADDRESSES_LIMIT + 1)]
    assert len(seen(*many).addresses) == ADDRESSES_LIMIT


def test_a_pod_without_its_interface_has_no_network() -> None:
    with pytest.raises(LookupError, match="has no interface eth0"):
        seen()
