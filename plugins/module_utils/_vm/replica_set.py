# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a VirtualMachineInstanceReplicaSet is as it should be, and why it is not."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import VirtError, cut
from .._client.waiter import Verdict
from ..kubevirt_api import condition_types
from ..kubevirt_api.asked import is_deleting
from ..kubevirt_api.predicates import condition, is_ready
from . import cluster, diagnose

Object = dict[str, Any]


def wanted(obj: Object) -> int:
    """Return how many instances the set is to have."""
    replicas = (obj.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def is_paused(obj: Object) -> bool:
    """Tell whether nobody is to make or delete instances of it."""
    return bool((obj.get("spec") or {}).get("paused"))


def judge(obj: Object) -> Verdict:
    """Compare a set with what it wants: so many instances, all of them ready. Pure."""
    if is_deleting(obj):
        return Verdict(hopeless="somebody is deleting it")
    if is_paused(obj):
        return Verdict(hopeless="it is paused, so nothing makes or deletes its instances (set paused=false)")
    status = obj.get("status") or {}
    has, ready = status.get("replicas") or 0, status.get("readyReplicas") or 0
    if has == ready == wanted(obj):
        return Verdict(done=True)
    return Verdict(missing=f"{ready} of {wanted(obj)} instances are ready, {has} are there")


def explain(api: Api, obj: Object | None, namespace: str) -> dict[str, Any]:
    """Return reason, conditions and events: what the set could not do, else what is wrong with an instance of it."""
    status = (obj or {}).get("status") or {}
    facts: dict[str, Any] = {"conditions": status.get("conditions") or [], "events": []}
    failure = condition(obj or {}, condition_types.REPLICA_FAILURE)
    if obj is None:
        return {"reason": f"the {cluster.REPLICA_SET.name} is not there", **facts}
    leaving = diagnose.held(obj)
    if leaving is not None:
        return {"reason": leaving, **facts}
    if failure is not None and failure.get("status") == "True":
        told = f"{failure.get('reason')}: {failure.get('message') or ''}"
        return {"reason": cut(told, diagnose.MESSAGE_LIMIT), **facts}
    reason = judge(obj).missing
    trouble = _first_trouble(api, obj, namespace)
    if trouble is not None:
        name, told = trouble
        reason, facts["events"] = f"{reason}; {name}: {told['reason']}", told["events"]
    return {"reason": reason, **facts}


def instances(api: Api, obj: Object, namespace: str) -> list[Object]:
    """Return the instances that the set owns."""
    selector = (obj.get("status") or {}).get("labelSelector")
    uid = obj["metadata"].get("uid")
    return [
        vmi
        for vmi in api.list(cluster.instances(namespace), labels=selector)
        if any(owner.get("uid") == uid for owner in vmi["metadata"].get("ownerReferences") or ())
    ]


def _first_trouble(api: Api, obj: Object, namespace: str) -> tuple[str, dict[str, Any]] | None:
    try:
        found = instances(api, obj, namespace)
    except VirtError:
        return None  # who may not read them gets what the set tells
    for vmi in found:
        if not is_ready(vmi):
            name = vmi["metadata"]["name"]
            return name, diagnose.explain(api, vmi, namespace, name, cluster.VMI.name)
    return None
