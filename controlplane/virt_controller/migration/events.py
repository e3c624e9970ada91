# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of a migration: pure. The reasons are KubeVirt's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from kubevirt_api.condition_types import POD_SCHEDULED

from controlplane.api.cpu_labels import FEATURE, MIGRATION
from controlplane.api.objects import conditions
from controlplane.api.objects.migration import FAILED, SUCCEEDED
from controlplane.api.objects.migration import VirtualMachineInstanceMigrationStatus as Status
from controlplane.api.objects.pod import sanitize
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.migration.status import why_failed
from controlplane.virt_controller.migration.world import (
    Action,
    CreateTarget,
    DeleteMigration,
    DeleteSource,
    DeleteTarget,
    HandOver,
    RequestAbort,
    World,
)
from controlplane.virt_controller.reporting.refusals import explain_refusal


class MigrationEvent(NamedTuple):
    """An Event to record."""

    kind: Literal["Normal", "Warning"]
    reason: str
    message: str


def unschedulable_event(world: World) -> MigrationEvent:
    """Return the Event for a target Pod that no node fits. A time-out comes later: a node may become free."""
    scheduled = None if world.target is None else conditions.find(world.target.status.conditions, POD_SCHEDULED)
    cause = sanitize(scheduled.message) if scheduled is not None else ""
    message = f"No node fits target Pod {world.target_pod} yet" + (f": {cause}" if cause else "")
    return MigrationEvent("Warning", "migrationTargetPodUnschedulable", message)


def host_cpu_event(world: World, others: Iterable[Mapping[str, str]]) -> MigrationEvent | None:
    """Return the Event for a guest that has its node's CPU and can run on no other node; None if it can.

    others: labels of the other nodes.
    """
    selector = {} if world.target is None else world.target.spec.node_selector
    needed = {name: value for name, value in selector.items() if name.startswith((MIGRATION, FEATURE))}
    if not needed or any(needed.items() <= dict(labels).items() for labels in others):
        return None
    message = (
        f"No other node has the CPU that the guest was started with; it needs the labels {', '.join(sorted(needed))}"
    )
    return MigrationEvent("Warning", "NoSuitableNodesForHostModelMigration", message)


def end_events(world: World, status: Status) -> list[MigrationEvent]:
    """Return the Events for a status that ends the migration; none if it has not ended or had ended before."""
    if status.phase == world.migration.status.phase:
        return []
    if status.phase == SUCCEEDED:
        return [MigrationEvent("Normal", "SuccessfulMigration", "The guest has moved, and its source is gone")]
    if status.phase != FAILED:
        return []
    why = why_failed(world)
    events = [MigrationEvent("Warning", "FailedMigration", f"The guest stays where it is: {why}")]
    if world.is_cancelled:
        events.append(MigrationEvent("Normal", "SuccessfulAbortMigration", "The migration was cancelled"))
    return events


def failure_reason(problem: RefusedStep[Action]) -> str:
    """Return the Event reason for a refused action."""
    match problem.step:
        case CreateTarget():
            return "FailedCreate"
        case DeleteTarget() | DeleteSource() | DeleteMigration():
            return "FailedDelete"
        case HandOver():
            return "FailedHandOver"
        case RequestAbort():
            return "FailedAbortMigration"
    return "FailedUpdate"


def refusal_message(problem: RefusedStep[Action]) -> str:
    """Return the Event message for a refused action, with what to do."""
    return explain_refusal(
        problem.error, made_of="the machine's spec" if isinstance(problem.step, CreateTarget) else ""
    )
