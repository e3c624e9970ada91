# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of a masqueraded guest, as text."""

from __future__ import annotations

import pytest

from controlplane.virt_node.network.masquerade import Masquerade, Port, render_rules

ALL = """\
add table ip virtops
delete table ip virtops
table ip virtops {
 chain pre { type nat hook prerouting priority -100;
  iifname "eth0" dnat to 10.0.2.2;
 }
 chain out { type nat hook output priority -100;
  ip daddr 127.0.0.1 dnat to 10.0.2.2;
 }
 chain post { type nat hook postrouting priority 100;
  ip saddr 10.0.2.2 oifname "eth0" masquerade;
  oifname "k6t-eth0" ip saddr 127.0.0.1 snat to 10.0.2.1;
 }
 chain guard { type filter hook prerouting priority -300;
  iifname "k6t-eth0" ip saddr != { 0.0.0.0, 10.0.2.2 } drop;
  iifname "k6t-eth0" ip daddr 127.0.0.0/8 drop;
 }
}
"""


def test_without_ports_all_inbound_traffic_goes_to_the_guest() -> None:
    assert render_rules(Masquerade("10.0.2.0/24")) == ALL


def test_another_network_changes_only_the_addresses() -> None:
    moved = ALL.replace("10.0.2.", "192.168.7.")
    assert render_rules(Masquerade("192.168.7.0/30")) == moved


@pytest.mark.parametrize(
    ("ports", "matches"),
    [
        ((Port("tcp", 80),), ["tcp dport { 80 } "]),
        ((Port("tcp", 443), Port("tcp", 80), Port("tcp", 80)), ["tcp dport { 80, 443 } "]),
        ((Port("udp", 53), Port("tcp", 53)), ["tcp dport { 53 } ", "udp dport { 53 } "]),
    ],
    ids=["one", "sorted, once each", "two protocols"],
)
def test_only_the_listed_ports_go_to_the_guest(ports: tuple[Port, ...], matches: list[str]) -> None:
    text = render_rules(Masquerade("10.0.2.0/24", ports))
    for match in matches:
        assert f'iifname "eth0" {match}dnat to 10.0.2.2;' in text
        assert f"ip daddr 127.0.0.1 {match}dnat to 10.0.2.2;" in text
        assert f'oifname "k6t-eth0" ip saddr 127.0.0.1 {match}snat to 10.0.2.1;' in text
    assert text.count("dnat to") == 2 * len(matches)
