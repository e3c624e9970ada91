# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for all objects of a task: one wait per namespace, without objects that have reached their goal."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from ..._client.api import Api
from ..._client.errors import VirtError
from ..._client.parallel import in_parallel
from ...kubevirt_api import printable_statuses, run_strategies
from ...kubevirt_api.predicates import is_ready, is_up_to_date
from ..kinds import VM, VMI
from ..request.vm_request import Terms, VmRequest
from ..write.outcome import Outcome
from . import last_lines
from .goal import Goal, goal_of, judge
from .set_status import is_paused
from .wait_for import wait_for

Object = dict[str, Any]


def wait_all(
    api: Api, requests: list[VmRequest], terms: Terms, outcomes: list[Outcome | VirtError], warnings: list[str]
) -> list[Outcome | VirtError]:
    """Wait for the objects that have not reached their goal. Return the outcomes after the wait.

    warnings: gets what could not be waited for.
    """
    goals: dict[str, dict[str, Goal]] = {}
    objects: dict[str, dict[str, Object]] = {}
    for request, outcome in zip(requests, outcomes, strict=True):
        goal = _goal(request, outcome, terms)
        if goal is not None and not isinstance(outcome, VirtError):
            goals.setdefault(request.namespace, {})[_name(outcome)] = goal
            objects.setdefault(request.namespace, {})[_name(outcome)] = outcome.after or outcome.before or {}
    if not goals:
        return outcomes
    namespaces, start = list(goals), time.monotonic()

    def wait(thread_api: Api, index: int) -> dict[str, Any]:
        namespace = namespaces[index]
        return wait_for(
            thread_api,
            requests[0].kind.resource(namespace),
            goals[namespace],
            objects[namespace],
            timeout_seconds=terms.wait_timeout_seconds,
            start=start,
            with_claims=terms.wait_for_claims,
            fail_fast=terms.fail_fast,
            shows_console=terms.shows_console,
            warn=warnings.append,
        )

    results = dict(zip(namespaces, in_parallel(api, len(namespaces), wait), strict=True))
    return [
        outcome
        if isinstance(outcome, VirtError) or _goal(request, outcome, terms) is None
        else _final(outcome, results[request.namespace], is_single=len(requests) == 1)
        for request, outcome in zip(requests, outcomes, strict=True)
    ]


def _final(outcome: Outcome, result: dict[str, Any] | VirtError, *, is_single: bool) -> Outcome | VirtError:
    """Return the outcome after the wait. result: the results of the namespace by name, or its error."""
    if isinstance(result, VirtError):  # each object needs its own copy: facts are added to it
        error = result if is_single else VirtError(result.message, **result.facts)
    elif isinstance(result[_name(outcome)], VirtError):
        error = result[_name(outcome)]
    else:
        return outcome._replace(after=result[_name(outcome)])
    error.facts.setdefault("changed", outcome.changed)
    if is_single and error.facts.get("console"):  # of several objects, each result has its own
        error.message = last_lines.message(error.message, error.facts["console"])
    return error


def _name(outcome: Outcome | VirtError) -> str:
    obj = None if isinstance(outcome, VirtError) else (outcome.after or outcome.before)
    return obj["metadata"]["name"] if obj else ""


def _goal(request: VmRequest, outcome: Outcome | VirtError, terms: Terms) -> Goal | None:
    """Return the goal, None without one or if the object has reached it."""
    if isinstance(outcome, VirtError) or not _name(outcome):
        return None
    goal = _goal_of(request, outcome)
    if terms.condition is not None and request.state != "absent":
        return replace(goal or Goal("exists"), condition=terms.condition)
    if goal is None or outcome.changed or outcome.after is None:
        return goal
    return None if _is_reached(request, goal, outcome.after) else goal


def _goal_of(request: VmRequest, outcome: Outcome) -> Goal | None:
    if request.kind is VMI and request.state == "present":
        return Goal("instance")
    if request.kind.members and request.state == "present":
        return None if is_paused(outcome.after or {}) else Goal(request.kind.members, change=outcome.change)
    return goal_of(request.state, outcome.after or outcome.before, outcome.old_instance_uid)


def _is_reached(request: VmRequest, goal: Goal, obj: Object) -> bool:
    """Tell whether an object that the task did not change has reached the goal."""
    if request.kind is not VM:
        return judge(goal, obj, obj).done
    status = obj.get("status") or {}
    if goal.kind == "running" and is_ready(obj) and status.get("printableStatus") == printable_statuses.RUNNING:
        return is_up_to_date(obj) or "desiredGeneration" not in status
    halted = (obj.get("spec") or {}).get("runStrategy") == run_strategies.HALTED
    if goal.kind == "stopped" and halted and status.get("printableStatus") == printable_statuses.STOPPED:
        return not status.get("created")
    return False
