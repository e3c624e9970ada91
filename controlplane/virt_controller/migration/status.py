# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a migration: pure, a total table by phase. Final phases are never left."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

import msgspec

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.migration import (
    FAILED,
    FINAL,
    PENDING,
    PREPARING_TARGET,
    RUNNING,
    SCHEDULED,
    SCHEDULING,
    SUCCEEDED,
    TARGET_READY,
    UNSET,
    VirtualMachineInstanceMigrationStatus,
)
from controlplane.api.objects.vmi.status import PhaseTransition
from controlplane.api.timestamps import format_timestamp, read_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.migration.generated_migrations import remaining_seconds
from controlplane.virt_controller.migration.world import Action, CreateTarget, World
from controlplane.virt_controller.reporting.refusals import explain_refusal

ABORT_REQUESTED, BY_QUOTA = "migrationAbortRequested", "migrationRejectedByResourceQuota"
_QUOTA = ("exceeded quota", "failed quota")
"""Words of a ResourceQuota that has no room, or that asks for a limit which the Pod does not have."""
UNSCHEDULABLE_SECONDS, PENDING_SECONDS, PREPARE_SECONDS = 300.0, 900.0, 150.0
"""Limits for a target Pod without a node, a target Pod that does not come up, and virt-handlers that do not begin."""
BLOCKING_SECONDS = 30.0
"""Limit for a target Pod without a node that blocks other migrations."""
UNSCHEDULABLE = "no node was found for the target Pod in time"
UNSCHEDULABLE_BLOCKS_OTHERS = "no node was found for the target Pod, and other migrations wait"
YIELDS_TO_NAMESPACE = "the target Pod did not come up, and migrations of a namespace with fewer of them wait"
LATE = "the target Pod did not come up in time"
CANCELLED = "the migration was cancelled"
LOST_OWNER = "the owner reference of the target Pod was removed"
YIELD_SECONDS = 180.0
"""Limit for a target Pod that does not come up while a namespace with fewer running migrations waits. It also bounds
the annotations of a target Pod without a node that blocks others."""
LONGEST_SECONDS = 3600.0
"""Upper bound of the annotations: a waiting target Pod takes one of the few parallel migrations."""
UNSCHEDULABLE_TIMEOUT = "kubevirt.io/migrationUnschedulablePodTimeoutSeconds"
PENDING_TIMEOUT = "kubevirt.io/migrationPendingPodTimeoutSeconds"


class NextPhase(NamedTuple):
    """The phase to enter, and why the migration failed, if it did."""

    phase: str
    why: str = ""


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceMigrationStatus | None:
    """Return the status to write; None if the written status is right."""
    old = world.migration.status
    if old.phase not in NEXT:
        return None
    step = next_phase(world)
    new = old if step.phase == old.phase else _enter(world, step)
    listed = _conditions(world, new, problem)
    if listed is not new.conditions:
        new = msgspec.structs.replace(new, conditions=listed)
    if new.phase in FINAL and world.state is not None and new.migration_state != world.state:
        new = msgspec.structs.replace(new, migration_state=world.state)
    return None if new == old else new


def next_phase(world: World) -> NextPhase:
    """Return the phase that the migration belongs in."""
    phase = world.migration.status.phase
    if phase in FINAL:
        return NextPhase(phase)
    why = why_failed(world)
    return NextPhase(FAILED, why) if why else NextPhase(NEXT[phase](world))


def why_failed(world: World) -> str:
    """Return why the migration has failed; "" if it has not. The first match wins."""
    state, vmi_failure = world.state, unconfirmed_failure(world)
    if vmi_failure:
        return vmi_failure if world.is_vmi_confirmed else ""
    if world.is_committed:
        return ""
    if state is not None:
        return (state.failure_reason or "it failed") if state.failed else ""
    return _why_not_handed_over(world)


