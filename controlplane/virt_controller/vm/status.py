# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a VirtualMachine is, in the words of its status: pure.

One write tells a start, one tells that it runs: a deleting VM gets nothing but its word, and an instance that already
runs but is not yet declared ready (both are written within milliseconds) is still told as starting.
"""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types, printable_statuses
from kubevirt_api.names import VM_GENERATION
from kubevirt_api.run_strategies import RERUN_ON_FAILURE

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import FAILED, PENDING, RUNNING, SCHEDULED, SCHEDULING, is_final
from controlplane.api.objects.readiness import readiness
from controlplane.api.objects.vm import StartFailure, StateChangeRequest, VirtualMachineStatus
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.plan import Problem
from controlplane.virt_controller.stamps import render_stamp
from controlplane.virt_controller.vm.decide import is_failed_start, why_start
from controlplane.virt_controller.vm.world import COUNTED, Action, Claim, CreateVmi, DeleteVmi, World, has_run

CRASH_BASE_SECONDS = 10
CRASH_CAP_SECONDS = 300
KEPT = frozenset({condition_types.READY, condition_types.FAILURE, condition_types.RESTART_REQUIRED})
"""Conditions of the VM's own; every other is the instance's."""


def derive_status(world: World, problem: Problem[Action] | None) -> VirtualMachineStatus | None:
    """Compute the status; None when the written one is right already."""
    old = world.vm.status
    if world.is_vm_deleting:
        new = msgspec.structs.replace(old, printable_status=printable_statuses.TERMINATING)
    else:
        new = _derive(world, problem)
    return None if new == old else new


def _derive(world: World, problem: Problem[Action] | None) -> VirtualMachineStatus:
    own, old = world.own, world.vm.status
    failure = next_start_failure(world)
    return msgspec.structs.replace(
        old,
        created=own is not None,
        ready=own is not None and conditions.is_true(own.status.conditions, condition_types.READY),
        printable_status=printable_status(world, failure),
        run_strategy=_recorded_strategy(world),
        observed_generation=_observed_generation(own) or old.observed_generation,
        desired_generation=world.vm.metadata.generation,
        conditions=_conditions(world, problem),
        state_change_requests=_requests(world),
        start_failure=failure,
    )


def printable_status(world: World, failure: StartFailure | None) -> str:
    """Return the first word of the table that fits."""
    own = world.own
    phase = own.status.phase if own else ""
    if world.is_vm_deleting:
        return printable_statuses.TERMINATING
    if own is not None and not is_final(phase):
        return printable_statuses.STOPPING if world.is_stopping else _alive_status(own)
    if failure is not None and failure.consecutive_fail_count > 0 and world.vm.run_strategy in COUNTED:
        return printable_statuses.CRASH_LOOP_BACK_OFF
    return printable_statuses.STOPPED


def _alive_status(own: VirtualMachineInstance) -> str:
    listed, phase = own.status.conditions, own.status.phase
    if phase == RUNNING and not _is_readiness_late(own):
        paused = conditions.is_true(listed, condition_types.PAUSED)
        return printable_statuses.PAUSED if paused else printable_statuses.RUNNING
    unplaced = conditions.find(listed, condition_types.POD_SCHEDULED)
    if unplaced is not None and (unplaced.status, unplaced.reason) == ("False", condition_types.UNSCHEDULABLE):
        return printable_statuses.UNSCHEDULABLE
    unsynced = conditions.find(listed, condition_types.SYNCHRONIZED)
    if unsynced is not None and unsynced.reason in (
        condition_types.ERR_IMAGE_PULL,
        condition_types.IMAGE_PULL_BACK_OFF,
    ):
        return unsynced.reason
    if phase in ("", PENDING, SCHEDULING, SCHEDULED, RUNNING):
        return printable_statuses.STARTING
    return printable_statuses.UNKNOWN


def _is_readiness_late(own: VirtualMachineInstance) -> bool:
    ready = conditions.find(own.status.conditions, condition_types.READY)
    return ready is not None and ready.reason == condition_types.GUEST_NOT_RUNNING


def next_start_failure(world: World) -> StartFailure | None:
    """Count an instance that ended before it ran, once; forget all when one runs or the strategy does not care.

    The next start waits 10 s, doubling with each failure in a row, at most 300 s.
    """
    own, old = world.own, world.vm.status.start_failure
    if world.vm.run_strategy not in COUNTED or (own is not None and has_run(own)):
        return None
    if own is None or not is_failed_start(world, own) or (old and old.last_failed_vmi_uid == own.metadata.uid):
        return old
    count = (old.consecutive_fail_count if old else 0) + 1
    delay = min(CRASH_CAP_SECONDS, CRASH_BASE_SECONDS * 2 ** min(count - 1, 10))
    return StartFailure(
        consecutive_fail_count=count,
        last_failed_vmi_uid=own.metadata.uid,
        retry_after_timestamp=render_stamp(world.now + delay),
    )


def _requests(world: World) -> tuple[StateChangeRequest, ...]:
    """Drop what is done; a failed run under RerunOnFailure asks for the next one before it is deleted."""
    pending, own = world.pending_requests, world.own
    failed = own is not None and own.status.phase == FAILED and not world.is_stopping
    if failed and world.vm.run_strategy == RERUN_ON_FAILURE and not pending:
        return (StateChangeRequest(action="Start"),)
    return pending


def _recorded_strategy(world: World) -> str:
    """Record a strategy when it was acted on: its instance exists, or it wants none."""
    wants_instance = world.vm.run_strategy in COUNTED
    if world.own is not None or not wants_instance:
        return world.vm.run_strategy
    return world.vm.status.run_strategy


def _observed_generation(own: VirtualMachineInstance | None) -> int:
    text = own.metadata.annotations.get(VM_GENERATION, "") if own else ""
    return int(text) if text.isdecimal() else 0


def _conditions(world: World, problem: Problem[Action] | None) -> conditions.Conditions:
    stamp = render_stamp(world.now)
    listed = world.vm.status.conditions
    if world.own is not None:
        listed = _mirrored(listed, world.own.status.conditions)
    listed = conditions.put(listed, _ready(world.own), stamp)
    failure = _failure(world, problem)
    if failure is None:
        return conditions.remove(listed, condition_types.FAILURE)
    return conditions.put(listed, failure, stamp)


def _mirrored(listed: conditions.Conditions, source: conditions.Conditions) -> conditions.Conditions:
    """Copy the instance's conditions verbatim. Without an instance they stay: they say how the last run went."""
    theirs = {one.type: one for one in source if one.type not in KEPT}
    held = tuple(_newer(one, theirs.get(one.type)) for one in listed if one.type in KEPT or one.type in theirs)
    known = {one.type for one in held}
    return (*held, *(one for kind, one in theirs.items() if kind not in known))


