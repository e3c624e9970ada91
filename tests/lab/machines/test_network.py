# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scripts for `ip` and `nft`."""

from __future__ import annotations

from lab.machines.addresses import Addresses
from lab.machines.network import (
    control_plane_script,
    host_link_script,
    masquerade_rules,
    node_link_script,
    node_script,
    pod_route_script,
)

PLAN = Addresses(index=1)


def test_the_host_gets_one_link_with_one_address_and_no_route() -> None:
    script = host_link_script(PLAN, 42)
    assert script[0].startswith("link add vlab1 ")
    assert script[0].endswith("peer name host netns 42")
    assert [line for line in script if line.startswith("addr")] == ["addr add 10.99.1.254/24 dev vlab1"]
    assert not [line for line in script if line.startswith("route")]


def test_the_bridge_has_the_api_servers_address() -> None:
    assert "addr add 10.99.1.1/24 dev lab0" in control_plane_script(PLAN)


def test_a_node_link_is_named_after_the_node_outside_and_eth0_inside() -> None:
    assert node_link_script(2, 77)[0] == "link add node-2 mtu 1500 type veth peer name eth0 netns 77"
    assert "addr add 10.99.1.12/24 dev eth0" in node_script(PLAN, 2)


def test_routes_to_pods_lead_through_their_nodes() -> None:
    assert pod_route_script(PLAN, [1, 3]) == [
        "route replace 10.244.1.0/24 via 10.99.1.11",
        "route replace 10.244.3.0/24 via 10.99.1.13",
    ]


def test_traffic_to_pods_and_services_is_not_masqueraded() -> None:
    rules = masquerade_rules(PLAN, 1)
    assert "ip saddr 10.244.1.0/24 ip daddr != { 10.244.0.0/16, 10.96.0.0/16 } masquerade" in rules
