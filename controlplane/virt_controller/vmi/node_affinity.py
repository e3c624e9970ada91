# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a launcher Pod had better not go, or must not go: its node affinity, beside what the user asks for. Pure.

Nodes on which the run has failed are avoided where another one fits: a preference that outweighs all of the user's, and
never makes a machine unschedulable. Quarantined nodes are left out by name, as they are when the Pod is made: a
requirement of a label would be asked again when a kubelet restarts, which ends Pods that do not fit it any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Json = dict[str, Any]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
MOST_WEIGHT = 100
"""Of one preference; several add up."""
MOST_PREFERENCES = 10
"""Of ours: whoever has a thousand of their own may be heard instead."""


def avoid_nodes(affinity: Json | None, *, failed_on: Iterable[str], kept_from: Iterable[str]) -> Json | None:
    """Return the affinity of a Pod. affinity: the user's, as in a Pod, which is not changed."""
    failed, kept = sorted(set(failed_on)), sorted(set(kept_from))
    if not failed and not kept:
        return affinity
    nodes: Json = dict((affinity or {}).get("nodeAffinity") or {})
    if failed:
        theirs = list(nodes.get(PREFERRED) or [])
        nodes[PREFERRED] = [*theirs, *_preferences(theirs, failed)]
    if kept:
        nodes[REQUIRED] = {"nodeSelectorTerms": _without(nodes.get(REQUIRED) or {}, kept)}
    return {**(affinity or {}), "nodeAffinity": nodes}


def avoid_pods(affinity: Json | None, labels: dict[str, str]) -> Json:
    """Return the affinity of a Pod that must not be where a Pod of these labels is. affinity: is not changed."""
    pods: Json = dict((affinity or {}).get("podAntiAffinity") or {})
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    pods[REQUIRED] = [*(pods.get(REQUIRED) or []), term]
    return {**(affinity or {}), "podAntiAffinity": pods}


def _preferences(theirs: Sequence[Any], names: Sequence[str]) -> list[Json]:
    """Say it often enough to outweigh what the user prefers, all of it together."""
    weights = (term.get("weight") for term in theirs if isinstance(term, dict))
    whole = sum(weight for weight in weights if isinstance(weight, int))
    times = min(whole // MOST_WEIGHT + 1, MOST_PREFERENCES)
    return [{"weight": MOST_WEIGHT, "preference": {"matchFields": _not_these(names)}}] * times


def _without(required: Json, names: Sequence[str]) -> list[Json]:
    """Leave nodes out of every term: one is enough for a Pod. An empty term fits no node, and must go on to."""
    terms = required.get("nodeSelectorTerms") or []
    if not terms:
        return [{"matchFields": _not_these(names)}]
    return [
        {**term, "matchFields": [*(term.get("matchFields") or []), *_not_these(names)]} if _selects(term) else term
        for term in terms
    ]


def _selects(term: Any) -> bool:
    return isinstance(term, dict) and bool(term.get("matchFields") or term.get("matchExpressions"))


def _not_these(names: Sequence[str]) -> list[Json]:
    """Name nodes that do not fit; the API server takes one name for each."""
    return [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in names]
