# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The address to which the source of a migration connects. The source checks the address that the target has written.

Without the checks a captured node could make another node's virt-handler connect to any service: on that node itself,
or behind a host name. So the address must be a literal IP address of another host. Without a migration network it must
be the address that the target's virt-handler publishes on its Node.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from controlplane.api.objects.migration_state import MigrationState
from controlplane.links.handler import ADDRESS
from controlplane.tls.contexts import Address, can_be_another_host
from controlplane.virt_handler.launchers.ports import Failed

Node = Mapping[str, Any]


def address_of(migration: MigrationState, source: Node, target: Node, *, has_network: bool) -> str:
    """Return the address to connect to. Failed. has_network: there is a migration network."""
    address = migration.target_node_address
    if because := refuse_address(address, source, target, has_network=has_network):
        raise Failed(f"node {migration.target_node} published address {address[:64]} for the migration: {because}")
    return address


def refuse_address(text: str, source: Node, target: Node, *, has_network: bool) -> str:
    """Return why the address is refused; "" when it is accepted."""
    address = _read(text)
    if address is None:
        return "it is not an IP address"
    if not can_be_another_host(address):
        return "it is not the address of another host"
    if address in _addresses(source) or address == _published(source):
        return "it is this node's own address"
    if not has_network and address != _published(target):
        return "its virt-handler has published another address on the Node"
    return ""


def _read(text: str) -> Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _published(node: Node) -> Address | None:
    """Return the address that a node's virt-handler publishes on its Node."""
    annotations = node.get("metadata", {}).get("annotations") or {}
    host = str(annotations.get(ADDRESS, "")).rpartition(":")[0]
    return _read(host.removeprefix("[").removesuffix("]"))


def _addresses(node: Node) -> set[Address | None]:
    listed = node.get("status", {}).get("addresses") or ()
    return {_read(str(address.get("address", ""))) for address in listed}
