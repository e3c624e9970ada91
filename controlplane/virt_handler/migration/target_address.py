# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the source of a migration calls: what the target has written is taken only as far as the source can know it.

A captured node would have another node's virt-handler call whom it likes: that node itself, what listens beside it, or
whoever a name means there. So it is the literal address of another host, and, unless migrations have a network of their
own, the one by which the target's virt-handler is known on its Node.
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


def address_of(moving: MigrationState, source: Node, target: Node, *, has_network: bool) -> str:
    """Return the address to call. Failed. has_network: migrations have one of their own."""
    said = moving.target_node_address
    if because := refuse_address(said, source, target, has_network=has_network):
        raise Failed(f"node {moving.target_node} says that it listens at {said[:64]}: {because}")
    return said


def refuse_address(said: str, source: Node, target: Node, *, has_network: bool) -> str:
    """Say why the target is not called there; "" when it is."""
    address = _read(said)
    if address is None:
        return "that is no IP address"
    if not can_be_another_host(address):
        return "that is no other host's address"
    if address in _addresses(source) or address == _known(source):
        return "that is this node's own address"
    if not has_network and address != _known(target):
        return "its virt-handler is not known by that address"
    return ""


def _read(text: str) -> Address | None:
    try:
        return None if "%" in text else ipaddress.ip_address(text)
    except ValueError:
        return None


def _known(node: Node) -> Address | None:
    """Return where a node's virt-handler is, by its own announcement."""
    annotations = node.get("metadata", {}).get("annotations") or {}
    host = str(annotations.get(ADDRESS, "")).rpartition(":")[0]
    return _read(host.removeprefix("[").removesuffix("]"))


def _addresses(node: Node) -> set[Address | None]:
    listed = node.get("status", {}).get("addresses") or ()
    return {_read(str(one.get("address", ""))) for one in listed}
