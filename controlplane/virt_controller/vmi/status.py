# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a VirtualMachineInstance is, as far as virt-controller says it: pure.

Up to phase Scheduled everything is said here. From then on virt-handler speaks; what remains ours is the Pod's
readiness and the end of a run whose Pod has ended or is gone.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import NODE_NAME, VMI_FINALIZER

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import (
    BEFORE_HAND_OVER,
    FAILED,
    PENDING,
    SCHEDULED,
    SCHEDULING,
    SUCCEEDED,
    is_final,
    may_move,
)
from controlplane.api.objects.pod import Pod, Trouble, find_end_trouble, find_start_trouble
from controlplane.api.objects.readiness import readiness
from controlplane.api.objects.vmi.instance import (
    CpuTopology,
    MemoryStatus,
    PhaseTransition,
    VirtualMachineInstanceStatus,
)
from controlplane.domain.layout import UID
from controlplane.engine.plan import Problem
from controlplane.virt_controller.stamps import render_stamp
from controlplane.virt_controller.vmi.world import Action, CreatePod, World


class Step(NamedTuple):
    """The phase to be in, and what went wrong if that is the reason."""

    phase: str
    trouble: Trouble | None = None


def derive_status(world: World, problem: Problem[Action] | None) -> VirtualMachineInstanceStatus | None:
    """Compute the status; None when the written one is right already. Final phases are never left."""
    old = world.vmi.status
    if is_final(old.phase):
        return _no_longer_ready(world)
    step = next_step(world)
    new = old if step.phase == old.phase else _enter(world, step)
    if not world.is_deleting or is_final(new.phase):
        new = msgspec.structs.replace(new, conditions=_conditions(world, step, problem))
    return None if new == old else new


def _no_longer_ready(world: World) -> VirtualMachineInstanceStatus | None:
    """Take back a readiness that the writer of the final phase has left standing."""
    old = world.vmi.status
    if not conditions.is_true(old.conditions, condition_types.READY):
        return None
    listed = conditions.put(old.conditions, readiness(old.phase, None), render_stamp(world.now))
    return msgspec.structs.replace(old, conditions=listed)


def next_step(world: World) -> Step:
    """Say which phase the VMI belongs in."""
    before = world.vmi.status.phase
    step = _before_hand_over(world) if before in BEFORE_HAND_OVER else _after_hand_over(world)
    return step if may_move(before, step.phase) else Step(before)


def _before_hand_over(world: World) -> Step:
    pod, phase = world.pod, world.vmi.status.phase
    if pod is None:
        return _without_pod(world)
    if pod.is_over or pod.compute.terminated is not None:
        return Step(FAILED, find_end_trouble(pod))
    if pod.is_deleting:
        return Step(FAILED, Trouble("PodDeleted", "the launcher Pod was deleted before the guest was started"))
    if phase != SCHEDULING:
        return Step(SCHEDULING)
    is_labelled = bool(pod.spec.node_name) and world.vmi.metadata.labels.get(NODE_NAME) == pod.spec.node_name
    return Step(SCHEDULED if pod.is_up and is_labelled and not world.is_deleting else SCHEDULING)


def _without_pod(world: World) -> Step:
    phase = world.vmi.status.phase
    if world.is_deleting:
        ended = Step(FAILED, Trouble("Deleted", "the VMI was deleted before its guest was started"))
        return ended if world.is_absence_confirmed else Step(phase)
    if world.problems or world.squatter:
        return Step(phase or PENDING)
    # Scheduling says: this attempt is recorded, its Pod may exist from now on. Not before the finalizer protects it.
    return Step(SCHEDULING if VMI_FINALIZER in world.vmi.metadata.finalizers else phase)


def _after_hand_over(world: World) -> Step:
    pod, phase = world.pod, world.vmi.status.phase
    if pod is None:
        lost = Step(FAILED, Trouble("PodNotFound", "the launcher Pod is gone"))
        return lost if world.is_absence_confirmed else Step(phase)
    match pod.status.phase:
        case "Succeeded":
            return Step(SUCCEEDED)
        case "Failed":
            return Step(FAILED, find_end_trouble(pod))
    return Step(phase)


