# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All machines of a task: several in parallel, and one result."""

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
from .request import MigrationRequest, request_for, requests_from

Object = dict[str, Any]


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Return the result of kubevirt_migration."""
    terms = terms_from(params, check_mode=check_mode, diff=diff)
    named = requests_from(params)
    start = time.monotonic()
    deadline = start + terms.wait_timeout_seconds
    requests = _of_node(params, api, terms) if named is None else named

    def work(thread_api: Api, index: int) -> Done:
        if terms.wait and time.monotonic() >= deadline:
            raise TimedOut(
                f"{requests[index].title} was not migrated: its turn did not come within"
                f" {terms.wait_timeout_seconds} s; give the task more time (wait_timeout), or migrate more at a"
                " time (parallel)",
                reason="its turn did not come in time",
            )
        return ensure(thread_api, requests[index], terms, deadline)

    outcomes = in_parallel(api, len(requests), work, workers=params.get("parallel"))
    is_tolerated = params.get("unmovable") == "leave"
    results = [
        _result(request, outcome, terms, is_tolerated=is_tolerated)
        for request, outcome in zip(requests, outcomes, strict=True)
    ]
    facts: dict[str, Any] = {"duration": round(time.monotonic() - start, 1)} if terms.wait else {}
    if warnings := _warnings(params, api, requests, outcomes):
        facts["warnings"] = warnings
    unmovable = [
        _unmovable_facts(request, outcome)
        for request, outcome in zip(requests, outcomes, strict=True)
        if isinstance(outcome, Unmovable)
    ]
    if named is not None and params.get("vms") is None:
        if isinstance(outcomes[0], VirtError) and not (is_tolerated and unmovable):
            raise outcomes[0]
        return {**results[0], **facts, "unmovable": unmovable}
    return _task_result(results, facts, unmovable)


def _of_node(params: Mapping[str, Any], api: Api, terms: Terms) -> list[MigrationRequest]:
    """Return the requests for all machines of a node, except those that are leaving or gone."""
    listed = api.list(kinds.instances(params.get("namespace"), terms.api_version))
    instances = [vmi for vmi in listed if decide.node_of(vmi) == params["from_node"]]
    # An instance that is being deleted leaves the node without a migration.
    return [request_for(params, vmi) for vmi in instances if not vmi["metadata"].get("deletionTimestamp")]


def _warnings(params: Mapping[str, Any], api: Api, requests: list[MigrationRequest], outcomes: list[Any]) -> list[str]:
    """Return what check mode could not know, and each from_node that does not exist and that no machine has left."""
    moved_from = {
        request.from_node
        for request, done in zip(requests, outcomes, strict=True)
        if not isinstance(done, Done) or done.changed
    }
    nodes_to_leave = {params.get("from_node"), *(request.from_node for request in requests)} - moved_from
    unknown = [done.warning for done in outcomes if isinstance(done, Done) and done.warning]
    return unknown + [
        f"from_node: the cluster has no node {name}, so it has no machines; look at `kubectl get nodes`"
        for name in sorted(filter(None, nodes_to_leave))
        if nodes.is_unknown(api, name)
    ]


def _result(request: MigrationRequest, outcome: Any, terms: Terms, *, is_tolerated: bool) -> dict[str, Any]:
    """Return the result for one machine, without secrets and hidden fields."""
    named = {"namespace": request.namespace, "name": request.name}
    if isinstance(outcome, VirtError):
        is_failed = not (is_tolerated and isinstance(outcome, Unmovable))
        return {**named, "changed": bool(outcome.facts.get("changed")), "failed": is_failed, "msg": outcome.message} | {
            key: value for key, value in outcome.facts.items() if key != "changed"
        }
    migration, vmi = (_visible(obj, terms) for obj in (outcome.after, outcome.vmi))
    results = {
        **named,
        "changed": outcome.changed,
        "result": migration,
        "vmi": vmi,
        "node": decide.node_of(outcome.vmi),
        "phase": migration_status.phase(outcome.after),
        "phases": migration_status.phases(outcome.after),
    }
    if outcome.method:
        results["method"] = outcome.method
    if terms.diff and outcome.changed:
        sides = (outcome.before, None if outcome.method == "delete" else outcome.after)
        before, after = (compare.content(_visible(side, terms)) if side else {} for side in sides)
        results["diff"] = {"before": before, "after": after}
    return results


def _visible(obj: Object | None, terms: Terms) -> Object:
    if not obj:
        return {}
    return redact.redacted(field_path.without(obj, [list(path) for path in terms.hidden]))


def _unmovable_facts(request: MigrationRequest, error: Unmovable) -> dict[str, str]:
    facts = {key: str(error.facts.get(key) or "") for key in ("reason", "eviction_strategy")}
    return {"namespace": request.namespace, "name": request.name, **facts}


def _task_result(
    results: list[dict[str, Any]], facts: dict[str, Any], unmovable: list[dict[str, str]]
) -> dict[str, Any]:
    """Return the result for several machines. Raises it as an error if a machine failed."""
    failed = [result for result in results if result.get("failed")]
    task = {
        "changed": any(result["changed"] for result in results),
        "results": results,
        "unmovable": unmovable,
        **facts,
    }
    task["summary"] = {
        "moved": sum(1 for result in results if result.get("method") == "create"),
        "cancelled": sum(1 for result in results if result.get("method") == "delete"),
        "unchanged": sum(1 for result in results if not result.get("method") and "msg" not in result),
        "unmovable": len(unmovable),
        "failed": len(failed),
    }
    diffs = [result.pop("diff") for result in results if "diff" in result]
    if diffs:
        task["diff"] = diffs
    if failed:
        text = "; ".join(result["msg"] for result in failed[:10])
        raise VirtError(f"{len(failed)} of {len(results)} machines failed: {text}", **task)
    return task
