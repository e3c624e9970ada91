# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next actions for a VirtualMachineInstance: pure, a total table by phase.

A guest never runs twice. A run has one Pod at a time. The Pod's name is derived from UID and attempt, and the attempt
is in the status before the Pod is created. The guest starts once, only in the Pod that was granted the start.
Steps that cannot be undone (declaring the Pod lost, removing the VMI's finalizers) need proof: see evidence. A missing
object, in a cache or as a 404 of the API server, does not prove that the guest has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from kubevirt_api import condition_types
from kubevirt_api.names import EVICTED_BY, EVICTION_IN_PROGRESS, NODE_NAME, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import (
    FAILED,
    LAUNCHER_WAITS,
    PENDING,
    RUNNING,
    SCHEDULED,
    SCHEDULING,
    SUCCEEDED,
    UNKNOWN,
    is_final,
)
from controlplane.api.objects.pod import Pod
from controlplane.engine.plan import IndependentActions, Plan, WriteStatus
from controlplane.virt_controller.vmi.evidence import Alive, Unknown
from controlplane.virt_controller.vmi.migration_commit import find_arrived_migration, seconds_until_presumed_dead
from controlplane.virt_controller.vmi.next_attempt import find_retriable_failure
from controlplane.virt_controller.vmi.run_timeout import seconds_left
from controlplane.virt_controller.vmi.waiting import why_wait
from controlplane.virt_controller.vmi.world import (
    Action,
    AddFinalizer,
    AdoptPod,
    AnnotateEviction,
    CommitMigration,
    ConfirmNode,
    ConfirmPodsAbsent,
    CreatePod,
    DeletePod,
    GrantStart,
    LabelNode,
    RemoveFinalizers,
    SetUnpausedCondition,
    World,
    is_adopted,
    is_watched,
)

LABEL_LENGTH = 63
"""Longest value of a label. A node's name may be longer."""


def decide(world: World) -> Plan[Action]:
    """Choose the next actions; none in an unknown phase, which the status reports."""
    rule = RULES.get(world.vmi.status.phase)
    if rule is None:
        return Plan()
    if not is_final(world.vmi.status.phase) and find_arrived_migration(world) is not None:
        return Plan((CommitMigration(because="its guest has moved"),))
    plan = rule.deleted(world) if world.is_deleting else rule.wanted(world)
    remaining = seconds_until_presumed_dead(world)
    return replace(plan, requeue_after=min(remaining, plan.requeue_after or remaining)) if remaining > 0 else plan


def _bring_to_node(world: World) -> Plan[Action]:
    """Bring up a launcher Pod and grant it the start."""
    if VMI_FINALIZER not in world.vmi.metadata.finalizers:
        return Plan((AddFinalizer(because="its Pods must be deleted before it"),))
    if world.problems:
        return Plan((WriteStatus(because="its spec cannot be run"),))
    if world.vmi.status.attempt == 0:
        return Plan((WriteStatus(because="the attempt is recorded before its Pod exists"),))
    pod = world.source
    return _without_pod(world) if pod is None else _with_pod(world, pod)


def _with_pod(world: World, pod: Pod) -> Plan[Action]:
    if not is_adopted(pod, world.vmi):
        return _adopt(pod)
    if find_retriable_failure(world) is not None:
        return Plan((WriteStatus(because="a further attempt is recorded before the Pod of this one is deleted"),))
    if pod.is_deleting or pod.is_over or pod.compute.terminated is not None:
        return Plan((WriteStatus(because="its Pod ended before the guest was started"),))
    if world.must_be_recreated:
        return Plan(
            (WriteStatus(because="the next Pod is recorded before this one, which is not granted, is deleted"),)
        )
    return _grant(world, pod) if pod.is_up else _until_up(world, pod)


def _grant(world: World, pod: Pod) -> Plan[Action]:
    """Grant the start, unless another Pod that has a block device of it must be given up first."""
    if world.claim_writers:
        return Plan((WriteStatus(because="another instance has a Pod with a block device that it writes to"),))
    return Plan((GrantStart(pod, because="its launcher is up"),))


def _until_up(world: World, pod: Pod) -> Plan[Action]:
    """Wait for the launcher until the start timeout."""
    remaining = seconds_left(world)
    if remaining is not None and remaining <= 0:
        return Plan((WriteStatus(because="its launcher did not come up in time"),))
    return Plan(_label(world, pod.spec.node_name).steps, requeue_after=remaining)


def _without_pod(world: World) -> Plan[Action]:
    if world.superseded:
        leaving = [pod for pod in _not_deleted(world) if pod in world.superseded]
        return Plan(tuple(_delete(pod, "a further attempt was begun") for pod in leaving))
    if not world.was_begun:
        if world.attempt > 1 and not world.is_absence_confirmed:
            return Plan((ConfirmPodsAbsent(because="the cache may lack the Pod of an earlier attempt"),))
        because = why_wait(world)
        if because:
            return Plan((WriteStatus(because=because),))
        return Plan((CreatePod(world.attempt, because="the run has no launcher Pod yet"),))
    if not world.is_absence_confirmed:
        return Plan((ConfirmPodsAbsent(because="its Pod is not in the cache"),))
    return Plan((WriteStatus(because="its Pod was deleted before the guest was started"),))


def _watch(world: World) -> Plan[Action]:
    """Watch the granted Pod: the node's virt-handler writes the phase."""
    pod = world.source
    if pod is not None:
        if not is_adopted(pod, world.vmi):
            return _adopt(pod)
        of_pod = (*_set_unpaused(world, pod), *_annotate_eviction(world, pod))
        return Plan((*of_pod, *_label(world, world.vmi.status.node_name).steps))
    return _look_for_proof(world)


def _look_for_proof(world: World) -> Plan[Action]:
    """Find out whether the guest is dead: the granted Pod is not in the cache."""
    evidence, node = world.evidence, world.node
    if isinstance(evidence, Alive):
        return Plan((ConfirmPodsAbsent(because="its Pod is not in the cache"),))
    if isinstance(evidence, Unknown) and node is not None and node.is_to_be_asked_for:
        return Plan((ConfirmNode(node.name, because="the cached state of its node would be proof"),))
    return Plan((WriteStatus(because="its Pod is gone from the API"),))


def _clean_up(world: World) -> Plan[Action]:
    return Plan(tuple(_delete(pod, "the run is over and this Pod was never used") for pod in _unused_pods(world)))


def _end(world: World) -> Plan[Action]:
    """Bring a deleted VMI to its end: first its Pods, then the final status, then the finalizers."""
    if not {VMI_FINALIZER, VM_FINALIZER} & set(world.vmi.metadata.finalizers):
        return Plan()
    if world.pods:
        return _end_pods(world)
    if not world.is_absence_confirmed:
        return Plan((ConfirmPodsAbsent(because="the VMI is removed after its Pods"),))
    if is_final(world.vmi.status.phase):
        return Plan((RemoveFinalizers(because="the run is over and no Pod is left"),))
    if world.is_granted:
        return _look_for_proof(world)
    return Plan((WriteStatus(because="the final status is written before the finalizers are removed"),))


def _end_pods(world: World) -> Plan[Action]:
    unlabelled = next((pod for pod in world.pods if not is_watched(pod)), None)
    if unlabelled is not None:
        return _adopt(unlabelled)
    return Plan(tuple(_delete(pod, "its VMI is deleted") for pod in _not_deleted(world)))


class Rule(NamedTuple):
    """The decisions of a phase."""

    wanted: Callable[[World], Plan[Action]]
    deleted: Callable[[World], Plan[Action]] = _end


RULES: dict[str, Rule] = {
    "": Rule(_bring_to_node),
    PENDING: Rule(_bring_to_node),
    SCHEDULING: Rule(_bring_to_node),
    SCHEDULED: Rule(_watch),
    RUNNING: Rule(_watch),
    UNKNOWN: Rule(_watch),
    SUCCEEDED: Rule(_clean_up),
    FAILED: Rule(_clean_up),
}
"""One row for each phase in controlplane.api.objects.phase.OWNERS."""


def _adopt(pod: Pod) -> Plan[Action]:
    return Plan((AdoptPod(pod.metadata.name, pod.uid, because="it lost its label or its owner"),))


def _set_unpaused(world: World, pod: Pod) -> tuple[IndependentActions[Action], ...]:
    """Let Services send to the Pod that the guest has moved to, unless the guest is paused."""
    is_paused = conditions.is_true(world.vmi.status.conditions, condition_types.PAUSED)
    if is_paused or pod.is_deleting or pod.is_over or not pod.is_kept_from_services:
        return ()
    return (
        IndependentActions((SetUnpausedCondition(pod.metadata.name, pod.uid, because="its guest has moved there"),)),
    )


def _annotate_eviction(world: World, pod: Pod) -> tuple[IndependentActions[Action], ...]:
    """Tell a descheduler that the eviction of this Pod was accepted and is carried out by a migration.

    A value of somebody else stays when the guest does not leave.
    """
    status, value = world.vmi.status, pod.metadata.annotations.get(EVICTION_IN_PROGRESS)
    is_leaving = bool(status.evacuation_node_name) and status.evacuation_node_name == pod.spec.node_name
    if pod.is_deleting or pod.is_over or is_leaving is (value == EVICTED_BY):
        return ()
    because = "its guest is to leave the node" if is_leaving else "its guest stays"
    new = EVICTED_BY if is_leaving else None
    return (IndependentActions((AnnotateEviction(pod.metadata.name, pod.uid, new, because=because),)),)


def _label(world: World, node: str) -> Plan[Action]:
    if not node or len(node) > LABEL_LENGTH or world.vmi.metadata.labels.get(NODE_NAME) == node:
        return Plan()
    return Plan((LabelNode(node, because="its Pod was placed there"),))


def _unused_pods(world: World) -> list[Pod]:
    """List Pods of a finished run in which nothing was started: no other component ends them."""
    granted = () if world.vmi.status.reason in LAUNCHER_WAITS else world.vmi.status.active_pods
    return [pod for pod in _not_deleted(world) if not pod.is_over and pod.uid not in granted]


def _not_deleted(world: World) -> list[Pod]:
    return [pod for pod in world.pods if not pod.is_deleting and pod.uid not in world.deletes_sent]


def _delete(pod: Pod, because: str) -> DeletePod:
    return DeletePod(pod.metadata.name, pod.uid, because=because)