def unconfirmed_failure(world: World) -> str:
    """Return why the cached VMI ends the migration; "" if it does not.

    The API server has to confirm this VMI: the cache may predate the migration or the hand-over.
    """
    vmi, is_mine = world.vmi, world.state is not None
    if world.is_committed:
        return ""
    if vmi is None:
        return "the VirtualMachineInstance is gone"
    reasons = {
        "the VirtualMachineInstance is over": world.is_vmi_final,
        "another migration has taken its place": not is_mine and world.migration.status.phase in HANDED_OVER,
        "the VirtualMachineInstance is in another migration": world.other_under_way,
        "the VirtualMachineInstance is being deleted": not is_mine and vmi.metadata.deletion_timestamp is not None,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _why_not_handed_over(world: World) -> str:
    phase, preceding_migration = world.migration.status.phase, world.preceding_migration
    if world.is_cancelled:
        return CANCELLED
    if preceding_migration is not None:
        return f"the VirtualMachineInstance is in another migration, {preceding_migration.metadata.name}"
    if world.is_target_down:
        return "the target Pod has ended"
    if world.is_target_absent and phase in (SCHEDULING, SCHEDULED):
        return "the target Pod is gone"
    if world.unowned_target is not None and phase in (SCHEDULING, SCHEDULED):
        return LOST_OWNER
    return _why_late(world)


def _why_late(world: World) -> str:
    pod = world.target
    if world.migration.status.phase == SCHEDULED:
        is_late = _is_past(world, SCHEDULED, PREPARE_SECONDS)
        return "the VirtualMachineInstance does not run" if is_late and not world.can_move else ""
    if pod is None or pod.is_up:
        return ""
    if world.should_yield and _is_past(world, SCHEDULING, YIELD_SECONDS):
        return YIELDS_TO_NAMESPACE
    default, upper_bound = (BLOCKING_SECONDS, YIELD_SECONDS) if world.blocks_others else (UNSCHEDULABLE_SECONDS, inf)
    limit = min(upper_bound, _limit(world, UNSCHEDULABLE_TIMEOUT, default))
    if not pod.spec.node_name and _is_past(world, SCHEDULING, limit):
        return UNSCHEDULABLE_BLOCKS_OTHERS if world.blocks_others else UNSCHEDULABLE
    return LATE if _is_past(world, SCHEDULING, _limit(world, PENDING_TIMEOUT, PENDING_SECONDS)) else ""


def _is_past(world: World, phase: str, limit: float) -> bool:
    """Tell whether the migration has been in a phase for longer than the limit."""
    return remaining_in_phase(world, phase, limit) == 0.0


def remaining_in_phase(world: World, phase: str, limit: float) -> float | None:
    """Return the rest of a limit in seconds; None if the phase was never entered."""
    for transition in world.migration.status.phase_transition_timestamps:
        if transition.phase == phase and (entered := read_timestamp(transition.phase_transition_timestamp)) is not None:
            return remaining_seconds(limit, world.now - entered)
    return None


def seconds_left(world: World) -> float | None:
    """Return in how many seconds the current limit ends; None if the phase has none."""
    match world.migration.status.phase:
        case "Scheduling":
            limit = _limit(world, PENDING_TIMEOUT, PENDING_SECONDS)
            if world.target is not None and not world.target.spec.node_name:
                limit = min(limit, _limit(world, UNSCHEDULABLE_TIMEOUT, UNSCHEDULABLE_SECONDS))
            return remaining_in_phase(world, SCHEDULING, limit)
        case "Scheduled":
            return remaining_in_phase(world, SCHEDULED, PREPARE_SECONDS)
        case "PreparingTarget" | "TargetReady":
            return remaining_in_phase(world, PREPARING_TARGET, PREPARE_SECONDS)
    return None


def _limit(world: World, annotation: str, default: float) -> float:
    text = world.migration.metadata.annotations.get(annotation, "")
    return min(LONGEST_SECONDS, float(text)) if text.isascii() and text.isdecimal() and len(text) < 99 else default


def _unset(_unused: World) -> str:
    return PENDING


def _pending(world: World) -> str:
    has_target = (world.target or world.unowned_target) is not None
    return SCHEDULING if has_target or world.has_created_target or world.state is not None else PENDING


def _scheduling(world: World) -> str:
    is_up = world.target is not None and world.target.is_up
    return SCHEDULED if is_up or world.state is not None else SCHEDULING


def _scheduled(world: World) -> str:
    return PREPARING_TARGET if world.state is not None else SCHEDULED


def _preparing(world: World) -> str:
    state = world.state
    is_ready = state is not None and (state.target_node_address or state.start_timestamp or world.is_committed)
    return TARGET_READY if is_ready else PREPARING_TARGET


def _ready(world: World) -> str:
    state = world.state
    return RUNNING if state is not None and (state.start_timestamp or world.is_committed) else TARGET_READY


def _running(world: World) -> str:
    return SUCCEEDED if world.is_committed else RUNNING


NEXT: dict[str, Callable[[World], str]] = {
    UNSET: _unset,
    PENDING: _pending,
    SCHEDULING: _scheduling,
    SCHEDULED: _scheduled,
    PREPARING_TARGET: _preparing,
    TARGET_READY: _ready,
    RUNNING: _running,
    SUCCEEDED: lambda _unused: SUCCEEDED,
    FAILED: lambda _unused: FAILED,
}
"""One row per phase: the next phase while nothing has failed."""
HANDED_OVER = frozenset({PREPARING_TARGET, TARGET_READY, RUNNING})


def _enter(world: World, step: NextPhase) -> VirtualMachineInstanceMigrationStatus:
    old = world.migration.status
    stamp = PhaseTransition(phase=step.phase, phase_transition_timestamp=format_timestamp(world.now))
    times = old.phase_transition_timestamps
    return msgspec.structs.replace(
        old,
        phase=step.phase,
        phase_transition_timestamps=times
        if any(transition.phase == step.phase for transition in times)
        else (*times, stamp),
    )


def _conditions(
    world: World, new: VirtualMachineInstanceMigrationStatus, problem: RefusedStep[Action] | None
) -> conditions.Conditions:
    listed, stamp = new.conditions, format_timestamp(world.now)
    if world.is_cancelled and new.phase != SUCCEEDED:
        listed = conditions.put(listed, Condition(type=ABORT_REQUESTED, status="True"), stamp)
    refused = problem is not None and isinstance(problem.step, CreateTarget)
    if refused and problem is not None and any(words in str(problem.error) for words in _QUOTA):
        message = explain_refusal(problem.error)[:1024]
        condition = Condition(type=BY_QUOTA, status="True", reason="ExceededQuota", message=message)
        return conditions.put(listed, condition, stamp)
    is_target_created = new.phase not in (UNSET, PENDING)
    return conditions.remove(listed, BY_QUOTA) if is_target_created else listed
