# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VirtualMachine: pure.

A start costs one write, and one more when the VMI runs. A stop costs one, which says Stopping or Terminating, and not
ready. A VMI that runs but is not declared ready yet (both are written within milliseconds) still counts as starting.
"""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types, printable_statuses
from kubevirt_api.names import TEMPLATE_HASH, VM_GENERATION
from kubevirt_api.run_strategies import ALWAYS, BUILT

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.migration_stage import BEING_SENT, migration_stage
from controlplane.api.objects.phase import PENDING, RUNNING, SCHEDULED, SCHEDULING, is_final
from controlplane.api.objects.readiness import TERMINATING, readiness
from controlplane.api.objects.vm import StartFailure, StateChangeRequest, VirtualMachineStatus
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.start_revision import revision_of_run
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vm import data_volumes
from controlplane.virt_controller.vm.decide import why_start
from controlplane.virt_controller.vm.restart_required import restart_required
from controlplane.virt_controller.vm.start_failure import is_failed_start, next_start_failure
from controlplane.virt_controller.vm.state_change_requests import needs_rerun_request, rerun_requests
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.template_metadata import changed_metadata
from controlplane.virt_controller.vm.world import COUNTED, Action, Ownership, World
from controlplane.virt_controller.vm.write_failure import explain_write_failure

KEPT = frozenset({condition_types.READY, condition_types.FAILURE, condition_types.RESTART_REQUIRED})
"""The VM's own conditions; all others are copied from the VMI."""


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineStatus | None:
    """Return the status to write; None if it is written already."""
    old = world.vm.status
    new = _derive_ending(world, problem) if world.is_vm_deleting else _derive(world, problem)
    return None if new == old else new


