# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide from a cluster's nodes where what directs them can run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ROLE = "node-role.kubernetes.io/control-plane"
_KEEPS_OFF = ("NoSchedule", "NoExecute")
_PASSING = "node.kubernetes.io/"
"""Taints of this domain come and go with a node's condition; where a Pod belongs does not change with them."""

Object = Mapping[str, Any]


def control_plane_nodes(
    nodes: Sequence[Object], selector: Mapping[str, str], tolerations: Sequence[Object]
) -> list[str]:
    """Name the control-plane nodes that a selector chooses and whose lasting taints are tolerated."""
    return sorted(one["metadata"]["name"] for one in nodes if _is_fit(one, selector, tolerations))


def kept_control_plane_nodes(
    nodes: Sequence[Object], selector: Mapping[str, str], tolerations: Sequence[Object]
) -> list[str]:
    """Name those of them that a taint keeps for the control plane. virt-handler offers the others to machines."""
    return control_plane_nodes([one for one in nodes if _is_kept(one)], selector, tolerations)


def _is_kept(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(one.get("key") == ROLE and one.get("effect") in _KEEPS_OFF for one in taints)


def _is_fit(node: Object, selector: Mapping[str, str], tolerations: Sequence[Object]) -> bool:
    labels = node["metadata"].get("labels") or {}
    taints = (node.get("spec") or {}).get("taints") or ()
    return (
        ROLE in labels
        and all(labels.get(key) == value for key, value in selector.items())
        and all(_is_tolerated(taint, tolerations) for taint in taints)
    )


def _is_tolerated(taint: Object, tolerations: Sequence[Object]) -> bool:
    if taint.get("effect") not in _KEEPS_OFF or taint["key"].startswith(_PASSING):
        return True
    return any(_tolerates(one, taint) for one in tolerations)


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    operator, key = toleration.get("operator") or "Equal", toleration.get("key") or ""
    if operator == "Exists":
        return key in ("", taint["key"])
    return operator == "Equal" and key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")
