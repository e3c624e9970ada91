# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All VMs of a task: many at once, each on a connection of its own, then one shared wait. Makes the task's result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from .._client.api import Api
from .._client.errors import ApiError, VirtError
from ..kubevirt_api import printable_statuses, run_strategies
from ..kubevirt_api.predicates import is_ready, is_up_to_date
from . import cluster, compare, field_path, redact, service
from .goal import Goal, goal_of
from .request import Terms, VmRequest, requests_from, terms_from
from .service import Outcome

WORKERS = 8
"""Connections at once; the API server's fair queueing makes more of them wait."""
LIST_FROM = 4
"""VMs of one namespace from which one list is cheaper than a read each."""

Object = dict[str, Any]


def run(params: Mapping[str, Any], api: Api, *, check_mode: bool, diff: bool) -> dict[str, Any]:
    """Bring all VMs of a task into their states; return the task's result. With `vms`, errors come all at the end."""
    terms = terms_from(params, check_mode=check_mode, diff=diff)
    requests = requests_from(params)
    began = time.monotonic()
    outcomes = _ensure_all(api, requests, terms)
    if terms.wait and not terms.check_mode:
        outcomes = _wait_all(api, requests, terms, outcomes)
    shown = [_show(one, terms) for one in outcomes]
    if terms.wait:
        for one in shown:
            one["duration"] = round(time.monotonic() - began, 1)
    if params.get("vms") is None:
        if isinstance(outcomes[0], VirtError):
            raise outcomes[0]
        return shown[0]
    return _many(requests, outcomes, shown)


def _many(
    requests: list[VmRequest], outcomes: list[Outcome | VirtError], shown: list[dict[str, Any]]
) -> dict[str, Any]:
    results = []
    for request, one in zip(requests, shown, strict=True):
        results.append({"namespace": request.namespace, "name": request.name, **one})
    whole = {"changed": any(one["changed"] for one in shown), "results": results}
    diffs = [one.pop("diff") for one in results if "diff" in one]
    if diffs:
        whole["diff"] = diffs
    failed = [one for one in outcomes if isinstance(one, VirtError)]
    if failed:
        text = "; ".join(error.message for error in failed[:10])
        raise VirtError(f"{len(failed)} of {len(requests)} VMs failed: {text}", **whole)
    return whole


def _ensure_all(api: Api, requests: list[VmRequest], terms: Terms) -> list[Outcome | VirtError]:
    known = _listed(api, requests, terms)

    def work(own: Api, index: int) -> Outcome:
        request = requests[index]
        there = known.get(request.namespace)
        if there is not None and request.name and request.name not in there:
            return service.ensure(own, request, terms)  # a list says what is there, a read that something is not
        return service.ensure(own, request, terms, there.get(request.name or "") if there else None)

    return _in_parallel(api, len(requests), work)


def _listed(api: Api, requests: list[VmRequest], terms: Terms) -> dict[str, dict[str, Object]]:
    """Read namespaces of which many VMs are wanted with one request each, where the user may."""
    counts: dict[str, int] = {}
    for request in requests:
        if request.name is not None:
            counts[request.namespace] = counts.get(request.namespace, 0) + 1
    found = {}
    for namespace, count in counts.items():
        if count >= LIST_FROM:
            try:
                items = api.list(cluster.virtual_machines(namespace, terms.api_version), pages=1)
            except ApiError:
                continue  # each is read by itself then, and says what is wrong
            found[namespace] = {item["metadata"]["name"]: item for item in items}
    return found


def _in_parallel(api: Api, count: int, work: Callable[[Api, int], Any]) -> list[Any]:
    """Call work(api of its own, index) for every index; an error takes the place of its result."""
    results: list[Any] = [None] * count
    indices = iter(range(count))

    def worker(own: Api) -> None:
        for index in indices:  # next() of a range iterator is atomic
            try:
                results[index] = work(own, index)
            except VirtError as error:
                results[index] = error

    if count == 1:
        worker(api)
        return results
    import threading

    clones = [api.clone() for _ in range(min(WORKERS, count) - 1)]
    threads = [threading.Thread(target=worker, args=(own,), daemon=True) for own in clones]
    for thread in threads:
        thread.start()
    worker(api)
    for thread in threads:
        thread.join()
    for own in clones:
        own.close()
    return results