def _derive_ending(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineStatus:
    """Derive the status of a VM that is being deleted: what still runs, and what keeps it. It requests nothing more."""
    own, old, stamp = world.own, world.vm.status, format_timestamp(world.now)
    failure = None
    if problem is not None:
        refusal = explain_write_failure(problem)
        failure = _failed(refusal.condition, refusal.message)
    listed = _with_ready(world, stamp)
    return msgspec.structs.replace(
        old,
        created=own is not None,
        ready=conditions.is_true(listed, condition_types.READY),
        printable_status=printable_statuses.TERMINATING,
        conditions=conditions.put_or_remove(listed, condition_types.FAILURE, failure, stamp),
    )


def _derive(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineStatus:
    own, old = world.own, world.vm.status
    failure, listed = next_start_failure(world), _conditions(world, problem)
    return msgspec.structs.replace(
        old,
        created=own is not None,
        ready=conditions.is_true(listed, condition_types.READY),
        printable_status=printable_status(world, failure),
        run_strategy=_recorded_strategy(world),
        observed_generation=_observed_generation(world),
        desired_generation=world.vm.metadata.generation,
        conditions=listed,
        state_change_requests=_requests(world),
        start_revision_name=_start_revision_name(world),
        start_failure=failure,
    )


def printable_status(world: World, failure: StartFailure | None) -> str:
    """Return the first printable status that applies."""
    own = world.own
    phase = own.status.phase if own else ""
    if world.is_vm_deleting:
        return printable_statuses.TERMINATING
    if own is not None and not is_final(phase):
        return printable_statuses.STOPPING if world.is_stopping else _alive_status(world, own)
    if cause := _waiting_status(world, ()):
        return cause
    if failure is not None and failure.consecutive_fail_count > 0 and world.vm.run_strategy in COUNTED:
        return printable_statuses.CRASH_LOOP_BACK_OFF
    return printable_statuses.STOPPED


def _alive_status(world: World, own: VirtualMachineInstance) -> str:
    listed, phase = own.status.conditions, own.status.phase
    if _is_migrating(own):
        return printable_statuses.MIGRATING
    if phase == RUNNING and not _is_readiness_late(own):
        is_paused = conditions.is_true(listed, condition_types.PAUSED)
        return printable_statuses.PAUSED if is_paused else printable_statuses.RUNNING
    if cause := _waiting_status(world, listed):
        return cause
    if phase in ("", PENDING, SCHEDULING, SCHEDULED, RUNNING):
        return printable_statuses.STARTING
    return printable_statuses.UNKNOWN


def _is_migrating(own: VirtualMachineInstance) -> bool:
    return migration_stage(own.status.migration_state, own.status.active_pods) in BEING_SENT


def _waiting_status(world: World, listed: conditions.Conditions) -> str:
    """Return the printable status for the reason why the VMI does not run; "" if no reason is known."""
    synchronized = conditions.find(listed, condition_types.SYNCHRONIZED)
    scheduled = conditions.find(listed, condition_types.POD_SCHEDULED)
    reason = synchronized.reason if synchronized is not None else ""
    is_unplaced = scheduled is not None and (scheduled.status, scheduled.reason) == (
        "False",
        condition_types.UNSCHEDULABLE,
    )
    is_unbound = world.is_volume_unbound and _is_set_to_start(world)
    rows = (
        printable_statuses.PVC_NOT_FOUND if reason == condition_types.FAILED_PVC_NOT_FOUND else "",
        data_volumes.status_word(world, is_error=True),
        printable_statuses.UNSCHEDULABLE if is_unplaced else "",
        data_volumes.status_word(world, is_error=False),
        printable_statuses.WAITING_FOR_VOLUME_BINDING if is_unbound else "",
        reason if reason in (condition_types.ERR_IMAGE_PULL, condition_types.IMAGE_PULL_BACK_OFF) else "",
    )
    return next(filter(None, rows), "")


def _is_set_to_start(world: World) -> bool:
    """Tell whether the VM runs or will run. Otherwise nothing waits for its volumes."""
    if world.own is not None:
        return not is_final(world.own.status.phase) or world.vm.run_strategy == ALWAYS
    return why_start(world) is not None


def _is_readiness_late(own: VirtualMachineInstance) -> bool:
    ready = conditions.find(own.status.conditions, condition_types.READY)
    return ready is not None and ready.reason == condition_types.GUEST_NOT_RUNNING


def _requests(world: World) -> tuple[StateChangeRequest, ...]:
    """Remove the requests that are done; request the next run before a failed VMI is deleted (RerunOnFailure)."""
    if not world.is_strategy_known:
        return world.vm.status.state_change_requests
    if world.own is not None and needs_rerun_request(world, world.own):
        return rerun_requests(world, world.own)
    return world.pending_requests


def _recorded_strategy(world: World) -> str:
    """Record a strategy once it has taken effect: its VMI exists and stays, or it needs no VMI.

    A stopping VMI belongs to the former strategy: the next start is the first one of the new strategy.
    """
    wants_instance = world.vm.run_strategy in COUNTED
    has_instance = world.own is not None and not world.is_stopping
    if world.is_strategy_known and (has_instance or not wants_instance):
        return world.vm.run_strategy
    return world.vm.status.run_strategy


def _observed_generation(world: World) -> int:
    """Return the generation that runs. Without a VMI it stays as recorded, and it never decreases during a run.

    It could decrease when the template changes after the run strategy: the VMI has only the older generation.
    """
    generation, old, newest = _instance_generation(world), world.vm.status, world.vm.metadata.generation
    if not generation:
        return old.observed_generation
    is_of_this_run = old.created and old.observed_generation <= newest
    return max(generation, old.observed_generation) if is_of_this_run else generation


def _instance_generation(world: World) -> int:
    """Return the VMI's generation: the newest that has its template, else the one it was created from.

    0 if the annotation is missing or not a generation of the VM.
    """
    annotations = world.own.metadata.annotations if world.own else {}
    text, newest = annotations.get(VM_GENERATION, ""), world.vm.metadata.generation
    if text != str(newest) and _has_template(world):
        return newest
    # The length is limited because int() raises for a very long annotation.
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(newest))
    return int(text) if is_number and int(text) <= newest else 0


def _start_revision_name(world: World) -> str:
    """Return the revision that the VMI names, or will name with its first status: that saves a write."""
    own, old = world.own, world.vm.status.start_revision_name
    if own is None:
        return old
    return (own.status.virtual_machine_revision_name if own.status.phase else revision_of_run(own.metadata)) or old


def _has_template(world: World) -> bool:
    """Tell whether the VMI has the VM's template, labels and annotations that act included."""
    if world.own is None or world.own.metadata.annotations.get(TEMPLATE_HASH) != template_hash(world.template):
        return False
    return not changed_metadata(world.vm.spec.template.metadata, world.own.metadata)


def _conditions(world: World, problem: RefusedStep[Action] | None) -> conditions.Conditions:
    stamp = format_timestamp(world.now)
    listed = _with_ready(world, stamp)
    own_conditions = {
        condition_types.FAILURE: _failure(world, problem),
        condition_types.RESTART_REQUIRED: restart_required(world),
    }
    for kind, condition in own_conditions.items():
        listed = conditions.put_or_remove(listed, kind, condition, stamp)
    return listed


def _with_ready(world: World, stamp: str) -> conditions.Conditions:
    """Return the VM's conditions with the VMI's, and Ready."""
    vmi_conditions = world.own.status.conditions if world.own is not None else ()
    listed = _with_copies_of(world.vm.status.conditions, vmi_conditions)
    return conditions.put(listed, _ready(world.own, is_stopping=world.is_stopping), stamp)


def _with_copies_of(listed: conditions.Conditions, source: conditions.Conditions) -> conditions.Conditions:
    """Copy the VMI's conditions unchanged, and drop copies of conditions that it does not have any more."""
    by_type = {condition.type: condition for condition in source if condition.type not in KEPT}
    remaining = tuple(
        _newer(condition, by_type.get(condition.type))
        for condition in listed
        if condition.type in KEPT or condition.type in by_type
    )
    kept_types = {condition.type for condition in remaining}
    return (*remaining, *(copied for kind, copied in by_type.items() if kind not in kept_types))


def _newer(current: Condition, of_vmi: Condition | None) -> Condition:
    """Keep the VM's condition if the VMI's is equivalent."""
    if of_vmi is None or conditions.is_equivalent(current, of_vmi):
        return current
    return of_vmi


def _ready(own: VirtualMachineInstance | None, *, is_stopping: bool) -> Condition:
    if own is None:
        return Condition(
            type=condition_types.READY,
            status="False",
            reason=condition_types.VMI_NOT_EXISTS,
            message="VMI does not exist",
        )
    ready = conditions.find(own.status.conditions, condition_types.READY)
    if ready is not None and ready.status == "True" and is_stopping:
        return TERMINATING  # the VMI says so next, which then changes nothing here
    if ready is not None:
        return ready
    if not own.status.phase:
        return readiness("", None)  # equals the VMI's first status, which saves a write
    return Condition(
        type=condition_types.READY,
        status="False",
        reason="VMIConditionMissing",
        message="VMI does not say whether it is ready",
    )


def _failure(world: World, problem: RefusedStep[Action] | None) -> Condition | None:
    if problem is not None:
        refusal = explain_write_failure(problem)
        return _failed(refusal.condition, refusal.message)
    strategy = world.vm.run_strategy
    if not world.is_strategy_known:
        message = f"this version does not know run strategy {strategy[:64]!r} and does nothing; "
        return _failed(
            "UnknownRunStrategy", message + f"upgrade the control plane, or choose one of {', '.join(BUILT)}"
        )
    if world.claim is Ownership.FOREIGN and why_start(world) is not None:
        message = "cannot create the instance: another object owns an instance of this name; delete that one first"
        return _failed(condition_types.FAILED_CREATE, message)
    obstacle = data_volumes.why_unusable(world)
    if obstacle is not None:
        return _failed(condition_types.FAILED_DATA_VOLUME_CREATE, f"cannot create its DataVolumes: {obstacle}")
    return _failed_start(world)


def _failed_start(world: World) -> Condition | None:
    """Return why the last start failed, until the next one begins. The failed VMI may not exist any more."""
    own = world.own
    if own is not None and is_failed_start(world, own):
        synchronized = conditions.find(own.status.conditions, condition_types.SYNCHRONIZED)
        message = (
            f"{synchronized.reason}: {synchronized.message}"
            if synchronized is not None
            else "its instance ended before the guest ran"
        )
        return _failed(condition_types.FAILED_START, message)
    is_waiting = (own is None or is_final(own.status.phase)) and next_start_failure(world) is not None
    failure = conditions.find(world.vm.status.conditions, condition_types.FAILURE)
    return failure if is_waiting and failure is not None and failure.reason == condition_types.FAILED_START else None


def _failed(reason: str, message: str) -> Condition:
    return Condition(type=condition_types.FAILURE, status="True", reason=reason, message=message)
