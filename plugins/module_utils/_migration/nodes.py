# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The target node of a migration, and why a node takes no machine. Unreadable nodes are not checked."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import BadArgument, Forbidden, VirtError
from .._vm import kinds
from ..kubevirt_api import names
from . import decide
from .request import MigrationRequest

Object = dict[str, Any]


def place_of(api: Api, request: MigrationRequest, vmi: Object | None) -> Object | None:
    """Return the target node; with a node selector, the current node; None if it cannot be read.

    Raises BadArgument if the target does not exist.
    """
    if request.target_node:
        try:
            node = api.get(kinds.nodes(), request.target_node)
        except Forbidden:
            return None
        if node is None:
            raise BadArgument(
                f"{request.title}: target_node: the cluster has no node {request.target_node}; look at"
                " `kubectl get nodes`"
            )
        return node
    current = decide.node_of(vmi)
    return api.get(kinds.nodes(), current) if request.node_selector and current else None


def is_unknown(api: Api, name: str) -> bool:
    """Tell whether the cluster has no such node. False where nodes cannot be read."""
    try:
        return api.get(kinds.nodes(), name) is None
    except VirtError:
        return False


def check(api: Api, request: MigrationRequest, vmi: Object, target_node: Object | None) -> None:
    """Raise VirtError if no target node takes the machine, before a migration is created."""
    if request.target_node and target_node is not None:
        reason = trouble(target_node)
        if reason:
            raise VirtError(f"{request.title} cannot be migrated to {request.place}: {reason}", reason=reason)
    if request.node_selector:
        labels = ",".join(f"{key}={value}" for key, value in request.node_selector.items())
        current = decide.node_of(vmi)
        others = [node for node in api.list(kinds.nodes(), labels=labels) if node["metadata"]["name"] != current]
        if others and not all(map(trouble, others)):
            return
        reason = (
            "; ".join(f"{node['metadata']['name']}: {trouble(node)}" for node in others[:5]) or "no other node has them"
        )
        raise VirtError(f"{request.title} cannot be migrated to {request.place}: {reason}", reason=reason)


def trouble(node: Object) -> str | None:
    """Return why a node takes no machine, None if it does. Pure."""
    if (node.get("spec") or {}).get("unschedulable"):
        return "it is cordoned (spec.unschedulable); uncordon it (kubectl uncordon)"
    labels = node["metadata"].get("labels") or {}
    if labels.get(names.SCHEDULABLE) != "true":
        label = labels.get(names.SCHEDULABLE)
        return (
            f"its label {names.SCHEDULABLE} is {label!r}, not 'true'; look at its virt-handler"
            if label is not None
            else f"it runs no machines (it has no label {names.SCHEDULABLE}); look at its virt-handler"
        )
    return None
