# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address on which a node listens for migrations: on a migration network if it has one, else the Pod's address.

If a migration network is configured but missing, the node uses no other network: an administrator who separates guests'
memory from other traffic would not notice that.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from ipaddress import IPv6Address
from pathlib import Path

from controlplane.virt_handler.incoming.ports import NoMigrationAddress

INTERFACE = "migration0"
"""The interface of a migration network in virt-handler's Pod (upstream's name)."""
_SIOCGIFADDR = 0x8915
_NAME_BYTES = 16
_GLOBAL = 0x00
"""Global scope in /proc/net/if_inet6: not link-local, site-local or host-local."""


def waiting_address(pod_address: str, network: str = "", *, interface: str = INTERFACE) -> str:
    """Return the address to listen on. network: the configured one, or "". NoMigrationAddress when it is missing.

    The address is read at each call, because an interface may get it late.
    """
    address = _ipv4(interface) or _ipv6(interface)
    if not address and network:
        raise NoMigrationAddress(
            f"virt-handler's Pod has no address on {interface}, the interface for migrations "
            f"(control_plane_migration_network: {network}): "
            "check that Multus runs on this node, and that the NetworkAttachmentDefinition exists and assigns addresses"
        )
    return address or pod_address


def has_network(network: str = "", *, interface: str = INTERFACE) -> bool:
    """Tell whether there is a migration network. network: the configured one, or ""."""
    return bool(network or _ipv4(interface) or _ipv6(interface))


def _ipv4(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as query:
        request = struct.pack("16s24x", interface.encode()[: _NAME_BYTES - 1])
        try:
            response = fcntl.ioctl(query, _SIOCGIFADDR, request)
        except OSError:  # no such interface, or none of its addresses is of this family
            return ""
    return socket.inet_ntoa(response[20:24])


def _ipv6(interface: str) -> str:
    try:
        table = Path("/proc/net/if_inet6").read_text(encoding="ascii")
    except OSError:  # a node without IPv6
        return ""
    for line in table.splitlines():
        address, _index, _length, scope, _flags, name = line.split()
        if name == interface and int(scope, 16) == _GLOBAL:
            return str(IPv6Address(bytes.fromhex(address)))
    return ""