def _newer(ours: Condition, theirs: Condition | None) -> Condition:
    """Take over a condition whose status or reason differs; a new message alone is not worth a write."""
    if theirs is None or (ours.status, ours.reason) == (theirs.status, theirs.reason):
        return ours
    return theirs


def _ready(own: VirtualMachineInstance | None) -> Condition:
    if own is None:
        return Condition(
            type=condition_types.READY,
            status="False",
            reason=condition_types.VMI_NOT_EXISTS,
            message="VMI does not exist",
        )
    theirs = conditions.find(own.status.conditions, condition_types.READY)
    if theirs is not None:
        return theirs
    if not own.status.phase:
        return readiness("", None)  # what its first status will say: not worth a write in between
    return Condition(
        type=condition_types.READY,
        status="False",
        reason="VMIConditionMissing",
        message="VMI does not say whether it is ready",
    )


def _failure(world: World, problem: Problem[Action] | None) -> Condition | None:
    if problem is not None:
        match problem.step:
            case CreateVmi():
                reason = condition_types.FAILED_CREATE
            case DeleteVmi():
                reason = "FailedDelete"
            case _:
                reason = "FailedUpdateError"
        return Condition(type=condition_types.FAILURE, status="True", reason=reason, message=str(problem.error))
    if world.claim is Claim.FOREIGN and why_start(world) is not None:
        message = "cannot create the instance: one of this name exists and belongs to another object; delete it first"
        return Condition(
            type=condition_types.FAILURE, status="True", reason=condition_types.FAILED_CREATE, message=message
        )
    return None
