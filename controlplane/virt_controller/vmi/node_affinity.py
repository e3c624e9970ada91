# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node affinity of a launcher Pod, added to the user's. Pure.

A preference that outweighs the user's avoids nodes on which the run has failed: it never makes a machine unschedulable.
Nodes that are quarantined when the Pod is created are excluded by name. A required label is no alternative: a
restarting kubelet checks it again, and ends Pods that do not match any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST_WEIGHT = 100
"""Kubernetes' limit for one preference. Several add up."""
MOST_PREFERENCES = 10
"""Limit of our preferences. A thousand of the user's own may outweigh them."""


def avoid_nodes(affinity: Json | None, *, failed_on: Iterable[str], excluded_nodes: Iterable[str]) -> Json | None:
    """Return the affinity with these nodes avoided or excluded. affinity: the user's; it is not changed."""
    failed, excluded = sorted(set(failed_on)), sorted(set(excluded_nodes))
    if not failed and not excluded:
        return affinity
    nodes: Json = dict((affinity or {}).get("nodeAffinity") or {})
    if failed:
        user_terms = list(nodes.get(PREFERRED) or [])
        nodes[PREFERRED] = [*user_terms, *_preferences(user_terms, failed)]
    if excluded:
        nodes[REQUIRED] = {"nodeSelectorTerms": _without(nodes.get(REQUIRED) or {}, excluded)}
    return {**(affinity or {}), "nodeAffinity": nodes}


def avoid_pods(affinity: Json | None, labels: dict[str, str]) -> Json:
    """Return the affinity with nodes excluded that run a Pod with these labels. affinity: is not changed."""
    pods: Json = dict((affinity or {}).get("podAntiAffinity") or {})
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    pods[REQUIRED] = [*(pods.get(REQUIRED) or []), term]
    return {**(affinity or {}), "podAntiAffinity": pods}


def _preferences(user_terms: Sequence[Any], names: Sequence[str]) -> list[Json]:
    """Repeat our preference until it outweighs the sum of the user's."""
    weights = (term.get("weight") for term in user_terms if isinstance(term, dict))
    total = sum(weight for weight in weights if isinstance(weight, int))
    times = min(total // MOST_WEIGHT + 1, MOST_PREFERENCES)
    return [{"weight": MOST_WEIGHT, "preference": {"matchFields": _not_on(names)}}] * times


def _without(required: Json, names: Sequence[str]) -> list[Json]:
    """Exclude nodes from every term, since one match is enough. An empty term matches no node, and stays empty."""
    terms = required.get("nodeSelectorTerms") or []
    if not terms:
        return [{"matchFields": _not_on(names)}]
    return [
        {**term, "matchFields": [*(term.get("matchFields") or []), *_not_on(names)]} if _selects(term) else term
        for term in terms
    ]


def _selects(term: Any) -> bool:
    return isinstance(term, dict) and bool(term.get("matchFields") or term.get("matchExpressions"))


def _not_on(names: Sequence[str]) -> list[Json]:
    """Exclude nodes by name; the API server accepts one name per expression."""
    return [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in names]
