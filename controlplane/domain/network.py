# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses of a masqueraded guest network. Arithmetic only; no interface is changed here."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from controlplane.guest_network import is_usable

DEFAULT_CIDR = "10.0.2.0/24"


@dataclass(frozen=True, slots=True)
class MasqueradeNetwork:
    """The network between a launcher Pod and its guest. It may be the same in every Pod, because it never leaves
    one."""

    network: IPv4Network

    @property
    def gateway(self) -> IPv4Address:
        """The bridge's address: the first host."""
        return self.network[1]

    @property
    def guest(self) -> IPv4Address:
        """The guest's address: the second host."""
        return self.network[2]

    @property
    def gateway_interface(self) -> IPv4Interface:
        """The bridge's address with prefix length, e.g. 10.0.2.1/24."""
        return IPv4Interface((self.gateway, self.network.prefixlen))

    @property
    def guest_interface(self) -> IPv4Interface:
        """The guest's address with prefix length, e.g. 10.0.2.2/24."""
        return IPv4Interface((self.guest, self.network.prefixlen))


def masquerade_network(cidr: str | None) -> MasqueradeNetwork:
    """Parse a network's vmNetworkCIDR (None or "": 10.0.2.0/24). ValueError says what is wrong with it.

    Host bits are ignored, as upstream does. A prefix longer than /30 has no room for gateway and guest. The rules are
    admission's; they are checked again here, because virt-node gets the network from virt-handler, which it does not
    trust.
    """
    try:
        network = IPv4Network(cidr or DEFAULT_CIDR, strict=False)
    except ValueError as error:
        raise ValueError(f"vmNetworkCIDR {cidr!r} is not an IPv4 network in CIDR notation") from error
    if network.prefixlen > 30:
        raise ValueError(f"vmNetworkCIDR {cidr!r} is too small: use /30 or a shorter prefix")
    if not is_usable(network):
        raise ValueError(f"vmNetworkCIDR {cidr!r} cannot be a guest's: use a unicast network of /8 or a longer prefix")
    return MasqueradeNetwork(network)
