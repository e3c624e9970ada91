# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All objects of a task, one or many at once (many), then one shared wait (joint_wait). Makes the task's result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from .._client import redact
from .._client.api import Api
from .._client.errors import VirtError
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
    """Bring all objects of a task into their states; return the task's result. With several, errors come at the end."""
    terms = terms_from(params, check_mode=check_mode, diff=diff, kind=kind)
    requests = requests_from(params, kind)
    if terms.wait_for_claims:
        from . import claims  # most tasks ask for none

        claims.check(requests, wait=terms.wait)
    began = time.monotonic()
    made = outcomes = _ensured(api, requests, terms)
    if terms.wait and not terms.check_mode:
        from . import joint_wait  # most tasks that change nothing never come here

        outcomes = joint_wait.wait_all(api, requests, terms, made)
    shown = [_show(one, terms) for one in outcomes]
    if terms.wait:
        for one in shown:
            one["duration"] = round(time.monotonic() - began, 1)
    if not kind.entries or params.get(kind.entries) is None:
        if isinstance(outcomes[0], VirtError):
            raise outcomes[0]
        return shown[0]
    from . import many

    return many.result(requests, made, outcomes, shown)


def _ensured(api: Api, requests: list[VmRequest], terms: Terms) -> list[Outcome | VirtError]:
    """Bring all objects into their states; an error takes the place of an outcome."""
    if len(requests) != 1:
        from . import many  # one by one is how most tasks go

        return many.ensured(api, requests, terms)
    try:
        return [service.ensure(api, requests[0], terms)]
    except VirtError as error:
        return [error]


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
