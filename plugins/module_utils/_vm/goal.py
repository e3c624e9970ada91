# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When waiting is over. Pure: a goal and what is seen give a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._client.waiter import Verdict
from ..kubevirt_api import phases, printable_statuses, run_strategies
from ..kubevirt_api.predicates import is_deleting, is_final, is_ready, is_up_to_date, phase, run_strategy

CRASHES = 3
"""Starts that failed in a row before waiting for another is given up; the control plane goes on trying."""

_ONE_RUN = (run_strategies.ONCE, run_strategies.RERUN_ON_FAILURE, run_strategies.MANUAL)
"""A run that ended well is a success: nobody starts another by itself."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """What a VM should become. kind: running, stopped, gone; or instance: a VirtualMachineInstance that is ready."""

    kind: str
    not_instance: str | None = None
    """UID of an instance that does not count: the one before a restart."""
    may_come: bool = False
    """Not being there (yet) is not the end of hope."""


def goal_of(state: str, vm: Object | None, old_instance_uid: str | None = None) -> Goal | None:
    """Return what a task in this state waits for; None if there is nothing to wait for."""
    if state == "absent":
        return Goal("gone")
    if state == "stopped":
        return Goal("stopped")
    if state in ("started", "restarted"):
        return Goal("running", old_instance_uid)
    strategy = run_strategy(vm or {})
    if strategy == run_strategies.MANUAL:
        return None
    return Goal("stopped" if strategy == run_strategies.HALTED else "running")


def judge(goal: Goal, vm: Object | None, vmi: Object | None) -> Verdict:
    """Compare a goal with a VM and its instance, read after it."""
    if goal.kind == "gone":
        return Verdict(done=vm is None, missing="the VirtualMachine is still there")
    if goal.kind == "instance":
        return Verdict(done=vm is not None and is_ready(vm), missing="the instance is not ready")
    if vm is None and goal.may_come:
        return Verdict(missing="there is no such VirtualMachine")
    if vm is None:
        return Verdict(hopeless="somebody deleted it meanwhile")
    if goal.kind == "stopped":
        # a halted VM's instance goes once its guest has ended; a manual one's stays
        stopped = vmi is None or (is_final(vmi) and run_strategy(vm) != run_strategies.HALTED)
        return Verdict(done=stopped, missing="the guest is still running")
    return _judge_running(goal, vm, vmi)


def _judge_running(goal: Goal, vm: Object, vmi: Object | None) -> Verdict:
    if is_deleting(vm):
        return Verdict(hopeless="somebody is deleting it")
    if vmi is not None and vmi["metadata"].get("uid") == goal.not_instance:
        return Verdict(missing="the old instance is still there")
    if vmi is not None and not is_deleting(vmi):
        strategy = run_strategy(vm)
        is_up = phase(vmi) == phases.RUNNING and is_ready(vmi) and is_ready(vm) and _has_seen(vm)
        if is_up or (phase(vmi) == phases.SUCCEEDED and strategy in _ONE_RUN):
            return Verdict(done=True)
        if phase(vmi) == phases.FAILED and strategy in (run_strategies.ONCE, run_strategies.MANUAL):
            return Verdict(hopeless="its instance failed, and its run strategy does not start another")
    status = vm.get("status") or {}
    failures = (status.get("startFailure") or {}).get("consecutiveFailCount") or 0
    if failures >= CRASHES and status.get("printableStatus") == printable_statuses.CRASH_LOOP_BACK_OFF:
        return Verdict(hopeless=f"it failed to start {failures} times in a row")
    return Verdict(missing="the guest is not running and ready")


def _has_seen(vm: Object) -> bool:
    """Older KubeVirt does not say which generation it has seen."""
    return "desiredGeneration" not in (vm.get("status") or {}) or is_up_to_date(vm)
