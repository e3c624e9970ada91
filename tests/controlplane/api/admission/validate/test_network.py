# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about interfaces and networks."""

from __future__ import annotations

from typing import Any

from tests.controlplane.api.admission.malformed import assert_refused, each, row

NIC = "domain/devices/interfaces/0"

MALFORMED = [
    row("interface without network", f"{NIC}/name", "other", "no network is called"),
    row("network without interface", "networks/0/name", "other", "no interface is called"),
    row("two networks with one name", "networks", [{"name": "default", "pod": {}}] * 2, "must be unique", at="name"),
    row(
        "two pod networks",
        "networks",
        [{"name": "default", "pod": {}}, {"name": "b", "pod": {}}],
        "at most one",
        at="networks[1].pod",
    ),
    row("interface name with a command", f"{NIC}/name", "eth0; ip link", "letters, digits"),
    row(
        "two interfaces of one network",
        "domain/devices/interfaces",
        [{"name": "default", "masquerade": {}}] * 2,
        "must be unique",
        at="interfaces[1].name",
    ),
    row("interface without a binding", f"{NIC}/masquerade", ..., "set masquerade", at="interfaces[0]"),
    row("unbuilt binding", NIC, {"name": "default", "bridge": {}}, "; use masquerade instead", at="[0].bridge"),
    row("two bindings", f"{NIC}/bridge", {}, "; remove it"),
    row("masquerade with settings", f"{NIC}/masquerade", {"a": 1}, "takes no settings"),
    row("malformed MAC address", f"{NIC}/macAddress", "gg:00:00:00:00:01", "must be a MAC address"),
    row("multicast MAC address", f"{NIC}/macAddress", "01:00:5e:00:00:01", "unicast"),
    row("MAC address of the bridge", f"{NIC}/macAddress", "02-00-00-00-00-00", "reserved"),
    row("port 0", f"{NIC}/ports", [{"port": 0}], "from 1 to 65535", at="interfaces[0].ports[0].port"),
    row("unsupported protocol", f"{NIC}/ports", [{"port": 1, "protocol": "SCTP"}], "allowed: TCP, UDP", at="protocol"),
    row(
        "two ports of one name",
        f"{NIC}/ports",
        [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}],
        "unique",
        at="interfaces[0].ports[1].name",
    ),
    row("two equal ports", f"{NIC}/ports", [{"port": 1}, {"port": 1, "protocol": "TCP"}], "already listed", at="[1]"),
    row("interface model with options", f"{NIC}/model", "e1000,mac=x", "allowed: virtio, e1000"),
    row(
        "unbuilt network",
        "networks/0",
        {"name": "default", "multus": {"networkName": "../x"}},
        "not built in this version; use pod instead",
        at="networks[0].multus",
    ),
    row("network without a source", "networks/0", {"name": "default"}, "set pod"),
    row(
        "1000 interfaces",
        "domain/devices/interfaces",
        [{"name": f"n{number}", "masquerade": {}} for number in range(1000)],
        "at most 32",
    ),
    row("network too small", "networks/0/pod/vmNetworkCIDR", "10.0.2.0/31", "from /8 to /30"),
    row("malformed network", "networks/0/pod/vmNetworkCIDR", "10.0.2", "10.0.2.0/24"),
]


@each(MALFORMED)
def test_malformed_network_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)