def _wait_all(
    api: Api, requests: list[VmRequest], terms: Terms, outcomes: list[Outcome | VirtError]
) -> list[Outcome | VirtError]:
    goals: dict[str, dict[str, Goal]] = {}
    known: dict[str, dict[str, Object]] = {}
    for request, outcome in zip(requests, outcomes, strict=True):
        goal = _goal(request, outcome)
        if goal is not None and not isinstance(outcome, VirtError):
            goals.setdefault(request.namespace, {})[_name(outcome)] = goal
            known.setdefault(request.namespace, {})[_name(outcome)] = outcome.after or outcome.before or {}
    if not goals:
        return outcomes
    from .waiting import Waiter

    namespaces = list(goals)

    def wait(own: Api, index: int) -> dict[str, Any]:
        namespace = namespaces[index]
        waiter = Waiter(own, namespace, timeout_seconds=terms.wait_timeout_seconds)
        return waiter.until(goals[namespace], known[namespace])

    reached = dict(zip(namespaces, _in_parallel(api, len(namespaces), wait), strict=True))
    final: list[Outcome | VirtError] = []
    for request, outcome in zip(requests, outcomes, strict=True):
        got = reached.get(request.namespace)
        if isinstance(outcome, VirtError) or got is None or _goal(request, outcome) is None:
            final.append(outcome)
        elif isinstance(got, VirtError):
            final.append(got)
        elif isinstance(got[_name(outcome)], VirtError):
            error = got[_name(outcome)]
            error.facts.setdefault("changed", outcome.changed)
            final.append(error)
        else:
            final.append(replace(outcome, after=got[_name(outcome)]))
    return final


def _name(outcome: Outcome | VirtError) -> str:
    vm = None if isinstance(outcome, VirtError) else (outcome.after or outcome.before)
    return vm["metadata"]["name"] if vm else ""


def _goal(request: VmRequest, outcome: Outcome | VirtError) -> Goal | None:
    """Return what to wait for; None also when what was read already shows it."""
    if isinstance(outcome, VirtError) or not _name(outcome):
        return None
    goal = goal_of(request.state, outcome.after, outcome.old_instance_uid)
    if goal is None or outcome.changed or outcome.after is None:
        return goal
    vm = outcome.after
    status = vm.get("status") or {}
    if goal.kind == "running" and is_ready(vm) and status.get("printableStatus") == printable_statuses.RUNNING:
        return None if is_up_to_date(vm) or "desiredGeneration" not in status else goal
    halted = (vm.get("spec") or {}).get("runStrategy") == run_strategies.HALTED
    if goal.kind == "stopped" and halted and status.get("printableStatus") == printable_statuses.STOPPED:
        return None if not status.get("created") else goal
    return goal


def _show(outcome: Outcome | VirtError, terms: Terms) -> dict[str, Any]:
    """Return what a user sees of an outcome: without secrets and hidden fields."""
    if isinstance(outcome, VirtError):
        return {"changed": bool(outcome.facts.get("changed")), "failed": True, "msg": outcome.message, **outcome.facts}
    hidden = [list(path) for path in terms.hidden]
    after = field_path.without(outcome.after, hidden) if outcome.after else {}
    shown: dict[str, Any] = {"changed": outcome.changed, "result": redact.redacted(after)}
    if outcome.method:
        shown["method"] = outcome.method
    if terms.diff and outcome.changed:
        before = field_path.without(outcome.before, hidden) if outcome.before else {}
        shown["diff"] = _diff(before, after, outcome)
    return shown


def _diff(before: Object, after: Object, outcome: Outcome) -> dict[str, Any]:
    sides = {
        "before": redact.redacted(compare.content(before)) if before else {},
        "after": redact.redacted(compare.content(after), unlike=before or after) if after else {},
    }
    if outcome.method in ("start", "stop", "restart"):
        sides["after"]["requested"] = outcome.method
    return sides
