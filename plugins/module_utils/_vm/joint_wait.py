# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for the VMs of a task together: one wait per namespace, none for what is known to be so."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from .._client.api import Api
from .._client.errors import VirtError
from .._client.parallel import in_parallel
from ..kubevirt_api import printable_statuses, run_strategies
from ..kubevirt_api.predicates import is_ready, is_up_to_date
from .cluster import VM, VMI
from .goal import Goal, goal_of, judge
from .replica_set import is_paused
from .request import Terms, VmRequest
from .service import Outcome
from .waiting import wait_for

Object = dict[str, Any]


def wait_all(
    api: Api, requests: list[VmRequest], terms: Terms, outcomes: list[Outcome | VirtError]
) -> list[Outcome | VirtError]:
    """Wait for all that is not yet as it should be; return the outcomes with what became of them."""
    goals: dict[str, dict[str, Goal]] = {}
    known: dict[str, dict[str, Object]] = {}
    for request, outcome in zip(requests, outcomes, strict=True):
        goal = _goal(request, outcome, terms)
        if goal is not None and not isinstance(outcome, VirtError):
            goals.setdefault(request.namespace, {})[_name(outcome)] = goal
            known.setdefault(request.namespace, {})[_name(outcome)] = outcome.after or outcome.before or {}
    if not goals:
        return outcomes
    namespaces, began = list(goals), time.monotonic()

    def wait(own: Api, index: int) -> dict[str, Any]:
        namespace = namespaces[index]
        resource = requests[0].kind.resource(namespace)
        return wait_for(
            own,
            resource,
            goals[namespace],
            known[namespace],
            timeout_seconds=terms.wait_timeout_seconds,
            began=began,
            with_claims=terms.wait_for_claims,
        )

    reached = dict(zip(namespaces, in_parallel(api, len(namespaces), wait), strict=True))
    final: list[Outcome | VirtError] = []
    for request, outcome in zip(requests, outcomes, strict=True):
        got = reached.get(request.namespace)
        if isinstance(outcome, VirtError) or got is None or _goal(request, outcome, terms) is None:
            final.append(outcome)
        elif isinstance(got, VirtError):  # of the namespace; what each VM's part in it was is told apart
            error = got if len(requests) == 1 else VirtError(got.message, **got.facts)
            error.facts.setdefault("changed", outcome.changed)
            final.append(error)
        elif isinstance(got[_name(outcome)], VirtError):
            error = got[_name(outcome)]
            error.facts.setdefault("changed", outcome.changed)
            final.append(error)
        else:
            final.append(outcome._replace(after=got[_name(outcome)]))
    return final


def _name(outcome: Outcome | VirtError) -> str:
    vm = None if isinstance(outcome, VirtError) else (outcome.after or outcome.before)
    return vm["metadata"]["name"] if vm else ""


def _goal(request: VmRequest, outcome: Outcome | VirtError, terms: Terms) -> Goal | None:
    """Return what to wait for; None also when what was read already shows it."""
    if isinstance(outcome, VirtError) or not _name(outcome):
        return None
    goal = _goal_of(request, outcome)
    if terms.condition is not None and request.state != "absent":
        return replace(goal or Goal("there"), condition=terms.condition)
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
    """Tell whether what was read before anything was asked for shows the goal."""
    if request.kind is not VM:
        return judge(goal, obj, obj).done
    status = obj.get("status") or {}
    if goal.kind == "running" and is_ready(obj) and status.get("printableStatus") == printable_statuses.RUNNING:
        return is_up_to_date(obj) or "desiredGeneration" not in status
    halted = (obj.get("spec") or {}).get("runStrategy") == run_strategies.HALTED
    if goal.kind == "stopped" and halted and status.get("printableStatus") == printable_statuses.STOPPED:
        return not status.get("created")
    return False
