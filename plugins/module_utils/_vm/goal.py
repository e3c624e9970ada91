# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When waiting is over. Pure: a goal and what is seen give a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._client.waiter import Verdict
from ..kubevirt_api import condition_types, phases, printable_statuses, run_strategies
from ..kubevirt_api.asked import is_deleting, run_strategy
from ..kubevirt_api.predicates import condition, is_final, is_ready, is_up_to_date, phase
from . import cluster, guest_goal
from .instance_power import is_paused

if TYPE_CHECKING:
    from .rollout import Change

CRASHES = 3
"""Starts that failed in a row before waiting for another is given up; the control plane goes on trying."""

_OF_THE_VM = (condition_types.FAILURE, condition_types.RESTART_REQUIRED)
"""Conditions that an instance never has. Its others are better looked at there: a VM keeps what its last one had."""
_ONE_RUN = (run_strategies.ONCE, run_strategies.RERUN_ON_FAILURE, run_strategies.MANUAL)
"""A run that ended well is a success: nobody starts another by itself."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Goal:
    """What a VM should become.

    kind: running, stopped, gone, there; what a set keeps (cluster.MEMBERS); or what a guest should (guest_goal.KINDS).
    """

    kind: str
    not_instance: str | None = None
    """UID of an instance that does not count: the one before a restart."""
    may_come: bool = False
    """Not being there (yet) is not the end of hope."""
    condition: tuple[str, str, str | None] | None = None
    """Type, status and reason of a condition that must be there as well."""
    uid: str | None = None
    """Of what is to be gone: another of its name is none of our business."""
    change: Change | None = None
    """What the machines of a pool are to have as well."""


def goal_of(state: str, vm: Object | None, old_instance_uid: str | None = None) -> Goal | None:
    """Return what a task in this state waits for; None if there is nothing to wait for."""
    if state == "absent":
        return Goal("gone", uid=((vm or {}).get("metadata") or {}).get("uid"))
    if state == "stopped":
        return Goal("stopped")
    if state in guest_goal.KINDS:
        return Goal(state)
    if state in ("started", "restarted"):
        return Goal("running", old_instance_uid)
    strategy = run_strategy(vm or {})
    if strategy == run_strategies.MANUAL:
        return None
    return Goal("stopped" if strategy == run_strategies.HALTED else "running")


def judge(goal: Goal, vm: Object | None, vmi: Object | None) -> Verdict:
    """Compare a goal with a VM and its instance, read after it; or with an instance, given as both."""
    verdict = _judge(goal, vm, vmi)
    if goal.condition is None or vm is None or not verdict.done:
        return verdict
    has_own = vmi is None or goal.condition[0] in _OF_THE_VM
    looked_at = vm if has_own else vmi
    return verdict if has_condition(looked_at, goal.condition) else Verdict(missing=_differs(looked_at, goal.condition))


def _differs(obj: Object | None, wanted: tuple[str, str, str | None]) -> str:
    kind, status, reason = wanted
    found = condition(obj or {}, kind)
    there = "not there" if found is None else _worded(found.get("status"), found.get("reason"))
    return f"its condition {kind} should be {_worded(status, reason)} and is {there}"


def _worded(status: str | None, reason: str | None) -> str:
    return f"{status} ({reason})" if reason else str(status)


def has_condition(obj: Object | None, wanted: tuple[str, str, str | None]) -> bool:
    """Tell whether a condition is as wanted. One that is not there is as good as False: KubeVirt takes them away."""
    kind, status, reason = wanted
    found = condition(obj or {}, kind)
    if found is None:
        return status == "False" and reason is None
    return found.get("status") == status and reason in (None, found.get("reason"))


def _judge(goal: Goal, vm: Object | None, vmi: Object | None) -> Verdict:
    if goal.kind == "gone":
        is_other = vm is not None and goal.uid not in (None, vm["metadata"].get("uid"))
        return Verdict(done=vm is None or is_other, missing="it is still there")
    if vm is None:
        hopeless = None if goal.may_come else "somebody deleted it meanwhile"
        return Verdict(hopeless=hopeless, missing="it is not there")
    if goal.kind in cluster.MEMBERS:
        from . import replica_set  # most goals are others

        return replica_set.judge(vm, goal.kind)
    if goal.kind in guest_goal.KINDS:
        return guest_goal.judge(goal.kind, vmi, may_come=goal.may_come)
    return Verdict(done=True) if goal.kind == "there" else _judge_power(goal, vm, vmi)


def _judge_power(goal: Goal, vm: Object, vmi: Object | None) -> Verdict:
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
        if phase(vmi) == phases.RUNNING and is_paused(vmi):
            return guest_goal.judge_paused(vmi)
        if _is_up(vm, vmi) or (phase(vmi) == phases.SUCCEEDED and strategy in _ONE_RUN):
            return Verdict(done=True)
        if phase(vmi) == phases.FAILED and strategy in (run_strategies.ONCE, run_strategies.MANUAL):
            return Verdict(hopeless="its instance failed, and its run strategy does not start another")
    return _judge_crashes(vm)


def _judge_crashes(vm: Object) -> Verdict:
    status = vm.get("status") or {}
    failures = (status.get("startFailure") or {}).get("consecutiveFailCount") or 0
    if failures >= CRASHES and status.get("printableStatus") == printable_statuses.CRASH_LOOP_BACK_OFF:
        return Verdict(hopeless=f"it failed to start {failures} times in a row")
    return Verdict(missing="the guest is not running and ready")


def _is_up(vm: Object, vmi: Object) -> bool:
    return phase(vmi) == phases.RUNNING and is_ready(vmi) and is_ready(vm) and _has_seen(vm)


def _has_seen(vm: Object) -> bool:
    """Older KubeVirt does not say which generation it has seen."""
    return "desiredGeneration" not in (vm.get("status") or {}) or is_up_to_date(vm)
