# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide how a VM is started, stopped or restarted. Pure: looks at VM and instance.

The API refuses a start or stop with 409 if it makes no sense in the present state. These tables avoid such requests, so
a 409 means that the state has just changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...kubevirt_api import phases, run_strategies
from ...kubevirt_api.desired import is_deleting, run_strategy
from ...kubevirt_api.predicates import is_final, phase

Object = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """A request: a subresource (start, stop, restart, pause...) with its body, or a merge patch of the run strategy."""

    subresource: str | None
    body: Object = field(default_factory=dict)
    of_instance: bool = False
    """It is a subresource of the instance, not of the VM."""
    has_dry_run: bool = True


class Impossible(Exception):
    """The present state does not allow the operation. The text has the remedy."""


def decide(
    state: str, vm: Object, vmi: Object | None, grace_period_seconds: int | None = None, *, paused: bool = False
) -> Operation | None:
    """Return the operation that brings the VM into `state`, None if it is there or will be.

    paused: the start leaves the guest paused.
    """
    if state == "started":
        return _paused(_start(vm, vmi)) if paused else _start(vm, vmi)
    if state == "stopped":
        return _stop(vm, vmi, grace_period_seconds)
    return _restart(vm, vmi, grace_period_seconds)


def predicted(vm: Object, operation: Operation) -> Object:
    """Return the VM after an operation: a start or stop may change the run strategy."""
    spec = dict(vm.get("spec") or {})
    if operation.subresource is None:
        spec.update(operation.body["spec"])
        return {**vm, "spec": {key: value for key, value in spec.items() if value is not None}}
    changed_from = {"start": (run_strategies.HALTED,), "stop": (run_strategies.ALWAYS, run_strategies.ONCE)}
    if run_strategy(vm) not in changed_from.get(operation.subresource, ()):
        return vm
    is_on = operation.subresource == "start"
    if spec.get("runStrategy") is None and spec.get("running") is not None:
        spec["running"] = is_on
    else:
        spec["runStrategy"] = run_strategies.ALWAYS if is_on else run_strategies.HALTED
    return {**vm, "spec": spec}


def _is_live(vmi: Object | None) -> bool:
    return vmi is not None and not is_final(vmi) and not is_deleting(vmi)


def _strategy_patch(strategy: str) -> Operation:
    return Operation(None, {"spec": {"runStrategy": strategy, "running": None}})


def _paused(start: Operation | None) -> Operation | None:
    if start is None or start.subresource == "start":
        return None if start is None else Operation("start", {"paused": True})
    raise Impossible(
        "its last instance is still stopping, and only a start request can leave the guest paused; wait for that first"
        " (state=stopped, with wait=true)"
    )


def _start(vm: Object, vmi: Object | None) -> Operation | None:
    strategy = run_strategy(vm)
    if strategy == run_strategies.HALTED:
        if _is_requested(vm, "Start"):
            return None  # a paused start that the control plane has not carried out yet
        # The API refuses a start while an instance is stopping, and still accepts a change of the strategy.
        return Operation("start") if vmi is None or is_final(vmi) else _strategy_patch(run_strategies.ALWAYS)
    if _is_live(vmi) or _is_requested(vm, "Start"):
        return None
    if strategy == run_strategies.ONCE and vmi is not None and is_final(vmi):
        raise Impossible(
            "it has run and its run strategy is Once; set run_strategy to Manual or Always, or delete its finished"
            " VirtualMachineInstance to have it run again"
        )
    failed = vmi is not None and phase(vmi) == phases.FAILED
    if strategy == run_strategies.MANUAL or (strategy == run_strategies.RERUN_ON_FAILURE and not failed):
        return Operation("start")
    return None  # the control plane starts it


def _stop(vm: Object, vmi: Object | None, grace_period_seconds: int | None) -> Operation | None:
    strategy = run_strategy(vm)
    body = {} if grace_period_seconds is None else {"gracePeriod": grace_period_seconds}
    if strategy == run_strategies.HALTED:
        return None
    if strategy in (run_strategies.ALWAYS, run_strategies.ONCE):
        return Operation("stop", body)
    if _is_live(vmi):
        return None if _is_requested(vm, "Stop") else Operation("stop", body)
    if strategy == run_strategies.RERUN_ON_FAILURE and vmi is not None and phase(vmi) == phases.FAILED:
        return _strategy_patch(run_strategies.HALTED)  # otherwise the control plane would start it again
    return None


def _restart(vm: Object, vmi: Object | None, grace_period_seconds: int | None) -> Operation | None:
    if not _is_live(vmi):
        return _start(vm, vmi)
    strategy = run_strategy(vm)
    if strategy in (run_strategies.ONCE, run_strategies.HALTED):
        raise Impossible(
            f"its run strategy is {strategy}, which does not allow a restart; set run_strategy to Always,"
            " RerunOnFailure or Manual first"
        )
    return Operation("restart", {} if grace_period_seconds is None else {"gracePeriodSeconds": grace_period_seconds})


def _is_requested(vm: Object, action: str) -> bool:
    requests = (vm.get("status") or {}).get("stateChangeRequests") or ()
    return any(request.get("action") == action for request in requests)
