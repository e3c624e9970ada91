# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task waits for, and whether an object has reached it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._client.waiter import Verdict
from ...kubevirt_api import condition_types, phases, printable_statuses, run_strategies
from ...kubevirt_api.desired import is_deleting, run_strategy
from ...kubevirt_api.predicates import condition, is_final, is_ready, is_up_to_date, phase
from .. import kinds
from ..write.guest_power import is_paused
from ..write.outcome import is_observed
from . import guest_goal

if TYPE_CHECKING:
    from ..write.pool_change import Change

CRASHES = 3
"""Consecutive failed starts after which the wait gives up. The control plane continues to retry."""

_VM_CONDITIONS = (condition_types.FAILURE, condition_types.RESTART_REQUIRED)
"""Conditions that only a VM has. Others are read from the instance: a VM may still show those of its last instance."""
_REMEDIES = {condition_types.AGENT_CONNECTED: "install and start qemu-guest-agent in the guest"}
"""What to do about a missing condition."""
_ONE_RUN = (run_strategies.ONCE, run_strategies.RERUN_ON_FAILURE, run_strategies.MANUAL)
"""Strategies that do not start another run after a successful one."""

Object = dict[str, Any]
Condition = tuple[str, str, "str | None"]
"""Type, status and reason (None: any)."""


@dataclass(frozen=True)
class Goal:
    """The state that a wait is for.

    kind: running, stopped, gone or exists; the members of a set (kinds.MEMBERS); a goal of a guest (guest_goal.KINDS).
    """

    kind: str
    not_instance: str | None = None
    """UID of the instance that a restart replaces: it does not count."""
    may_come: bool = False
    """The object may not exist yet."""
    condition: Condition | None = None
    """A condition that the object must also have."""
    uid: str | None = None
    """UID of the object that must be gone: another object of its name does not count."""
    change: Change | None = None
    """A change that the machines of a pool must also take over."""


def goal_of(state: str, vm: Object | None, old_instance_uid: str | None = None) -> Goal | None:
    """Return the goal of a task's state, None if it does not wait."""
    if state == "absent":
        return Goal("gone", uid=((vm or {}).get("metadata") or {}).get("uid"))
    if state == "stopped":
        return Goal("stopped")
    if state in guest_goal.KINDS:
        return Goal(state)
    if state in ("started", "restarted") or old_instance_uid is not None:  # a change may have needed a restart
        return Goal("running", old_instance_uid)
    strategy = run_strategy(vm or {})
    if strategy == run_strategies.MANUAL:
        return None
    return Goal("stopped" if strategy == run_strategies.HALTED else "running")


def judge(goal: Goal, vm: Object | None, vmi: Object | None) -> Verdict:
    """Compare a goal with a VM and its instance, which was read after the VM. For an instance pass it as both."""
    verdict = _judge(goal, vm, vmi)
    if goal.condition is None or vm is None or not verdict.done:
        return verdict
    obj = vm if vmi is None or goal.condition[0] in _VM_CONDITIONS else vmi
    if obj is vm and not is_observed(vm):
        return replace(_lacks(obj, goal.condition), missing="virt-controller has not looked at its latest change")
    return verdict if has_condition(obj, goal.condition) else _lacks(obj, goal.condition)


def _lacks(obj: Object | None, wanted: Condition) -> Verdict:
    """Return the verdict for an object without a condition: what it should be, and what it is."""
    kind, status, reason = wanted
    current = condition(obj or {}, kind)
    text = "missing" if current is None else _status_text(current.get("status"), current.get("reason"))
    remedy = _REMEDIES.get(kind) if status == "True" else None
    return Verdict(
        missing=f"it is {text}" + (f"; {remedy}" if remedy else ""),
        wanted=f"its condition {kind} is not {_status_text(status, reason)}",
    )


def _status_text(status: str | None, reason: str | None) -> str:
    return f"{status} ({reason})" if reason else str(status)


def has_condition(obj: Object | None, wanted: Condition) -> bool:
    """Tell whether a condition matches. A missing condition counts as False, because KubeVirt removes some of them."""
    kind, status, reason = wanted
    current = condition(obj or {}, kind)
    if current is None:
        return status == "False" and reason is None
    return current.get("status") == status and reason in (None, current.get("reason"))


def _judge(goal: Goal, vm: Object | None, vmi: Object | None) -> Verdict:
    if goal.kind == "gone":
        is_other = vm is not None and goal.uid not in (None, vm["metadata"].get("uid"))
        return Verdict(done=vm is None or is_other, missing="it still exists")
    if vm is None:
        hopeless = None if goal.may_come else "somebody deleted it meanwhile"
        return Verdict(hopeless=hopeless, missing="it does not exist")
    if goal.kind in kinds.MEMBERS:
        from . import set_status

        return set_status.judge(vm, goal.kind)
    if goal.kind in guest_goal.KINDS:
        return guest_goal.judge(goal.kind, vmi, may_come=goal.may_come)
    return Verdict(done=True) if goal.kind == "exists" else _judge_power(goal, vm, vmi)


def _judge_power(goal: Goal, vm: Object, vmi: Object | None) -> Verdict:
    if goal.kind == "stopped":
        # The instance of a halted VM is deleted after its guest has ended. The instance of a manual VM stays.
        stopped = vmi is None or (is_final(vmi) and run_strategy(vm) != run_strategies.HALTED)
        return Verdict(done=stopped, missing="the guest is still running")
    return _judge_running(goal, vm, vmi)


def _judge_running(goal: Goal, vm: Object, vmi: Object | None) -> Verdict:
    if is_deleting(vm):
        return Verdict(hopeless="somebody is deleting it")
    if vmi is not None and goal.not_instance is not None and vmi["metadata"].get("uid") == goal.not_instance:
        return Verdict(missing="the old instance still exists")
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
    return phase(vmi) == phases.RUNNING and is_ready(vmi) and is_ready(vm) and _is_status_current(vm)


def _is_status_current(vm: Object) -> bool:
    """Tell whether the status belongs to the current spec. Older KubeVirt does not report it."""
    return "desiredGeneration" not in (vm.get("status") or {}) or is_up_to_date(vm)
