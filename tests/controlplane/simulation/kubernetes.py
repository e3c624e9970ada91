# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' own controllers: garbage collectors, taint eviction, scheduler. One thing at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator

from controlplane.api.objects.resources import NODE, POD, Key, Resource
from tests.controlplane.simulation.listing import is_listed
from tests.support.store import OVER, Json, Store

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
UNREACHABLE = "node.kubernetes.io/unreachable"


def collect_garbage(store: Store) -> bool:
    """Do one step of the garbage collector; return whether there was one."""
    store.actor = "garbage collector"
    pairs = list(_all(store))
    uids = {body["metadata"]["uid"] for _unused, _unused, body in pairs}
    for resource, key, body in pairs:
        meta = body["metadata"]
        owners = meta.get("ownerReferences") or []
        if owners and "deletionTimestamp" not in meta and all(owner["uid"] not in uids for owner in owners):
            store.delete(resource, key, uid=meta["uid"])
            return True
        if "deletionTimestamp" in meta and "orphan" in meta.get("finalizers", ()):
            _orphan(store, resource, key, meta)
            return True
    return False


def collect_pods(store: Store) -> bool:
    """Let the Pod garbage collector delete one Pod of a Node that is gone or out of service.

    As the real one, it marks the Pod Failed first; that is no report of a kubelet.
    """
    for key, pod in store.list(POD):
        node = pod["spec"].get("nodeName")
        if node is None or not _is_lost(store, node, is_going="deletionTimestamp" in pod["metadata"]):
            continue
        store.actor = "pod garbage collector"
        uid, status = pod["metadata"]["uid"], pod["status"]
        if status["phase"] not in OVER:
            disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}
            kept = [condition for condition in status.get("conditions", ()) if condition["type"] != "DisruptionTarget"]
            failed = {**status, "phase": "Failed", "conditions": [*kept, disrupted]}
            store.set_pod(key, uid, status=failed)
        else:
            store.delete(POD, key, uid=uid, grace_period_seconds=0)
        return True
    return False


def evict(store: Store, *taints: str) -> str | None:
    """Delete, gracefully, one Pod of a Node with one of these taints, which no launcher tolerates for ever."""
    for key, pod in store.list(POD):
        node = store.find(NODE, Key("", pod["spec"].get("nodeName", "")))
        if node is None or "deletionTimestamp" in pod["metadata"]:
            continue
        if any(has_taint(node, taint) for taint in taints):
            store.actor = "taint eviction"
            store.delete(POD, key)
            return f"taint eviction: {key}"
    return None


def schedule(store: Store, rng: random.Random, chance: float) -> str | None:
    """Schedule one pending Pod on a Ready Node, or report that none fits; chance: of the latter."""
    waiting = [(key, body) for key, body in store.list(POD) if "nodeName" not in body["spec"]]
    nodes = [key.name for key, node in store.list(NODE) if _takes_launchers(node)]
    if not waiting:
        return None
    key, body = rng.choice(waiting)
    store.actor = "scheduler"
    if not nodes or rng.random() < chance:
        refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
        before = store.version
        store.set_pod(key, body["metadata"]["uid"], status={"phase": "Pending", "conditions": [refused]})
        return f"scheduler: {key} does not fit" if store.version != before else None
    name = rng.choice(nodes)
    store.set_pod(key, body["metadata"]["uid"], node=name)
    return f"scheduler: {key} to {name}"


def _takes_launchers(node: Json) -> bool:
    return not node.get("spec", {}).get("taints") and is_listed(node)


def has_taint(node: Json, name: str) -> bool:
    return any(taint["key"] == name for taint in node.get("spec", {}).get("taints") or ())


def set_taint(store: Store, name: str, taint: str, *, on: bool) -> None:
    """Set or remove a taint of a Node."""
    node = store.find(NODE, Key("", name))
    if node is None:
        return
    kept = [item for item in node.get("spec", {}).get("taints") or () if item["key"] != taint]
    taints = [*kept, {"key": taint, "effect": "NoExecute"}] if on else kept
    store.patch(NODE, Key("", name), {"spec": {"taints": taints or None}})


def _is_lost(store: Store, node: str, *, is_going: bool) -> bool:
    result = store.find(NODE, Key("", node))
    return result is None or (is_going and has_taint(result, OUT_OF_SERVICE))


def _all(store: Store) -> Iterator[tuple[Resource, Key, Json]]:
    for resource in store.kinds:
        for key, body in store.list(resource):
            yield resource, key, body


def _orphan(store: Store, resource: Resource, key: Key, meta: Json) -> None:
    """Orphan the first dependent, or remove the finalizer when none is left."""
    for kind, child, body in _all(store):
        owners = body["metadata"].get("ownerReferences") or []
        kept = [item for item in owners if item["uid"] != meta["uid"]]
        if len(kept) != len(owners):
            store.patch(kind, child, {"metadata": {"ownerReferences": kept or None}})
            return
    rest = [item for item in meta["finalizers"] if item != "orphan"]
    store.patch(resource, key, {"metadata": {"finalizers": rest or None}})
