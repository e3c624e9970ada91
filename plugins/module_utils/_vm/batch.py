# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All objects of a task: ensure their states, wait for all of them, build the task's result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import redact
from .._client.api import Api
from .._client.errors import VirtError
from . import field_path, kinds
from .kinds import Kind
from .merge import compare
from .request import manifest
from .request.vm_request import Terms, VmRequest, request_of, terms_from
from .write import ensure_state
from .write.outcome import Outcome, restart_required

WRITES = ("create", "apply", "patch", "replace", "delete")
"""Methods that change the declaration of an object. All others are operations on a guest."""

Object = dict[str, Any]


def run(
    params: Mapping[str, Any],
    api: Api,
    *,
    check_mode: bool,
    diff: bool,
    kind: Kind = kinds.VM,
    shows_console: bool = True,
) -> dict[str, Any]:
    """Bring all objects of a task into their states; return the task's result.

    shows_console: the error of a wait shows the last lines of the guest. False for a task with no_log.
    Raises the error of a single object. Several objects are all tried; one error then lists the failures.
    """
    terms = terms_from(params, check_mode=check_mode, diff=diff, kind=kind)._replace(shows_console=shows_console)
    requests = requests_from(params, kind)
    if terms.wait_for_claims:
        from .wait import claims  # few tasks need it

        claims.check(requests, wait=terms.wait)
    start = time.monotonic()
    warnings: list[str] = []
    written = outcomes = _ensure(api, requests, terms)
    if terms.wait and not terms.check_mode:
        from .wait import wait_all

        outcomes = wait_all.wait_all(api, requests, terms, written, warnings)
    results = [_result(request, outcome, terms) for request, outcome in zip(requests, outcomes, strict=True)]
    if terms.wait:
        for result in results:
            result["duration"] = round(time.monotonic() - start, 1)
    warned = _warned(requests, written, outcomes, warnings)
    if not _is_list(params, kind):
        if isinstance(outcomes[0], VirtError):
            raise outcomes[0]
        return {**results[0], **warned}
    from . import multi

    return multi.result(requests, written, outcomes, results, warned)


def _warned(
    requests: list[VmRequest],
    written: list[Outcome | VirtError],
    outcomes: list[Outcome | VirtError],
    warnings: list[str],
) -> dict[str, list[str]]:
    """Return the warnings of a task as a part of its result: also names of list items that it may have misspelt."""
    texts: list[str] = []
    for request, outcome in zip(requests, written, strict=True):
        if request.state == "absent" or isinstance(outcome, VirtError) or outcome.after is None:
            continue
        unused = manifest.unused_volumes(request.declaration.obj, outcome.after, request.kind)
        if unused or request.removals:
            from .request import item_names  # few tasks need it

            texts += item_names.not_removed(request.title, request.removals, outcome.before)
            texts += item_names.not_used(request.title, unused, outcome.after, request.kind)
    texts += [outcome.warning for outcome in outcomes if isinstance(outcome, Outcome) and outcome.warning]
    texts += warnings
    return {"warnings": texts} if texts else {}


def requests_from(params: Mapping[str, Any], kind: Kind = kinds.VM) -> list[VmRequest]:
    """Return one request for each object of a task. One error lists the problems of all entries."""
    if not _is_list(params, kind):
        return [request_of(params, kind)]
    from .request.multi_options import requests_of  # most tasks have one object

    return requests_of(params, kind)


def _is_list(params: Mapping[str, Any], kind: Kind) -> bool:
    return bool(kind.list_option) and params.get(kind.list_option) is not None


def _ensure(api: Api, requests: list[VmRequest], terms: Terms) -> list[Outcome | VirtError]:
    """Bring all objects into their states; an error takes the place of an outcome."""
    if len(requests) != 1:
        from . import multi

        return multi.ensure(api, requests, terms)
    try:
        return [ensure_state.ensure(api, requests[0], terms)]
    except VirtError as error:
        return [error]


def _result(request: VmRequest, outcome: Outcome | VirtError, terms: Terms) -> dict[str, Any]:
    """Return the result for one object, without secrets and hidden fields."""
    if isinstance(outcome, VirtError):
        return {"changed": bool(outcome.facts.get("changed")), "failed": True, "msg": outcome.message, **outcome.facts}
    hidden = [list(path) for path in terms.hidden]
    after = field_path.without(outcome.after, hidden) if outcome.after else {}
    result: dict[str, Any] = {"changed": outcome.changed, "result": redact.redacted(after)}
    if outcome.method:
        result["method"] = outcome.method
    is_foreseen = terms.check_mode and outcome.changed
    required = None if is_foreseen or request.kind is not kinds.VM else restart_required(outcome)
    if required is not None:
        result["restart_required"] = required
    if terms.diff and outcome.changed:
        before = field_path.without(outcome.before, hidden) if outcome.before else {}
        result["diff"] = _diff(before, after, outcome)
    return result


def _diff(before: Object, after: Object, outcome: Outcome) -> dict[str, Any]:
    sides = {
        "before": redact.redacted(compare.content(before)) if before else {},
        "after": redact.redacted(compare.content(after), unlike=before or after) if after else {},
    }
    if outcome.method not in WRITES:
        sides["after"]["requested"] = outcome.method
    return sides
