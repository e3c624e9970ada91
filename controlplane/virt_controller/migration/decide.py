# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next actions for a migration: pure, a total table by phase.

Guests are never touched. A target Pod is deleted only after its migration failed and no guest can be in it: the VMI
reports the failure, or the hand-over was never written. A source Pod is deleted only after the commit.
"""

from __future__ import annotations

from collections.abc import Callable

from kubevirt_api.names import MIGRATION_FINALIZER

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
    VirtualMachineInstanceMigration,
)
from controlplane.api.objects.pod import Pod
from controlplane.engine.plan import Plan, WriteStatus
from controlplane.virt_controller.migration.status import (
    BLOCKING_SECONDS,
    CANCELLED,
    LOST_OWNER,
    next_phase,
    seconds_left,
    unconfirmed_failure,
)
from controlplane.virt_controller.migration.world import (
    FINISHED_KEPT,
    LABEL_LENGTH,
    Action,
    AddFinalizer,
    ConfirmPodAbsent,
    ConfirmVmi,
    CreateTarget,
    DeleteMigration,
    DeleteSource,
    DeleteTarget,
    FailMigration,
    HandOver,
    LabelTarget,
    RemoveFinalizer,
    RemoveTargetLabel,
    ReportUnschedulable,
    RequestAbort,
    World,
)


def decide(world: World) -> Plan[Action]:
    """Choose the next actions; none in an unknown phase."""
    phase = world.migration.status.phase
    rule = RULES.get(phase)
    if rule is None:
        return Plan()
    if phase not in FINAL and unconfirmed_failure(world) and not world.is_vmi_confirmed:
        return Plan((ConfirmVmi(because=f"it seems that {unconfirmed_failure(world)}"),))
    if phase not in FINAL and next_phase(world).phase != phase:
        return Plan((WriteStatus(because="its status is outdated"),))
    return rule(world)


def _begin(world: World) -> Plan[Action]:
    """Create the target Pod when the migration may begin."""
    if MIGRATION_FINALIZER not in world.migration.metadata.finalizers:
        return Plan((AddFinalizer(because="its objects must be cleaned up before it is removed"),))
    if not world.may_begin or not world.can_move:
        return Plan()
    return Plan((CreateTarget(because="the limits and the queue allow it to begin"),))


def _wait(world: World) -> Plan[Action]:
    if world.target is None:
        return Plan((_confirm_pod_absent(world.target_pod),))
    if world.is_unschedulable and not world.is_unschedulable_reported:
        return Plan((ReportUnschedulable(because="no node fits its target Pod yet"),))
    remaining = seconds_left(world)
    if remaining is not None:  # meanwhile, other migrations may begin to wait, and nothing enqueues this one
        remaining = min(remaining, BLOCKING_SECONDS + 1.0)
    return Plan(requeue_after=remaining)


def _hand_over(world: World) -> Plan[Action]:
    pod = world.target
    if pod is None:
        return Plan((_confirm_pod_absent(world.target_pod),))
    if pod.is_deleting or not pod.is_up:
        return Plan()
    if not world.can_move:
        return Plan(requeue_after=seconds_left(world))
    return Plan((HandOver(pod, because="the target's launcher is up"),))


def _follow(world: World) -> Plan[Action]:
    """Observe a migration that the two virt-handlers carry out."""
    state = world.state
    if state is None or state.is_over:
        return Plan()
    if world.is_target_down:
        return Plan((FailMigration("the target Pod is down", because="its Pod has ended"),))
    if state.start_timestamp is None:
        return _until_begun(world)
    if world.is_cancelled and not state.abort_requested:
        return Plan((RequestAbort(because="it is being deleted"),))
    return Plan(_label(world).steps)


def _until_begun(world: World) -> Plan[Action]:
    """Fail a migration that does not begin. If a virt-handler begins it meanwhile, this write gets a conflict."""
    remaining = seconds_left(world)
    failure = _failure_before_begin(world, remaining)
    if failure is not None:
        return Plan((failure,))
    if world.target is None:
        return Plan((_confirm_pod_absent(world.target_pod),))
    return Plan(_label(world).steps, requeue_after=remaining)


def _failure_before_begin(world: World, remaining: float | None) -> FailMigration | None:
    if world.is_cancelled:
        return FailMigration(CANCELLED, because="it is being deleted")
    if world.vmi is not None and world.vmi.metadata.deletion_timestamp is not None:
        return FailMigration("the VirtualMachineInstance is being deleted", because="its VMI is being deleted")
    if remaining is not None and remaining <= 0:
        return FailMigration("it did not begin in time", because="no virt-handler has started it")
    if world.unowned_target is not None:
        return FailMigration(LOST_OWNER, because="its owner reference was removed")
    if world.is_target_absent:
        return FailMigration("the target Pod is gone", because="it was deleted")
    return None


def _label(world: World) -> Plan[Action]:
    node = "" if world.state is None else world.state.target_node
    if not node or len(node) > LABEL_LENGTH or world.target_label == node:
        return Plan()
    return Plan((LabelTarget(node, because="other clients read it"),))


def _clean_up_target(world: World) -> Plan[Action]:
    """Clean up after a failed migration."""
    state, pod = world.state, world.target or world.unowned_target
    if state is not None and state.is_under_way and state.start_timestamp is None:
        return Plan((FailMigration("it failed before it began", because="it is over"),))
    if world.vmi is not None and pod is None and not world.is_target_absent and not _is_released(world):
        return Plan((_confirm_pod_absent(world.target_pod),))
    is_unused = pod is not None and (state is None or state.failed) and not _has_the_guest(world, pod)
    if pod is not None and is_unused and _is_not_deleted(world, pod):
        return Plan((DeleteTarget(pod.metadata.name, pod.uid, because="its migration has failed"),))
    return _end(world)


def _clean_up_source(world: World) -> Plan[Action]:
    """Clean up after a successful migration."""
    pod, last_state = world.source, world.last_state
    name = "" if last_state is None else last_state.source_pod
    if pod is None and name and name not in world.absent and world.vmi is not None and not _is_released(world):
        return Plan((_confirm_pod_absent(name),))
    if pod is not None and not _has_the_guest(world, pod) and _is_not_deleted(world, pod):
        return Plan((DeleteSource(pod.metadata.name, pod.uid, because="the guest runs on the target"),))
    return _end(world)


def _end(world: World) -> Plan[Action]:
    if world.state is not None and world.target_label:
        return Plan((RemoveTargetLabel(because="its migration is over"),))
    if not _is_released(world):
        return Plan((RemoveFinalizer(because="everything is cleaned up"),))
    meta = world.migration.metadata
    if meta.deletion_timestamp is not None or meta.uid in world.deletes_sent:
        return Plan()
    if world.vmi is None:
        if not world.is_vmi_confirmed:
            return Plan((ConfirmVmi(because="its VMI seems to be gone"),))
        return Plan((DeleteMigration(meta.name, meta.uid, because="its VMI is gone"),))
    old = _older_than_kept(world)
    return Plan(
        tuple(
            DeleteMigration(
                migration.metadata.name, migration.metadata.uid, because=f"{FINISHED_KEPT} newer ones are kept"
            )
            for migration in old
        )
    )


def _confirm_pod_absent(name: str) -> ConfirmPodAbsent:
    return ConfirmPodAbsent(name, because="its Pod is not in the cache")


def _is_released(world: World) -> bool:
    """Tell whether the finalizer is removed: the clean-up is finished."""
    return MIGRATION_FINALIZER not in world.migration.metadata.finalizers


def _has_the_guest(world: World, pod: Pod) -> bool:
    return world.vmi is not None and pod.uid in world.vmi.status.active_pods


def _older_than_kept(world: World) -> list[VirtualMachineInstanceMigration]:
    finished = [migration for migration in (*world.others, world.migration) if migration.status.phase in FINAL]
    finished.sort(key=lambda migration: (migration.metadata.creation_timestamp or "", migration.metadata.uid))
    if finished[-1].metadata.uid != world.uid:
        return []  # only the newest finished migration deletes the old ones
    return [migration for migration in finished[:-FINISHED_KEPT] if migration.metadata.deletion_timestamp is None]


def _is_not_deleted(world: World, pod: Pod) -> bool:
    return not pod.is_deleting and pod.uid not in world.deletes_sent


RULES: dict[str, Callable[[World], Plan[Action]]] = {
    UNSET: lambda _unused: Plan((WriteStatus(because="it is new"),)),
    PENDING: _begin,
    SCHEDULING: _wait,
    SCHEDULED: _hand_over,
    PREPARING_TARGET: _follow,
    TARGET_READY: _follow,
    RUNNING: _follow,
    SUCCEEDED: _clean_up_source,
    FAILED: _clean_up_target,
}
"""One row for every phase."""
