# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-launcher's DHCP server: a guest's packets are hostile."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_PACKET = "controlplane/virt_launcher/dhcp/packet.py"
_SERVER = "controlplane/virt_launcher/dhcp/server.py"
_RESOLVER = "controlplane/virt_launcher/dhcp/resolver.py"
_BY_DHCP = ("tests/controlplane/virt_launcher/dhcp",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_PACKET,
        line="    if len(packet) < _HEADER.size:\n        return None\n",
        without="",
        because="A packet that is too short must not break the server.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="client[:6] == lease.mac and",
        without="True and",
        because="Only our guest gets the lease.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="    if not is_ours or cookie != _COOKIE:",
        without="    if not is_ours:",
        because="What is no DHCP must not be answered.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="        if at + 1 >= len(data) or at + 2 + data[at + 1] > len(data):\n            break\n",
        without="        if at + 1 >= len(data):\n            break\n",
        because="An option must not be read beyond the packet.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="        if at + 1 >= len(data) or at + 2 + data[at + 1] > len(data):\n            break\n",
        without="",
        because="An option without a length must not break the server.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="or options.get(54, lease.router) != lease.router:",
        without="or False:",
        because="A question to another server is not ours to answer.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="    return _ACK if wanted == lease.address else _NAK",
        without="    return _ACK",
        because="A guest that asks for another address must be told no.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="if data and len(data) <= 255 and len(made)",
        without="if data and len(made)",
        because="An option holds 255 bytes: a longer one would break the packet.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="and len(made) + 2 + len(data) <= room:",
        without="and True:",
        because="A packet larger than a guest takes is none.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="        if len(made) + len(encoded) > 255:\n            break\n",
        without="",
        because="An option holds 255 bytes: as many search domains as fit.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_PACKET,
        line="        if not all(0 < len(label) < 64 for label in labels):\n            continue\n",
        without="",
        because="A name that is none must not break the encoding.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_SERVER,
        line="        if self._left < 1:\n            return False\n",
        without="",
        because="A guest that floods the server must not take the launcher's time.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_SERVER,
        line="min(self._per_second, self._left",
        without="max(self._per_second, self._left",
        because="A quiet hour must not be saved up for a flood.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_RESOLVER,
        line="[] if address[0] == _LOOPBACK else [address]",
        without="[address]",
        because="The Pod's own loopback is no server that a guest reaches.",
        tests=_BY_DHCP,
    ),
    Guard(
        file=_RESOLVER,
        line="    return Resolver(tuple(servers[:_SERVERS]),",
        without="    return Resolver(tuple(servers),",
        because="A resolv.conf of any length must not fill the packet.",
        tests=_BY_DHCP,
    ),
)