def _enter(world: World, step: Step) -> VirtualMachineInstanceStatus:
    old, spec = world.vmi.status, world.vmi.spec
    stamp = render_stamp(world.now)
    new = msgspec.structs.replace(
        old,
        phase=step.phase,
        reason=step.trouble.reason if step.trouble else old.reason,
        phase_transition_timestamps=_transitions(old, step.phase, stamp),
    )
    if step.phase == SCHEDULING:
        memory = spec.domain.memory.guest if spec.domain.memory else None
        cpu = spec.domain.cpu
        return msgspec.structs.replace(
            new,
            epoch=world.epoch,
            runtime_user=UID,
            memory=None if memory is None else MemoryStatus(guest_at_boot=memory, guest_requested=memory),
            current_cpu_topology=None
            if cpu is None
            else CpuTopology(cores=max(cpu.cores, 1), sockets=max(cpu.sockets, 1), threads=max(cpu.threads, 1)),
        )
    if step.phase == SCHEDULED and world.pod is not None:
        return _handed_over(new, world.pod)
    return new


def _handed_over(new: VirtualMachineInstanceStatus, pod: Pod) -> VirtualMachineInstanceStatus:
    """Grant the start to exactly this Pod on its node. Written once per run."""
    return msgspec.structs.replace(
        new,
        node_name=pod.spec.node_name,
        active_pods={pod.metadata.uid: pod.spec.node_name},
        qos_class=pod.status.qos_class,
        launcher_container_image_version=pod.launcher_image,
    )


def _transitions(old: VirtualMachineInstanceStatus, phase: str, stamp: str) -> tuple[PhaseTransition, ...]:
    """Append the phase, and Pending before the first one: it is passed through in the same write."""
    entered = [one.phase for one in old.phase_transition_timestamps]
    due = [one for one in ((PENDING, phase) if not old.phase else (phase,)) if one not in entered]
    added = (PhaseTransition(phase=one, phase_transition_timestamp=stamp) for one in dict.fromkeys(due))
    return (*old.phase_transition_timestamps, *added)


def _conditions(world: World, step: Step, problem: Problem[Action] | None) -> conditions.Conditions:
    stamp = render_stamp(world.now)
    listed = conditions.put(world.vmi.status.conditions, _ready(world, step.phase), stamp)
    unplaced = _unplaced(world, step.phase)
    listed = (
        conditions.remove(listed, condition_types.POD_SCHEDULED)
        if unplaced is None
        else conditions.put(listed, unplaced, stamp)
    )
    trouble = _trouble(world, step, problem)
    if trouble is not None:
        return conditions.put(listed, _false(condition_types.SYNCHRONIZED, trouble), stamp)
    if world.vmi.status.phase in BEFORE_HAND_OVER:
        return conditions.remove(listed, condition_types.SYNCHRONIZED)
    return listed  # virt-handler's from the hand-over on


def _ready(world: World, phase: str) -> Condition:
    pod = world.pod
    if pod is None:
        return readiness(phase, None)
    return readiness(phase, pod.status.conditions, is_pod_deleting=pod.is_deleting)


def _unplaced(world: World, phase: str) -> Condition | None:
    if world.pod is None or phase != SCHEDULING:
        return None
    theirs = conditions.find(world.pod.status.conditions, condition_types.POD_SCHEDULED)
    if theirs is None or theirs.status != "False":
        return None
    return _false(condition_types.POD_SCHEDULED, Trouble(theirs.reason, theirs.message))


def _trouble(world: World, step: Step, problem: Problem[Action] | None) -> Trouble | None:
    if step.trouble is not None:
        return step.trouble
    if step.phase not in BEFORE_HAND_OVER:
        return None
    if world.problems:
        return Trouble("InvalidSpec", "the spec cannot be run: " + "; ".join(world.problems))
    if world.squatter:
        return Trouble(condition_types.FAILED_CREATE, world.squatter)
    if problem is not None and isinstance(problem.step, CreatePod):
        return Trouble(condition_types.FAILED_CREATE, str(problem.error))
    return find_start_trouble(world.pod) if world.pod is not None else None


def _false(kind: str, trouble: Trouble) -> Condition:
    return Condition(type=kind, status="False", reason=trouble.reason, message=trouble.message)
