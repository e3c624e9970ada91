# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All machines of a task: so many at a time, and one result for all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import redact
from .._client.api import Api
from .._client.errors import TimedOut, VirtError
from .._client.parallel import in_parallel
from .._vm import field_path, kinds
from .._vm.merge import compare
from .._vm.request.vm_request import Terms, terms_from
from . import decide, migration_status, nodes
from .decide import Unmovable
from .move import Done, ensure
from .request import Wish, of_node, wishes_from

Object = dict[str, Any]


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Return the result of kubevirt_migration."""
    terms = terms_from(params, check_mode=check_mode, diff=diff)
    named = wishes_from(params)
    began = time.monotonic()
    deadline = began + terms.wait_timeout_seconds
    wishes = _of_node(params, api, terms) if named is None else named

    def work(own: Api, index: int) -> Done:
        if terms.wait and time.monotonic() >= deadline:
            raise TimedOut(
                f"{wishes[index].title} was left where it is: its turn did not come within {terms.wait_timeout_seconds}"
                " s; give the task more time (wait_timeout), or move more at a time (parallel)",
                reason="its turn did not come in time",
            )
        return ensure(own, wishes[index], terms, deadline)

    outcomes = in_parallel(api, len(wishes), work, workers=params.get("parallel"))
    is_left = params.get("unmovable") == "leave"
    shown = [_show(wish, one, terms, is_left=is_left) for wish, one in zip(wishes, outcomes, strict=True)]
    facts: dict[str, Any] = {"duration": round(time.monotonic() - began, 1)} if terms.wait else {}
    if warnings := _warnings(params, api, wishes, outcomes):
        facts["warnings"] = warnings
    unmovable = [_left(wish, one) for wish, one in zip(wishes, outcomes, strict=True) if isinstance(one, Unmovable)]
    if named is not None and params.get("vms") is None:
        if isinstance(outcomes[0], VirtError) and not (is_left and unmovable):
            raise outcomes[0]
        return {**shown[0], **facts, "unmovable": unmovable}
    return _whole(shown, facts, unmovable)


def _of_node(params: Mapping[str, Any], api: Api, terms: Terms) -> list[Wish]:
    """Return the wishes for all machines of a node, but for those that are going or gone already."""
    listed = api.list(kinds.instances(params.get("namespace"), terms.api_version))
    found = [one for one in listed if decide.node_of(one) == params["from_node"]]
    return [of_node(params, one) for one in found if not one["metadata"].get("deletionTimestamp")]


def _warnings(params: Mapping[str, Any], api: Api, wishes: list[Wish], outcomes: list[Any]) -> list[str]:
    """Name the nodes that machines were to leave, that none has left, and that the cluster does not have."""
    left = {
        one.from_node for one, done in zip(wishes, outcomes, strict=True) if not isinstance(done, Done) or done.changed
    }
    asked = {params.get("from_node"), *(one.from_node for one in wishes)} - left
    return [
        f"from_node: the cluster has no node {name}, so no machine is there; look at `kubectl get nodes`"
        for name in sorted(filter(None, asked))
        if nodes.is_unknown(api, name)
    ]


def _show(wish: Wish, outcome: Any, terms: Terms, *, is_left: bool) -> dict[str, Any]:
    """Return what a user sees of one machine: without secrets and hidden fields."""
    named = {"namespace": wish.namespace, "name": wish.name}
    if isinstance(outcome, VirtError):
        is_failed = not (is_left and isinstance(outcome, Unmovable))
        return {**named, "changed": bool(outcome.facts.get("changed")), "failed": is_failed, "msg": outcome.message} | {
            key: value for key, value in outcome.facts.items() if key != "changed"
        }
    migration, vmi = (_seen(one, terms) for one in (outcome.after, outcome.vmi))
    shown = {
        **named,
        "changed": outcome.changed,
        "result": migration,
        "vmi": vmi,
        "node": decide.node_of(outcome.vmi),
        "phase": migration_status.phase(outcome.after),
        "phases": migration_status.phases(outcome.after),
    }
    if outcome.method:
        shown["method"] = outcome.method
    if terms.diff and outcome.changed:
        sides = (outcome.before, None if outcome.method == "delete" else outcome.after)
        before, after = (compare.content(_seen(one, terms)) if one else {} for one in sides)
        shown["diff"] = {"before": before, "after": after}
    return shown


def _seen(obj: Object | None, terms: Terms) -> Object:
    if not obj:
        return {}
    return redact.redacted(field_path.without(obj, [list(path) for path in terms.hidden]))


def _left(wish: Wish, error: Unmovable) -> dict[str, str]:
    told = {key: str(error.facts.get(key) or "") for key in ("reason", "eviction_strategy")}
    return {"namespace": wish.namespace, "name": wish.name, **told}


def _whole(shown: list[dict[str, Any]], facts: dict[str, Any], unmovable: list[dict[str, str]]) -> dict[str, Any]:
    """Return the result of several; raises it where one of them failed."""
    failed = [one for one in shown if one.get("failed")]
    whole = {"changed": any(one["changed"] for one in shown), "results": shown, "unmovable": unmovable, **facts}
    whole["summary"] = {
        "moved": sum(1 for one in shown if one.get("method") == "create"),
        "cancelled": sum(1 for one in shown if one.get("method") == "delete"),
        "unchanged": sum(1 for one in shown if not one.get("method") and "msg" not in one),
        "unmovable": len(unmovable),
        "failed": len(failed),
    }
    diffs = [one.pop("diff") for one in shown if "diff" in one]
    if diffs:
        whole["diff"] = diffs
    if failed:
        text = "; ".join(one["msg"] for one in failed[:10])
        raise VirtError(f"{len(failed)} of {len(shown)} machines failed: {text}", **whole)
    return whole
