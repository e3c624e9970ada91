# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the nodes that matter, and say why one takes no machine. Who may not read nodes is told by what comes of it."""

from __future__ import annotations

from typing import Any

from .._client.api import Api, Resource
from .._client.errors import BadArgument, Forbidden, VirtError
from ..kubevirt_api import names
from . import decide
from .request import Wish

NODES = Resource("v1", "nodes", "Node", None)

Object = dict[str, Any]


def place_of(api: Api, wish: Wish, vmi: Object | None) -> Object | None:
    """Return the node where a machine should be, or, where labels say it, the one where it is; None: it cannot be read.

    A node that does not exist is an error: nobody could ever be there.
    """
    if wish.target_node:
        try:
            found = api.get(NODES, wish.target_node)
        except Forbidden:
            return None
        if found is None:
            raise BadArgument(
                f"{wish.title}: target_node: the cluster has no node {wish.target_node}; look at `kubectl get nodes`"
            )
        return found
    here = decide.node_of(vmi)
    return api.get(NODES, here) if wish.node_selector and here else None


def is_unknown(api: Api, name: str) -> bool:
    """Tell whether the cluster has no such node; whoever may not read nodes cannot tell."""
    try:
        return api.get(NODES, name) is None
    except VirtError:
        return False


def check(api: Api, wish: Wish, vmi: Object, place: Object | None) -> None:
    """Raise what keeps a machine from being moved where it should be, before anything is made."""
    if wish.target_node and place is not None:
        why = trouble(place)
        if why:
            raise VirtError(f"{wish.title} cannot be moved to {wish.place}: {why}", reason=why)
    if wish.node_selector:
        labels = ",".join(f"{key}={value}" for key, value in wish.node_selector.items())
        here = decide.node_of(vmi)
        others = [one for one in api.list(NODES, labels=labels) if one["metadata"]["name"] != here]
        if others and not all(map(trouble, others)):
            return
        why = "; ".join(f"{one['metadata']['name']}: {trouble(one)}" for one in others[:5]) or "no other node has them"
        raise VirtError(f"{wish.title} cannot be moved to {wish.place}: {why}", reason=why)


def trouble(node: Object) -> str | None:
    """Say why a node takes no machine; None if it does. Pure."""
    if (node.get("spec") or {}).get("unschedulable"):
        return "it is cordoned (spec.unschedulable); uncordon it (kubectl uncordon)"
    labels = node["metadata"].get("labels") or {}
    if labels.get(names.SCHEDULABLE) != "true":
        there = labels.get(names.SCHEDULABLE)
        return (
            f"its label {names.SCHEDULABLE} is {there!r}, not 'true'; look at its virt-handler"
            if there is not None
            else f"it runs no machines (it has no label {names.SCHEDULABLE}); look at its virt-handler"
        )
    return None
