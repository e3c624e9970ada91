# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VirtualMachineInstance that virt-controller writes. Pure.

Up to phase Scheduled, virt-controller writes the whole status; granting the start is an action (`grant`). After that,
virt-handler writes it. virt-controller then writes only the Pod's readiness, the end of a run whose Pod ended or was
deleted, and a silent virt-handler (`silent_handler`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import (
    BEFORE_HAND_OVER,
    FAILED,
    PENDING,
    SCHEDULED,
    SCHEDULING,
    UNKNOWN,
    is_allowed_transition,
    is_final,
    is_known_phase,
)
from controlplane.api.objects.pod import Failure, Pod, find_end_failure, find_start_failure
from controlplane.api.objects.readiness import readiness
from controlplane.api.objects.vmi.instance import (
    CpuTopology,
    MemoryStatus,
    PhaseTransition,
    VirtualMachineInstanceStatus,
)
from controlplane.api.start_revision import revision_of_run
from controlplane.api.timestamps import format_timestamp
from controlplane.domain.layout import UID
from controlplane.domain.migratable import method_of
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.hotplug.cpu import cpu_change
from controlplane.virt_controller.hotplug.memory import memory_change
from controlplane.virt_controller.reporting.refusals import explain_refusal
from controlplane.virt_controller.vmi.controller_state import EVENT_REASONS
from controlplane.virt_controller.vmi.disruption import with_disruption
from controlplane.virt_controller.vmi.evidence import Dead, Unknown
from controlplane.virt_controller.vmi.migration_commit import find_arrived_migration, seconds_until_presumed_dead
from controlplane.virt_controller.vmi.next_attempt import (
    explain_next_attempt,
    find_retriable_failure,
    record_failed_attempt,
)
from controlplane.virt_controller.vmi.resources import describe_overhead
from controlplane.virt_controller.vmi.run_timeout import find_timeout
from controlplane.virt_controller.vmi.silent_handler import with_silent_handler
from controlplane.virt_controller.vmi.volumes import failed_import, missing_claim, volume_status, with_data_volumes
from controlplane.virt_controller.vmi.waiting import what_it_waits_for, why_wait
from controlplane.virt_controller.vmi.world import Action, CreatePod, World

EVICTION_REQUESTED = "EvictionRequested"


class NextPhase(NamedTuple):
    """The phase to enter, and the failure that caused it, if any."""

    phase: str
    trouble: Failure | None = None


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceStatus | None:
    """Return the status to write; None if it is written already. Final phases are never left."""
    old = world.vmi.status
    if is_final(old.phase):
        return _no_longer_ready(world)
    if not is_known_phase(old.phase):
        return _unknown_phase(world)
    step = next_phase(world)
    new = old if step.phase == old.phase else _enter(world, step)
    if new.node_name not in ("", new.evacuation_node_name):
        # A client that had read the VMI before the migration wrote the evacuation.
        new = msgspec.structs.replace(new, evacuation_node_name="")
    failure = find_retriable_failure(world)
    if failure is not None:
        new = record_failed_attempt(world, failure, new)
    elif world.must_be_recreated and new is old:
        new = msgspec.structs.replace(old, attempt=world.attempt + 1)
    new = msgspec.structs.replace(new, conditions=_conditions(world, step, problem, new))
    return None if new == old else new


def _no_longer_ready(world: World) -> VirtualMachineInstanceStatus | None:
    """Set Ready to false if the writer of the final phase did not."""
    old = world.vmi.status
    if not conditions.is_true(old.conditions, condition_types.READY):
        return None
    listed = conditions.put(old.conditions, readiness(old.phase, None), _now(world))
    return msgspec.structs.replace(old, conditions=listed)


def _unknown_phase(world: World) -> VirtualMachineInstanceStatus | None:
    """Report a phase that this version does not know."""
    old = world.vmi.status
    message = f"this version of the control plane does not know phase {old.phase[:64]!r} and does nothing"
    listed = conditions.put(
        old.conditions, _false(condition_types.SYNCHRONIZED, Failure("UnknownPhase", message)), _now(world)
    )
    return None if listed is old.conditions else msgspec.structs.replace(old, conditions=listed)


def grant(world: World, pod: Pod) -> VirtualMachineInstanceStatus:
    """Grant the start to this Pod on its node: phase, owner and epoch change in one write, once per run."""
    old, node = world.vmi.status, pod.spec.node_name
    granted = msgspec.structs.replace(
        _moved(world, NextPhase(SCHEDULED)),
        node_name=node,
        active_pods={pod.uid: node},
        epoch=old.epoch + 1,
        qos_class=pod.status.qos_class,
        volume_status=volume_status(world),
        migration_method=method_of(world.vmi),
        migration_transport="Unix",
        launcher_container_image_version=pod.launcher_image,
    )
    listed = conditions.put(granted.conditions, _ready(world, SCHEDULED), _now(world))
    for kind in (condition_types.POD_SCHEDULED, condition_types.SYNCHRONIZED):
        listed = conditions.remove(listed, kind)
    return msgspec.structs.replace(granted, conditions=listed)


def next_phase(world: World) -> NextPhase:
    """Return the phase that the VMI belongs in."""
    before = world.vmi.status.phase
    step = _before_hand_over(world) if before in BEFORE_HAND_OVER else _after_hand_over(world)
    return step if is_allowed_transition(before, step.phase) else NextPhase(before)


def _before_hand_over(world: World) -> NextPhase:
    pod = world.source
    if pod is None:
        return _without_pod(world)
    if find_retriable_failure(world) is not None:
        return NextPhase(SCHEDULING)
    if pod.is_over or pod.compute.terminated is not None:
        return NextPhase(FAILED, find_end_failure(pod))
    if pod.is_deleting:
        return NextPhase(FAILED, Failure("PodDeleted", "the launcher Pod was deleted before the guest was started"))
    timeout = find_timeout(world)
    return NextPhase(SCHEDULING) if timeout is None else NextPhase(FAILED, timeout)


def _without_pod(world: World) -> NextPhase:
    phase = world.vmi.status.phase
    if world.is_deleting:
        ended = NextPhase(FAILED, Failure("Deleted", "the VMI was deleted before its guest was started"))
        return ended if world.is_absence_confirmed else NextPhase(phase)
    if world.was_begun and world.is_absence_confirmed:
        return NextPhase(FAILED, Failure("PodDeleted", "the launcher Pod was deleted before the guest was started"))
    # next_phase keeps a run in Scheduling there: no phase goes back to Pending.
    if world.problems:
        return NextPhase(PENDING)
    import_failure = failed_import(world)
    # If a Pod was created, it may still come up, even if the cache lacks it.
    if import_failure is not None and not world.was_begun:
        return NextPhase(FAILED, import_failure)
    if not world.was_begun and why_wait(world):
        return NextPhase(PENDING)
    # Scheduling records the attempt: its Pod may exist from now on. So the finalizer must exist before.
    return NextPhase(SCHEDULING if VMI_FINALIZER in world.vmi.metadata.finalizers else phase)


def _after_hand_over(world: World) -> NextPhase:
    if find_arrived_migration(world) is not None or seconds_until_presumed_dead(world) > 0:
        return NextPhase(world.vmi.status.phase)
    match world.evidence:
        case Dead(outcome=outcome, trouble=trouble):
            return NextPhase(outcome, trouble)
        case Unknown(trouble=trouble):
            return NextPhase(UNKNOWN, trouble)
    return NextPhase(world.vmi.status.phase)


def _enter(world: World, step: NextPhase) -> VirtualMachineInstanceStatus:
    moved = _moved(world, step)
    return _begun(world, moved) if step.phase == SCHEDULING else moved


def _moved(world: World, step: NextPhase) -> VirtualMachineInstanceStatus:
    old = world.vmi.status
    return msgspec.structs.replace(
        old,
        phase=step.phase,
        virtual_machine_revision_name=(
            old.virtual_machine_revision_name if old.phase else revision_of_run(world.vmi.metadata)
        ),
        reason=step.trouble.reason if step.trouble else "",
        phase_transition_timestamps=_transitions(old, step.phase, _now(world)),
    )


def _begun(world: World, new: VirtualMachineInstanceStatus) -> VirtualMachineInstanceStatus:
    """Record the attempt and the resources that its Pod will have."""
    domain = world.vmi.spec.domain
    guest_memory, cpu = domain.memory.guest if domain.memory else None, domain.cpu
    return msgspec.structs.replace(
        new,
        attempt=world.attempt,
        runtime_user=UID,
        memory=None
        if guest_memory is None
        else MemoryStatus(
            guest_at_boot=guest_memory,
            guest_requested=guest_memory,
            memory_overhead=describe_overhead(domain, world.configuration.developer_configuration),
        ),
        current_cpu_topology=None if cpu is None else CpuTopology.of(cpu),
        volume_status=volume_status(world),
    )


def _transitions(old: VirtualMachineInstanceStatus, phase: str, stamp: str) -> tuple[PhaseTransition, ...]:
    """Append the phase. The first write also appends Pending, which comes before it."""
    entered = [transition.phase for transition in old.phase_transition_timestamps]
    due = [
        entered_phase
        for entered_phase in ((PENDING, phase) if not old.phase else (phase,))
        if entered_phase not in entered
    ]
    added = (
        PhaseTransition(phase=entered_phase, phase_transition_timestamp=stamp) for entered_phase in dict.fromkeys(due)
    )
    return (*old.phase_transition_timestamps, *added)


def _conditions(
    world: World, step: NextPhase, problem: RefusedStep[Action] | None, new: VirtualMachineInstanceStatus
) -> conditions.Conditions:
    stamp = _now(world)
    listed = conditions.put(world.vmi.status.conditions, _ready(world, step.phase), stamp)
    listed = conditions.put_or_remove(listed, condition_types.POD_SCHEDULED, _unplaced(world, step.phase), stamp)
    listed = with_disruption(listed, world, stamp)
    listed = conditions.put_or_remove(listed, EVICTION_REQUESTED, _eviction_requested(world, new), stamp)
    listed = conditions.put_or_remove(listed, condition_types.HOT_VCPU_CHANGE, cpu_change(world.vmi), stamp)
    listed = conditions.put_or_remove(listed, condition_types.HOT_MEMORY_CHANGE, memory_change(world.vmi), stamp)
    if world.vmi.status.phase in BEFORE_HAND_OVER:
        listed = with_data_volumes(listed, world, stamp)
    trouble = _trouble(world, step, problem, new)
    if trouble is not None:
        condition = _false(condition_types.SYNCHRONIZED, trouble)
        if new.failed_attempts != world.vmi.status.failed_attempts:
            listed, condition = _ignoring_numbers(listed, condition)
        return conditions.put(listed, condition, stamp)
    if world.vmi.status.phase in BEFORE_HAND_OVER:
        return conditions.remove(listed, condition_types.SYNCHRONIZED)
    # virt-handler owns Synchronized after the hand-over.
    return with_silent_handler(listed, world.node, step.phase, stamp)


def _ignoring_numbers(listed: conditions.Conditions, condition: Condition) -> tuple[conditions.Conditions, Condition]:
    """Ignore differences in numbers when comparing a condition with its predecessor."""
    old = conditions.find(listed, condition.type)
    if old is None or old.status != condition.status:
        return listed, condition
    since = msgspec.structs.replace(condition, last_transition_time=old.last_transition_time)
    return conditions.remove(listed, condition.type), since


def _ready(world: World, phase: str) -> Condition:
    is_paused = conditions.is_true(world.vmi.status.conditions, condition_types.PAUSED)
    return readiness(phase, world.source, is_paused=is_paused, is_deleting=world.is_deleting)


def _eviction_requested(world: World, status: VirtualMachineInstanceStatus) -> Condition | None:
    """Report that the VMI has to leave its node: virt-api requested that at the eviction of its Pod.

    That lasts after a drain was given up, so the message says how to take it back.
    """
    node = status.evacuation_node_name
    if not node:
        return None
    meta = world.vmi.metadata
    message = f"it is to leave node {node}; to let it stay: virtctl evacuate-cancel vmi {meta.name} -n {meta.namespace}"
    return Condition(type=EVICTION_REQUESTED, status="True", reason=EVICTION_REQUESTED, message=message)


def _unplaced(world: World, phase: str) -> Condition | None:
    if world.source is None and phase in (PENDING, SCHEDULING) and (missing := missing_claim(world)) is not None:
        return _false(condition_types.POD_SCHEDULED, Failure(condition_types.UNSCHEDULABLE, missing.message))
    if world.source is None or phase != SCHEDULING:
        return None
    scheduled = conditions.find(world.source.status.conditions, condition_types.POD_SCHEDULED)
    if scheduled is None or scheduled.status != "False":
        return None
    return _false(condition_types.POD_SCHEDULED, Failure(scheduled.reason, scheduled.message))


def _trouble(
    world: World, step: NextPhase, problem: RefusedStep[Action] | None, new: VirtualMachineInstanceStatus
) -> Failure | None:
    if step.trouble is not None:
        return step.trouble
    if step.phase not in BEFORE_HAND_OVER:
        return None
    if world.problems:
        return Failure(condition_types.INVALID_SPEC, "the spec cannot be run: " + "; ".join(world.problems))
    if problem is not None and not _is_for_former_attempt(world, problem):
        return Failure(refusal_reason(problem), refusal_message(problem))
    pod, failed, waits_for = world.source, new.failed_attempts, what_it_waits_for(world)
    if waits_for is not None or pod is None or failed != world.vmi.status.failed_attempts:
        return waits_for or explain_next_attempt(world, failed)
    return find_start_failure(pod, world.event_troubles.get(pod.uid) or _former_trouble(world)) or explain_next_attempt(
        world, failed
    )


def _is_for_former_attempt(world: World, problem: RefusedStep[Action]) -> bool:
    """Tell whether the refused Pod is of a former attempt: another leader has begun the next one."""
    return isinstance(problem.step, CreatePod) and problem.step.attempt < world.attempt


def _former_trouble(world: World) -> Failure | None:
    """Return the failure that the former leader reported from Events: the kubelet repeats Events rarely."""
    synchronized = conditions.find(world.vmi.status.conditions, condition_types.SYNCHRONIZED)
    return (
        Failure(synchronized.reason, synchronized.message)
        if synchronized is not None and synchronized.reason in EVENT_REASONS
        else None
    )


def refusal_reason(problem: RefusedStep[Action]) -> str:
    """Return the reason of a refused action, for the condition and the Event."""
    return condition_types.FAILED_CREATE if isinstance(problem.step, CreatePod) else condition_types.FAILED_UPDATE


def refusal_message(problem: RefusedStep[Action]) -> str:
    """Return the message of a refused action, with what to do, for the condition and the Event."""
    return explain_refusal(problem.error, made_of="the machine's spec" if isinstance(problem.step, CreatePod) else "")


def _false(kind: str, trouble: Failure) -> Condition:
    return Condition(type=kind, status="False", reason=trouble.reason, message=trouble.message)


def _now(world: World) -> str:
    return format_timestamp(world.now)
