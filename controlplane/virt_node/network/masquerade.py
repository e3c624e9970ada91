# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nftables rules of a masqueraded guest, as text. nft.py applies them.

One transaction replaces the whole table, so it is idempotent, and a table is never incomplete. Values are addresses and
integers, never a user's text. Priorities are numbers, because some versions of libnftables lack names for some hooks.
"""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.domain import layout
from controlplane.links.node.messages import Masquerade, Port

TABLE = "virtops"


def render_rules(wanted: Masquerade) -> str:
    """Return the transaction."""
    network = wanted.network
    guest, gateway = network.guest, network.gateway
    chains = {
        # From outside the Pod to the guest.
        "pre { type nat hook prerouting priority -100;": [
            f'iifname "{layout.POD_INTERFACE}" {match}dnat to {guest};' for match in _matches(wanted.ports)
        ],
        # From the Pod's own containers (a probe, kubectl port-forward) by way of localhost.
        "out { type nat hook output priority -100;": [
            f"ip daddr 127.0.0.1 {match}dnat to {guest};" for match in _matches(wanted.ports)
        ],
        "post { type nat hook postrouting priority 100;": [
            f'ip saddr {guest} oifname "{layout.POD_INTERFACE}" masquerade;',
            *(
                f'oifname "{layout.BRIDGE}" ip saddr 127.0.0.1 {match}snat to {gateway};'
                for match in _matches(wanted.ports)
            ),
        ],
        # A guest may send only from its own address, or request one by DHCP: it cannot spoof another address.
        # route_localnet on the bridge is for the Pod's own probes: no packet of the guest may reach the Pod's
        # localhost. This runs before connection tracking, which restores the local address in replies to those probes.
        "guard { type filter hook prerouting priority -300;": [
            f'iifname "{layout.BRIDGE}" ip saddr != {{ 0.0.0.0, {guest} }} drop;',
            f'iifname "{layout.BRIDGE}" ip daddr 127.0.0.0/8 drop;',
        ],
    }
    lines = [f"add table ip {TABLE}", f"delete table ip {TABLE}", f"table ip {TABLE} {{"]
    for head, rules in chains.items():
        lines += [f" chain {head}", *(f"  {rule}" for rule in rules), " }"]
    return "\n".join([*lines, "}", ""])


def _matches(ports: Sequence[Port]) -> list[str]:
    """Return one match per protocol for the listed ports, or one empty match for everything."""
    if not ports:
        return [""]
    by_protocol: dict[str, set[int]] = {}
    for port in ports:
        by_protocol.setdefault(port.protocol, set()).add(port.number)
    return [
        f"{protocol} dport {{ {', '.join(str(number) for number in sorted(numbers))} }} "
        for protocol, numbers in sorted(by_protocol.items())
    ]
