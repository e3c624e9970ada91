# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VirtualMachineInstanceReplicaSet or VirtualMachinePool has its members, and why not."""

from __future__ import annotations

from typing import Any

from ..._client.api import Api
from ..._client.errors import REASON_LIMIT, VirtError, cut
from ..._client.waiter import Verdict
from ...kubevirt_api import condition_types
from ...kubevirt_api.desired import is_deleting
from ...kubevirt_api.predicates import condition, is_ready
from .. import kinds
from ..kinds import Kind
from ..members import member_kind, members
from ..write import removal
from . import diagnose
from .last_lines import LastLines

Object = dict[str, Any]


def replicas(obj: Object) -> int:
    """Return how many members the set should have."""
    count = (obj.get("spec") or {}).get("replicas")
    return 1 if count is None else int(count)


def is_paused(obj: Object) -> bool:
    """Tell whether the control plane neither creates nor deletes its members."""
    return bool((obj.get("spec") or {}).get("paused"))


def judge(obj: Object, noun: str = kinds.REPLICA_SET.members) -> Verdict:
    """Tell whether a set has all its members and all are ready. Pure. noun: the word for members in messages."""
    if is_deleting(obj):
        return Verdict(hopeless="somebody is deleting it")
    if is_paused(obj):
        return Verdict(hopeless=f"it is paused, so no {noun} are created or deleted (set paused=false)")
    status = obj.get("status") or {}
    count, ready = status.get("replicas") or 0, status.get("readyReplicas") or 0
    if count == ready == replicas(obj):  # count: surplus members may still run
        return Verdict(done=True)
    return Verdict(missing=f"{ready} of {replicas(obj)} {noun} are ready, {count} exist")


def explain(
    api: Api,
    obj: Object | None,
    namespace: str,
    kind: Kind = kinds.REPLICA_SET,
    *,
    last_lines: LastLines | None = None,
) -> dict[str, Any]:
    """Return reason, conditions, events and console: of a failure of the set, else of the first unready member."""
    status = (obj or {}).get("status") or {}
    facts: dict[str, Any] = {"conditions": status.get("conditions") or [], "events": []}
    failure = condition(obj or {}, condition_types.REPLICA_FAILURE)
    if obj is None:
        return {"reason": f"the {kind.name} does not exist", **facts}
    deletion = removal.deletion(obj)
    if deletion is not None:
        return {"reason": deletion, **facts}
    if failure is not None and failure.get("status") == "True":
        text = f"{failure.get('reason')}: {failure.get('message') or ''}"
        return {"reason": cut(text, REASON_LIMIT), **facts}
    reason = judge(obj, kind.members).missing
    trouble = _first_trouble(api, obj, namespace, kind, last_lines)
    if trouble is not None:
        name, explanation = trouble
        reason, facts["events"] = f"{reason}; {name}: {explanation['reason']}", explanation["events"]
        facts.update({key: value for key, value in explanation.items() if key == "console"})
    return {"reason": reason, **facts}


def _first_trouble(
    api: Api, obj: Object, namespace: str, kind: Kind, last_lines: LastLines | None
) -> tuple[str, dict[str, Any]] | None:
    try:
        listed = members(api, obj, namespace, kind)
    except VirtError:
        return None  # without the right to read members, only the set's status is left
    for member in listed:
        if not is_ready(member):
            name = member["metadata"]["name"]
            return name, diagnose.explain(api, member, namespace, name, member_kind(kind).name, last_lines=last_lines)
    return None
