# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of a lab. Pure; description.py chooses the index.

Only the bridge's network is visible to the host, so only this network differs between labs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from lab.errors import LabError

POD_NETWORK = IPv4Network("10.244.0.0/16")
SERVICE_NETWORK = IPv4Network("10.96.0.0/16")
KUBERNETES_SERVICE = SERVICE_NETWORK[1]
DNS_SERVICE = SERVICE_NETWORK[10]
API_PORT = 6443
MAX_LABS = 32
MAX_NODES = 100


@dataclass(frozen=True, kw_only=True)
class Addresses:
    """The addresses of the lab with this index. Nodes are numbered from 1."""

    index: int

    @property
    def network(self) -> IPv4Network:
        return IPv4Network(f"10.99.{self.index}.0/24")

    @property
    def control_plane(self) -> IPv4Address:
        """Return the bridge's address, on which the API server listens."""
        return self.network[1]

    @property
    def host(self) -> IPv4Address:
        return self.network[254]

    @property
    def host_link(self) -> str:
        return f"vlab{self.index}"

    @property
    def server(self) -> str:
        return f"https://{self.control_plane}:{API_PORT}"

    def node(self, number: int) -> IPv4Address:
        return self.network[10 + number]

    def pods(self, number: int) -> IPv4Network:
        return IPv4Network(f"10.244.{number}.0/24")

    def gateway(self, number: int) -> IPv4Address:
        """Return the node's address on the bridge of its Pods."""
        return self.pods(number)[1]


def node_name(number: int) -> str:
    return f"node-{number}"


def choose_index(*, used: Iterable[int], host_networks: Iterable[IPv4Network]) -> int:
    """Return the first index that no other lab has and whose network the host does not use."""
    used_indexes, networks = set(used), list(host_networks)
    for index in range(MAX_LABS):
        candidate = Addresses(index=index).network
        if index not in used_indexes and not any(candidate.overlaps(network) for network in networks):
            return index
    raise LabError(
        f"no free address range: all of 10.99.0.0/24 to 10.99.{MAX_LABS - 1}.0/24 are used by other labs or by this"
        " host; remove a lab with `lab down --name NAME`"
    )
