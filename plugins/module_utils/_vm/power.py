# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide how a VM comes to run, to stop, to run anew. Pure: looks at VM and instance, asks only for what is needed.

The API answers 409 to a start or stop that makes no sense in the present state; these tables avoid asking, so that a
409 always means that the state has just changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..kubevirt_api import phases, run_strategies
from ..kubevirt_api.asked import is_deleting, run_strategy
from ..kubevirt_api.predicates import is_final, phase

Object = dict[str, Any]


@dataclass(frozen=True)
class Ask:
    """A request: a subresource (start, stop, restart, pause...) with its body, or a merge patch of the run strategy."""

    subresource: str | None
    body: Object = field(default_factory=dict)
    of_instance: bool = False
    """The subresource is one of the instance."""
    has_dry_run: bool = True


class Impossible(Exception):
    """The state cannot be reached in this run strategy; the text says what to do."""


def decide(
    state: str, vm: Object, vmi: Object | None, grace_period_seconds: int | None = None, *, paused: bool = False
) -> Ask | None:
    """Return what to ask for so that the VM gets into `state`, None if it is there or on the way.

    paused: a start leaves the guest paused.
    """
    if state == "started":
        return _started_paused(_start(vm, vmi)) if paused else _start(vm, vmi)
    if state == "stopped":
        return _stop(vm, vmi, grace_period_seconds)
    return _restart(vm, vmi, grace_period_seconds)


def foreseen(vm: Object, ask: Ask) -> Object:
    """Return the VM as a request leaves it; what starts or stops one that is Always or Halted changes its strategy."""
    spec = dict(vm.get("spec") or {})
    if ask.subresource is None:
        spec.update(ask.body["spec"])
        return {**vm, "spec": {key: value for key, value in spec.items() if value is not None}}
    before = {"start": (run_strategies.HALTED,), "stop": (run_strategies.ALWAYS, run_strategies.ONCE)}
    if run_strategy(vm) not in before.get(ask.subresource, ()):
        return vm
    is_on = ask.subresource == "start"
    if spec.get("runStrategy") is None and spec.get("running") is not None:
        spec["running"] = is_on
    else:
        spec["runStrategy"] = run_strategies.ALWAYS if is_on else run_strategies.HALTED
    return {**vm, "spec": spec}


def _is_live(vmi: Object | None) -> bool:
    return vmi is not None and not is_final(vmi) and not is_deleting(vmi)


def _strategy_patch(strategy: str) -> Ask:
    return Ask(None, {"spec": {"runStrategy": strategy, "running": None}})


def _started_paused(ask: Ask | None) -> Ask | None:
    if ask is None or ask.subresource == "start":
        return None if ask is None else Ask("start", {"paused": True})
    raise Impossible(
        "its last instance is still going down, and only a start can leave the guest paused; wait for that first"
        " (state=stopped, with wait=true)"
    )


def _start(vm: Object, vmi: Object | None) -> Ask | None:
    strategy = run_strategy(vm)
    if strategy == run_strategies.HALTED:
        if _is_asked(vm, "Start"):
            return None  # a paused start, which the control plane has yet to carry out
        # an instance that is still going down makes the API refuse a start; the strategy can be changed all the same
        return Ask("start") if vmi is None or is_final(vmi) else _strategy_patch(run_strategies.ALWAYS)
    if _is_live(vmi) or _is_asked(vm, "Start"):
        return None
    if strategy == run_strategies.ONCE and vmi is not None and is_final(vmi):
        raise Impossible(
            "it has run and its run strategy is Once; set run_strategy to Manual or Always, or delete its finished"
            " VirtualMachineInstance to have it run again"
        )
    failed = vmi is not None and phase(vmi) == phases.FAILED
    if strategy == run_strategies.MANUAL or (strategy == run_strategies.RERUN_ON_FAILURE and not failed):
        return Ask("start")
    return None  # the control plane starts it by itself


def _stop(vm: Object, vmi: Object | None, grace_period_seconds: int | None) -> Ask | None:
    strategy = run_strategy(vm)
    body = {} if grace_period_seconds is None else {"gracePeriod": grace_period_seconds}
    if strategy == run_strategies.HALTED:
        return None
    if strategy in (run_strategies.ALWAYS, run_strategies.ONCE):
        return Ask("stop", body)
    if _is_live(vmi):
        return None if _is_asked(vm, "Stop") else Ask("stop", body)
    if strategy == run_strategies.RERUN_ON_FAILURE and vmi is not None and phase(vmi) == phases.FAILED:
        return _strategy_patch(run_strategies.HALTED)  # else it would be run again
    return None


def _restart(vm: Object, vmi: Object | None, grace_period_seconds: int | None) -> Ask | None:
    if not _is_live(vmi):
        return _start(vm, vmi)
    strategy = run_strategy(vm)
    if strategy in (run_strategies.ONCE, run_strategies.HALTED):
        raise Impossible(
            f"its run strategy is {strategy}, which does not allow a restart; set run_strategy to Always,"
            " RerunOnFailure or Manual first"
        )
    return Ask("restart", {} if grace_period_seconds is None else {"gracePeriodSeconds": grace_period_seconds})


def _is_asked(vm: Object, action: str) -> bool:
    asked = (vm.get("status") or {}).get("stateChangeRequests") or ()
    return any(one.get("action") == action for one in asked)
