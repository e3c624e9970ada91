# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""At which address a node waits for migrations: on a network of their own where it has one, else at its Pod's.

Where a network was chosen and is not there, nothing is sent over another one: who keeps guests' memory apart from
everything else would not learn that it is not.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from ipaddress import IPv6Address
from pathlib import Path

from controlplane.virt_handler.incoming.ports import NoMigrationAddress

INTERFACE = "migration0"
"""What such a network's is called in virt-handler's Pod (upstream's name)."""
_SIOCGIFADDR = 0x8915
_NAME_BYTES = 16
_GLOBAL = 0x00
"""Scope of an address that is not the link's, the site's or the host's own (/proc/net/if_inet6)."""


def waiting_address(pod_address: str, network: str = "", *, interface: str = INTERFACE) -> str:
    """Return where to listen. network: the one that was chosen, or "". NoPlace when it is not there.

    It is asked each time: an address that came late is found.
    """
    found = _ipv4(interface) or _ipv6(interface)
    if not found and network:
        raise NoMigrationAddress(
            f"virt-handler's Pod has no address on {interface}, by which migrations are to come "
            f"(control_plane_migration_network: {network}): "
            "see that Multus runs on this node, and that the NetworkAttachmentDefinition is there and gives addresses"
        )
    return found or pod_address


def has_network(network: str = "", *, interface: str = INTERFACE) -> bool:
    """Tell whether migrations have a network of their own. network: the one that was chosen, or ""."""
    return bool(network or _ipv4(interface) or _ipv6(interface))


def _ipv4(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as asking:
        request = struct.pack("16s24x", interface.encode()[: _NAME_BYTES - 1])
        try:
            answer = fcntl.ioctl(asking, _SIOCGIFADDR, request)
        except OSError:  # no such interface, or none of its addresses is of this family
            return ""
    return socket.inet_ntoa(answer[20:24])


def _ipv6(interface: str) -> str:
    try:
        known = Path("/proc/net/if_inet6").read_text(encoding="ascii")
    except OSError:  # a node without IPv6
        return ""
    for line in known.splitlines():
        address, _index, _length, scope, _flags, name = line.split()
        if name == interface and int(scope, 16) == _GLOBAL:
            return str(IPv6Address(bytes.fromhex(address)))
    return ""
