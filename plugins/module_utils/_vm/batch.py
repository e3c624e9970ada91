# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All VMs of a task: many at once, then one shared wait (joint_wait). Makes the task's result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import redact
from .._client.api import Api
from .._client.errors import ApiError, VirtError
from .._client.parallel import in_parallel
from . import cluster, compare, field_path, service
from .cluster import Kind
from .request import Terms, VmRequest, requests_from, terms_from
from .service import Outcome

WRITES = ("create", "apply", "patch", "replace", "delete")
"""Methods that change what an object declares; any other is an operation on what runs."""

Object = dict[str, Any]


def run(
    params: Mapping[str, Any], api: Api, *, check_mode: bool, diff: bool, kind: Kind = cluster.VM
) -> dict[str, Any]:
    """Bring all objects of a task into their states; return the task's result. With `vms`, errors come at the end."""
    terms = terms_from(params, check_mode=check_mode, diff=diff)
    requests = requests_from(params, kind)
    if terms.wait_for_claims:
        from . import claims  # most tasks ask for none

        claims.check(requests, wait=terms.wait)
    began = time.monotonic()
    made = outcomes = _ensure_all(api, requests, terms)
    if terms.wait and not terms.check_mode:
        from . import joint_wait  # most tasks that change nothing never come here

        outcomes = joint_wait.wait_all(api, requests, terms, made)
    shown = [_show(one, terms) for one in outcomes]
    if terms.wait:
        for one in shown:
            one["duration"] = round(time.monotonic() - began, 1)
    if params.get("vms") is None:
        if isinstance(outcomes[0], VirtError):
            raise outcomes[0]
        return shown[0]
    names = [request.name or _made_name(one) for request, one in zip(requests, made, strict=True)]
    return _many(requests, names, outcomes, shown)


def _made_name(outcome: Outcome | VirtError) -> str:
    """Return the name that the server made, "" of what was not created."""
    return "" if isinstance(outcome, VirtError) or not outcome.after else outcome.after["metadata"]["name"]


def _many(
    requests: list[VmRequest], names: list[str], outcomes: list[Outcome | VirtError], shown: list[dict[str, Any]]
) -> dict[str, Any]:
    results = []
    for request, name, one in zip(requests, names, shown, strict=True):
        results.append({"namespace": request.namespace, "name": name, **one})
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

    return in_parallel(api, len(requests), work)


def _listed(api: Api, requests: list[VmRequest], terms: Terms) -> dict[str, dict[str, Object]]:
    """Read namespaces of which many VMs are wanted with one request each, where the user may."""
    counts: dict[str, int] = {}
    for request in requests:
        if request.name is not None:
            counts[request.namespace] = counts.get(request.namespace, 0) + 1
    found = {}
    for namespace, count in counts.items():
        if count >= cluster.LIST_FROM:
            try:
                items = api.list(requests[0].kind.resource(namespace, terms.api_version), pages=1)
            except ApiError:
                continue  # each is read by itself then, and says what is wrong
            found[namespace] = {item["metadata"]["name"]: item for item in items}
    return found


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
    if outcome.method not in WRITES:
        sides["after"]["requested"] = outcome.method
    return sides
