# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a VirtualMachineInstanceReplicaSet or a VirtualMachinePool is as it should be, and why it is not."""

from __future__ import annotations

from typing import Any

from .._client.api import Api
from .._client.errors import VirtError, cut
from .._client.waiter import Verdict
from ..kubevirt_api import condition_types
from ..kubevirt_api.asked import is_deleting
from ..kubevirt_api.predicates import condition, is_ready
from . import cluster, diagnose
from .cluster import Kind

Object = dict[str, Any]


def wanted(obj: Object) -> int:
    """Return how many members the set is to have."""
    replicas = (obj.get("spec") or {}).get("replicas")
    return 1 if replicas is None else int(replicas)


def is_paused(obj: Object) -> bool:
    """Tell whether nobody is to make or delete members of it."""
    return bool((obj.get("spec") or {}).get("paused"))


def judge(obj: Object, members: str = cluster.REPLICA_SET.members) -> Verdict:
    """Compare a set with what it wants: so many members, all of them ready. Pure. members: what they are, in a word."""
    if is_deleting(obj):
        return Verdict(hopeless="somebody is deleting it")
    if is_paused(obj):
        return Verdict(hopeless=f"it is paused, so nothing makes or deletes its {members} (set paused=false)")
    status = obj.get("status") or {}
    has, ready = status.get("replicas") or 0, status.get("readyReplicas") or 0
    if has == ready == wanted(obj):
        return Verdict(done=True)
    return Verdict(missing=f"{ready} of {wanted(obj)} {members} are ready, {has} are there")


def explain(api: Api, obj: Object | None, namespace: str, kind: Kind = cluster.REPLICA_SET) -> dict[str, Any]:
    """Return reason, conditions and events: what the set could not do, else what is wrong with a member of it."""
    status = (obj or {}).get("status") or {}
    facts: dict[str, Any] = {"conditions": status.get("conditions") or [], "events": []}
    failure = condition(obj or {}, condition_types.REPLICA_FAILURE)
    if obj is None:
        return {"reason": f"the {kind.name} is not there", **facts}
    leaving = diagnose.held(obj)
    if leaving is not None:
        return {"reason": leaving, **facts}
    if failure is not None and failure.get("status") == "True":
        told = f"{failure.get('reason')}: {failure.get('message') or ''}"
        return {"reason": cut(told, diagnose.MESSAGE_LIMIT), **facts}
    reason = judge(obj, kind.members).missing
    trouble = _first_trouble(api, obj, namespace, kind)
    if trouble is not None:
        name, told = trouble
        reason, facts["events"] = f"{reason}; {name}: {told['reason']}", told["events"]
    return {"reason": reason, **facts}


def members(api: Api, obj: Object, namespace: str, kind: Kind = cluster.REPLICA_SET) -> list[Object]:
    """Return what the set owns: instances, or a pool's machines."""
    selector = (obj.get("status") or {}).get("labelSelector")
    uid = obj["metadata"].get("uid")
    return [
        one
        for one in api.list(member_kind(kind).resource(namespace), labels=selector)
        if any(owner.get("uid") == uid for owner in one["metadata"].get("ownerReferences") or ())
    ]


def member_kind(kind: Kind) -> Kind:
    """Return what a set of this kind keeps."""
    return cluster.VM if kind is cluster.POOL else cluster.VMI


def _first_trouble(api: Api, obj: Object, namespace: str, kind: Kind) -> tuple[str, dict[str, Any]] | None:
    try:
        found = members(api, obj, namespace, kind)
    except VirtError:
        return None  # who may not read them gets what the set tells
    for one in found:
        if not is_ready(one):
            name = one["metadata"]["name"]
            return name, diagnose.explain(api, one, namespace, name, member_kind(kind).name)
    return None
