# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which control-plane nodes can run the components. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..kubevirt_api.names import CONTROL_PLANE_ROLE, RESERVING_TAINTS

_BLOCKING = ("NoSchedule", "NoExecute")
_TEMPORARY = "node.kubernetes.io/"
"""Taints of this domain follow the condition of a node and do not decide where a Pod belongs."""

Object = Mapping[str, Any]


def control_plane_nodes(
    nodes: Sequence[Object], selector: Mapping[str, str], tolerations: Sequence[Object]
) -> list[str]:
    """Return the control-plane nodes that a selector chooses and whose lasting taints are tolerated."""
    return sorted(node["metadata"]["name"] for node in nodes if _is_fit(node, selector, tolerations))


def kept_control_plane_nodes(
    nodes: Sequence[Object], selector: Mapping[str, str], tolerations: Sequence[Object]
) -> list[str]:
    """Return the control-plane nodes that a taint reserves. virt-handler offers the others to machines."""
    return control_plane_nodes([node for node in nodes if _is_reserved(node)], selector, tolerations)


def _is_reserved(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") in RESERVING_TAINTS and taint.get("effect") in _BLOCKING for taint in taints)


def _is_fit(node: Object, selector: Mapping[str, str], tolerations: Sequence[Object]) -> bool:
    labels = node["metadata"].get("labels") or {}
    taints = (node.get("spec") or {}).get("taints") or ()
    return (
        CONTROL_PLANE_ROLE in labels
        and all(labels.get(key) == value for key, value in selector.items())
        and all(_is_tolerated(taint, tolerations) for taint in taints)
    )


def _is_tolerated(taint: Object, tolerations: Sequence[Object]) -> bool:
    if taint.get("effect") not in _BLOCKING or taint["key"].startswith(_TEMPORARY):
        return True
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    operator, key = toleration.get("operator") or "Equal", toleration.get("key") or ""
    if operator == "Exists":
        return key in ("", taint["key"])
    return operator == "Equal" and key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")
