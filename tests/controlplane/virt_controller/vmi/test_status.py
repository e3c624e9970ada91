# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of a VMI's status that virt-controller writes, as tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import msgspec
import pytest
from kubevirt_api.condition_types import UNPAUSED

from controlplane.api.objects import conditions
from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.api.objects.phase import FINAL, TRANSITIONS, is_allowed_transition
from controlplane.api.objects.pod import Failure
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.engine.errors import Forbidden
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.status import derive_status, grant, next_phase
from controlplane.virt_controller.vmi.world import AddFinalizer, CreatePod, World
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    STAMP,
    UP,
    a_condition,
    a_moved_pod,
    a_pod,
    a_running_pod,
    a_vmi,
    vmi_world,
)

S = {"phase": "Scheduling", "attempt": 1}
GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
ABSENT = {"is_absence_confirmed": True}
HERE = NodeState("node-1")
GONE = NodeState("node-1", is_unseen=True, is_gone=True)
OFF = NodeState("node-1", is_out_of_service=True)
ENDED = {"terminated": {"exitCode": 1, "message": "volume root: not a disk image"}}
LABELLED = a_vmi(node="node-1", **S)

PHASES: dict[str, tuple[World, str, str]] = {
    # world, phase, reason
    "fresh": (vmi_world(a_vmi()), "Scheduling", ""),
    "fresh, without finalizer": (vmi_world(a_vmi(finalizers=())), "", ""),
    "fresh, spec is wrong": (vmi_world(a_vmi(), problems=("x",)), "Pending", ""),
    "fresh, a Pod is there already": (vmi_world(a_vmi(), a_running_pod()), "Scheduling", ""),
    "fresh, deleted, not yet asked": (vmi_world(a_vmi(deleting=True)), "", ""),
    "fresh, deleted": (vmi_world(a_vmi(deleting=True), **ABSENT), "Failed", "Deleted"),
    "no Pod yet": (vmi_world(a_vmi(**S)), "Scheduling", ""),
    "Pod pending": (vmi_world(LABELLED, a_pod(node="node-1")), "Scheduling", ""),
    "Pod was deleted, not yet asked": (vmi_world(LABELLED, was_begun=True), "Scheduling", ""),
    "Pod was deleted": (vmi_world(LABELLED, was_begun=True, **ABSENT), "Failed", "PodDeleted"),
    "Pod not made yet, asked": (vmi_world(a_vmi(**S), **ABSENT), "Scheduling", ""),
    "Pod running, launcher not": (vmi_world(LABELLED, a_pod("Running", node="node-1")), "Scheduling", ""),
    "Pod up: the grant is an action, not a status": (vmi_world(LABELLED, a_running_pod()), "Scheduling", ""),
    "Pod up, VMI deleted": (vmi_world(a_vmi(node="node-1", deleting=True, **S), a_running_pod()), "Scheduling", ""),
    "Pod going": (vmi_world(LABELLED, a_running_pod(deleting=True)), "Failed", "PodDeleted"),
    "Pod failed": (vmi_world(LABELLED, a_pod("Failed", node="node-1", compute=ENDED)), "Failed", "LauncherFailed"),
    "launcher ended": (vmi_world(LABELLED, a_pod("Running", node="node-1", compute=ENDED)), "Failed", "LauncherFailed"),
    "Pod refused by the kubelet": (
        vmi_world(LABELLED, a_pod("Failed", reason="UnexpectedAdmissionError", message="no kvm")),
        "Failed",
        "UnexpectedAdmissionError",
    ),
    "scheduled, Pod up": (vmi_world(a_vmi("Scheduled", **GRANTED), a_running_pod()), "Scheduled", ""),
    "running, Pod going": (vmi_world(a_vmi("Running", **GRANTED), a_running_pod(deleting=True)), "Running", ""),
    "running, Pod succeeded": (vmi_world(a_vmi("Running", **GRANTED), a_pod("Succeeded")), "Succeeded", ""),
    "running, Pod failed": (
        vmi_world(a_vmi("Running", **GRANTED), a_pod("Failed", compute=ENDED)),
        "Failed",
        "LauncherFailed",
    ),
    "running, Pod not seen": (vmi_world(a_vmi("Running", **GRANTED)), "Running", ""),
    "running, Pod gone, no proof": (
        vmi_world(a_vmi("Running", **GRANTED), node=HERE, **ABSENT),
        "Unknown",
        "LauncherLost",
    ),
    "running, Pod and Node gone": (vmi_world(a_vmi("Running", **GRANTED), node=GONE, **ABSENT), "Failed", "NodeGone"),
    "unknown, node out of service": (
        vmi_world(a_vmi("Unknown", **GRANTED), node=OFF, **ABSENT),
        "Failed",
        "NodeOutOfService",
    ),
    "unknown, the Pod is seen again": (vmi_world(a_vmi("Unknown", **GRANTED), a_running_pod()), "Unknown", ""),
    "scheduled, Pod gone, deleted": (
        vmi_world(a_vmi("Scheduled", deleting=True, **GRANTED), node=HERE, **ABSENT),
        "Unknown",
        "LauncherLost",
    ),
    "running, Pod removed after its end": (
        vmi_world(a_vmi("Running", **GRANTED), last_words=(a_pod("Succeeded"),), **ABSENT),
        "Succeeded",
        "",
    ),
    "running, another Pod of it was removed after its end": (
        vmi_world(a_vmi("Running", **GRANTED), last_words=(a_pod("Succeeded", uid="another"),), node=HERE, **ABSENT),
        "Unknown",
        "LauncherLost",
    ),
    "running, the Pod is there again after a no": (
        vmi_world(a_vmi("Running", **GRANTED), a_running_pod(), node=HERE, **ABSENT),
        "Running",
        "",
    ),
    "failed, whatever comes later": (vmi_world(a_vmi("Failed", **GRANTED), a_pod("Succeeded")), "Failed", ""),
    "running, a migration's target failed": (
        vmi_world(a_vmi("Running", **GRANTED), a_running_pod(), a_pod("Failed", uid="t", attempt=2)),
        "Running",
        "",
    ),
    "running, OOM": (
        vmi_world(
            a_vmi("Running", **GRANTED),
            a_pod("Failed", compute={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        ),
        "Failed",
        "OOMKilled",
    ),
}


@pytest.mark.parametrize(("world", "phase", "reason"), PHASES.values(), ids=PHASES.keys())
def test_the_next_phase(world: World, phase: str, reason: str) -> None:
    step = next_phase(world)
    assert (step.phase, step.trouble.reason if step.trouble else "") == (phase, reason)


PODS = {
    "none": (),
    "pending": (a_pod(node="node-1"),),
    "up": (a_running_pod(),),
    "going": (a_running_pod(deleting=True),),
    "succeeded": (a_pod("Succeeded", compute={"terminated": {"exitCode": 0}}),),
    "failed": (a_pod("Failed", compute=ENDED),),
}


@pytest.mark.parametrize("phase", TRANSITIONS, ids=lambda phase: phase or "none")
def test_phases_follow_the_table_in_every_world(phase: str) -> None:
    """The full product of phases, Pods, deletion, nodes and knowledge."""
    for pods, deleting, node, absent, begun in product(
        PODS.values(), (False, True), (None, HERE, GONE, OFF), (False, True), (False, True)
    ):
        vmi = a_vmi(phase, deleting=deleting, **(GRANTED if phase not in ("", "Pending", "Scheduling") else {}))
        world = vmi_world(vmi, *pods, node=node, is_absence_confirmed=absent and not pods, was_begun=begun)
        status = derive_status(world, None)
        after = phase if status is None else status.phase
        assert is_allowed_transition(phase, after)
        assert phase not in FINAL or after == phase


def derived(world: World) -> VirtualMachineInstanceStatus:
    """The status that is written; a second pass has nothing to add to it."""
    status = derive_status(world, None)
    assert status is not None
    again = replace(world, vmi=msgspec.structs.replace(world.vmi, status=status), now=world.now + 100)
    if status.phase == world.vmi.status.phase or status.phase != "Scheduling":
        assert derive_status(again, None) is None
    return status


def test_the_first_write_records_attempt_and_both_phases() -> None:
    status = derived(vmi_world(a_vmi()))
    assert (status.attempt, status.epoch) == (1, 0)
    assert [transition.phase for transition in status.phase_transition_timestamps] == ["Pending", "Scheduling"]
    assert {transition.phase_transition_timestamp for transition in status.phase_transition_timestamps} == {STAMP}
    assert (status.runtime_user, status.memory and status.memory.guest_at_boot) == (107, "64Mi")


@pytest.mark.parametrize(
    ("cpu", "topology"),
    [(None, None), ({}, (1, 1, 1)), ({"cores": 2, "sockets": 3, "threads": 4}, (2, 3, 4)), ({"sockets": 3}, (1, 3, 1))],
)
def test_the_first_write_records_the_cpu_topology(
    cpu: dict[str, int] | None, topology: tuple[int, int, int] | None
) -> None:
    domain = {"memory": {"guest": "64Mi"}, **({} if cpu is None else {"cpu": cpu})}
    recorded = derived(vmi_world(a_vmi(spec={"domain": domain}))).current_cpu_topology
    assert (recorded and (recorded.cores, recorded.sockets, recorded.threads)) == topology


def test_the_start_is_granted_to_exactly_one_pod_in_one_write() -> None:
    old = a_vmi(conditions=[a_condition("PodScheduled", "False", "Unschedulable")], **S)
    status = grant(vmi_world(old, a_running_pod()), a_running_pod())
    assert (status.phase, status.node_name, status.active_pods) == ("Scheduled", "node-1", {POD_UID: "node-1"})
    assert (status.attempt, status.epoch) == (1, 1)
    assert status.launcher_container_image_version == "launcher:1"
    assert [condition.type for condition in status.conditions] == ["Ready"]
    granted = msgspec.structs.replace(old, status=status)
    assert derive_status(vmi_world(granted, a_running_pod()), None) is None


@pytest.mark.parametrize("kind", ["PodScheduled", "Synchronized"])
def test_the_grant_removes_the_start_trouble(kind: str) -> None:
    """In the same write: nobody else would remove the condition after the hand-over."""
    old = a_vmi(conditions=[a_condition(kind, "False", "ErrImagePull")], **S)
    assert [condition.type for condition in grant(vmi_world(old, a_running_pod()), a_running_pod()).conditions] == [
        "Ready"
    ]


def test_a_grant_replaces_the_former_pod() -> None:
    vmi = a_vmi(activePods={"another": "node-2"}, epoch=7, **S)
    granted = grant(vmi_world(vmi, a_running_pod()), a_running_pod())
    assert (granted.active_pods, granted.epoch) == ({POD_UID: "node-1"}, 8)


def test_the_reason_of_a_phase_is_removed_with_it() -> None:
    """Otherwise a run that was lost and has succeeded would report a lost launcher forever."""
    lost = a_vmi("Unknown", reason="LauncherLost", **GRANTED)
    status = derived(vmi_world(lost, a_pod("Succeeded")))
    assert (status.phase, status.reason) == ("Succeeded", "")


@pytest.mark.parametrize("phase", sorted(FINAL))
def test_a_final_status_is_not_changed(phase: str) -> None:
    for pod in (a_running_pod(), a_pod("Succeeded"), a_pod("Failed", compute=ENDED)):
        assert derive_status(vmi_world(a_vmi(phase, **GRANTED), pod), None) is None


@pytest.mark.parametrize("phase", ["WaitingForSync", "Bogus"])
def test_an_unknown_phase_is_kept_and_reported(phase: str) -> None:
    status = derive_status(vmi_world(a_vmi(phase, **GRANTED)), None)
    assert status is not None
    assert (status.phase, status.active_pods) == (phase, {POD_UID: "node-1"})
    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Synchronized", "False", "UnknownPhase")
    assert phase in condition.message
    again = msgspec.structs.replace(a_vmi(phase, **GRANTED), status=status)
    assert derive_status(vmi_world(again), None) is None


def test_nothing_is_written_between_the_first_phase_and_the_grant() -> None:
    """Budget: the Pod's creation and placement change nothing in the VMI's status."""
    first = derived(vmi_world(a_vmi()))
    vmi = msgspec.structs.replace(a_vmi(), status=first)
    for pod in (a_pod(), a_pod(node="node-1"), a_pod("Running", node="node-1", compute=UP)):
        assert derive_status(vmi_world(vmi, pod), None) is None


WAITING = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
UNPLACED = (a_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available"),)
MOUNT = Failure("FailedMount", 'secret "seed" not found')
NO_SECRET = {POD_UID: MOUNT}
QUOTA = RefusedStep(CreatePod(1, because="x"), Forbidden("exceeded quota: pods=5"))

TROUBLES: dict[str, tuple[World, RefusedStep[Any] | None, tuple[str, str, str] | None]] = {
    "no image": (
        vmi_world(LABELLED, a_pod(compute=WAITING)),
        None,
        ("Synchronized", "ImagePullBackOff", "no such image"),
    ),
    "being created": (vmi_world(LABELLED, a_pod(compute=CREATING)), None, None),
    "no Secret": (
        vmi_world(LABELLED, a_pod(compute=CREATING), event_troubles=NO_SECRET),
        None,
        ("Synchronized", "FailedMount", 'secret "seed" not found'),
    ),
    "no Secret, and no container yet": (
        vmi_world(LABELLED, a_pod(), event_troubles=NO_SECRET),
        None,
        ("Synchronized", "FailedMount", 'secret "seed" not found'),
    ),
    "no Secret at first": (vmi_world(LABELLED, a_running_pod(), event_troubles=NO_SECRET), None, None),
    "no Secret for another Pod": (
        vmi_world(LABELLED, a_pod(compute=CREATING), event_troubles={"other": MOUNT}),
        None,
        None,
    ),
    "no image after no Secret": (
        vmi_world(LABELLED, a_pod(compute=WAITING), event_troubles=NO_SECRET),
        None,
        ("Synchronized", "ImagePullBackOff", "no such image"),
    ),
    "no node": (
        vmi_world(a_vmi(**S), a_pod(conditions=UNPLACED)),
        None,
        ("PodScheduled", "Unschedulable", "0/3 nodes are available"),
    ),
    "no node, and failed since": (
        vmi_world(a_vmi(**S), a_pod("Failed", conditions=UNPLACED, compute=ENDED)),
        None,
        ("Synchronized", "LauncherFailed", "volume root: not a disk image"),
    ),
    "it has a node": (vmi_world(LABELLED, a_pod(conditions=(a_condition("PodScheduled", "True"),))), None, None),
    "it has a node, and nobody knows": (
        vmi_world(LABELLED, a_pod(conditions=(a_condition("PodScheduled", "Unknown"),))),
        None,
        None,
    ),
    "Pod refused": (vmi_world(a_vmi(**S)), QUOTA, ("Synchronized", "FailedCreate", "exceeded quota: pods=5")),
    "label refused": (
        vmi_world(a_vmi(**S)),
        RefusedStep(AddFinalizer("x"), Forbidden("no")),
        ("Synchronized", "FailedUpdate", "no"),
    ),
    "spec is wrong": (
        vmi_world(a_vmi(), problems=("spec.domain.memory.guest: is negative",)),
        None,
        ("Synchronized", "InvalidSpec", "the spec cannot be run: spec.domain.memory.guest: is negative"),
    ),
    "launcher failed": (
        vmi_world(LABELLED, a_pod("Failed", compute=ENDED)),
        None,
        ("Synchronized", "LauncherFailed", "volume root: not a disk image"),
    ),
}


@pytest.mark.parametrize(("world", "problem", "said"), TROUBLES.values(), ids=TROUBLES.keys())
def test_obstacles_to_the_start_are_reported(
    world: World, problem: RefusedStep[Any] | None, said: tuple[str, str, str] | None
) -> None:
    status = derive_status(world, problem)
    assert status is not None
    matching = [condition for condition in status.conditions if condition.type in ("Synchronized", "PodScheduled")]
    assert [(reported.type, reported.reason, reported.message) for reported in matching] == (
        [] if said is None else [said]
    )
    assert all(reported.status == "False" for reported in matching)


CLAIMING = a_vmi(
    spec={
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("a", "b", "c", "d", "e")]
    },
    **S,
)


def test_missing_claims_are_named_until_they_exist() -> None:
    world = vmi_world(CLAIMING, claims={"b": PersistentVolumeClaim()})
    status = derive_status(world, None)
    assert status is not None
    by_type = {condition.type: condition for condition in status.conditions}
    text = "PersistentVolumeClaim default/a, default/c, default/d and 1 more not found: it starts when there are such"

    assert (by_type["Synchronized"].reason, by_type["Synchronized"].message) == ("FailedPvcNotFound", text)
    assert (by_type["PodScheduled"].reason, by_type["PodScheduled"].message) == ("Unschedulable", text)

    vmi = msgspec.structs.replace(CLAIMING, status=status)
    after = derive_status(replace(world, vmi=vmi, claims={name: PersistentVolumeClaim() for name in "abcde"}), None)
    assert after is not None
    assert [condition.type for condition in after.conditions] == ["Ready"]


def test_past_trouble_is_removed() -> None:
    old = [a_condition("Synchronized", "False", "FailedCreate"), *UNPLACED]
    status = derived(vmi_world(a_vmi(node="node-1", conditions=old, **S), a_pod(node="node-1")))
    assert [condition.type for condition in status.conditions] == ["Ready"]


def test_after_the_hand_over_conditions_of_virt_handler_are_kept() -> None:
    synchronized = a_condition("Synchronized", "False", "StartFailed")
    ready = a_condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")
    assert (
        derive_status(vmi_world(a_vmi("Scheduled", conditions=[synchronized, ready], **GRANTED), a_running_pod()), None)
        is None
    )


NOT_READY = a_pod("Running", conditions=(a_condition("Ready", "False", "ContainersNotReady"),))
READINESS = {
    # phase, reason of the condition Paused, Pod, status, reason
    "guest not running": ("Scheduled", "", a_running_pod(), "False", "GuestNotRunning"),
    "all well": ("Running", "", a_running_pod(), "True", ""),
    "Pod going": ("Running", "", a_running_pod(deleting=True), "False", "PodTerminating"),
    "Pod says nothing": ("Running", "", a_pod("Running"), "False", "PodConditionMissing"),
    "Pod not ready": ("Running", "", NOT_READY, "False", "ContainersNotReady"),
    "moved, Services learn of it now": ("Running", "", a_moved_pod(), "True", ""),
    "moved, Services wait for another's word as well": (
        "Running",
        "",
        a_moved_pod(gates=(UNPAUSED, "other")),
        "False",
        "ReadinessGatesNotReady",
    ),
    "moved, paused": ("Running", "PausedByUser", a_moved_pod(), "False", "Paused"),
    "paused by a person": ("Running", "PausedByUser", a_running_pod(), "False", "Paused"),
    "paused by an I/O error": ("Running", "PausedIOError", a_running_pod(), "False", "Paused"),
    "paused, Pod not ready": ("Running", "PausedByUser", NOT_READY, "False", "Paused"),
    "paused, Pod going": ("Running", "PausedByUser", a_running_pod(deleting=True), "False", "PodTerminating"),
}


@pytest.mark.parametrize(("phase", "paused", "pod", "status", "reason"), READINESS.values(), ids=READINESS.keys())
def test_readiness(phase: str, paused: str, pod: Any, status: str, reason: str) -> None:
    paused_conditions = [a_condition("Paused", "True", paused)] if paused else []
    new = derive_status(vmi_world(a_vmi(phase, conditions=paused_conditions, **GRANTED), pod), None)
    assert new is not None
    ready = conditions.find(new.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == (status, reason)


def test_a_resumed_guest_is_ready_again() -> None:
    stood_still = a_vmi(
        "Running", conditions=[a_condition("Ready", "False", "Paused", "Guest VM is paused")], **GRANTED
    )
    new = derived(vmi_world(stood_still, a_running_pod()))
    assert conditions.is_true(new.conditions, "Ready")


def test_an_evacuation_is_reported_until_it_is_withdrawn() -> None:
    marked = a_vmi("Running", evacuationNodeName="node-1", **GRANTED)
    status = derived(vmi_world(marked, a_running_pod()))
    condition = conditions.find(status.conditions, "EvictionRequested")
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == (
        "True",
        "EvictionRequested",
        "it is to leave node node-1",
    )
    kept = msgspec.structs.replace(status, evacuation_node_name="")
    status = derived(vmi_world(msgspec.structs.replace(marked, status=kept), a_running_pod()))
    assert conditions.find(status.conditions, "EvictionRequested") is None


def test_an_evacuation_mark_for_a_former_node_is_removed() -> None:
    """virt-api read the instance before its migration ended. Nothing else would remove the mark."""
    late = a_vmi("Running", evacuationNodeName="node-9", **GRANTED)
    status = derived(vmi_world(late, a_running_pod()))
    assert status.evacuation_node_name == ""
    assert conditions.find(status.conditions, "EvictionRequested") is None


def test_a_finished_run_is_not_ready() -> None:
    ended = a_vmi("Succeeded", conditions=[a_condition("Ready", "True")], **GRANTED)
    new = derive_status(vmi_world(ended), None)
    assert new is not None
    assert not conditions.is_true(new.conditions, "Ready")
    assert derive_status(vmi_world(msgspec.structs.replace(ended, status=new)), None) is None


def test_the_status_of_a_deleted_vmi_stays_until_its_end() -> None:
    vmi = a_vmi("Running", deleting=True, conditions=[a_condition("Ready", "True")], **GRANTED)
    assert derive_status(vmi_world(vmi, a_running_pod(deleting=True)), None) is None


def test_a_phase_that_is_entered_again_keeps_its_first_time() -> None:
    """The status of a run that is lost and recovered repeatedly does not grow."""
    entered = [{"phase": name, "phaseTransitionTimestamp": "2020-01-01T00:00:00Z"} for name in ("Running", "Unknown")]
    vmi = a_vmi("Running", phaseTransitionTimestamps=entered, **GRANTED)
    status = derive_status(vmi_world(vmi, node=HERE, **ABSENT), None)
    assert status is not None
    assert status.phase == "Unknown"
    assert status.phase_transition_timestamps == vmi.status.phase_transition_timestamps


def test_a_deleted_vmi_reports_its_end() -> None:
    status = derive_status(vmi_world(a_vmi(deleting=True, **S), **ABSENT), None)
    assert status is not None
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert (status.phase, condition.status, condition.reason) == ("Failed", "False", "Deleted")


WITHOUT_KVM = {
    "configuration": KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True)),
}
NO_NODE_HAS_KVM = a_condition("PodScheduled", "False", "Unschedulable", "2 Insufficient devices.kubevirt.io/kvm")
IN_VAIN = a_pod(has_kvm=True, conditions=(NO_NODE_HAS_KVM,))


def test_a_pod_that_waits_for_kvm_is_replaced_when_emulation_is_allowed() -> None:
    status = derive_status(vmi_world(a_vmi(**S), IN_VAIN, **WITHOUT_KVM), None)
    assert status is not None
    assert (status.phase, status.attempt) == ("Scheduling", 2)


def test_a_failed_pod_that_waited_for_kvm_ends_the_run() -> None:
    ended = a_pod("Failed", has_kvm=True, reason="Preempting", message="for another")
    status = derive_status(vmi_world(a_vmi(**S), ended, **WITHOUT_KVM), None)
    assert status is not None
    assert (status.phase, status.attempt, status.reason) == ("Failed", 1, "Preempting")


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(vmi_world(a_vmi(**S), IN_VAIN), id="KVM is wanted"),
        pytest.param(vmi_world(a_vmi(**S), a_pod(node="node-1", has_kvm=True), **WITHOUT_KVM), id="it has a node"),
        pytest.param(
            vmi_world(a_vmi(**S), a_pod(conditions=(NO_NODE_HAS_KVM,)), **WITHOUT_KVM), id="it does not ask for KVM"
        ),
        pytest.param(vmi_world(a_vmi(deleting=True, **S), IN_VAIN, **WITHOUT_KVM), id="its VMI is to go"),
        pytest.param(
            vmi_world(a_vmi(**S), a_pod(has_kvm=True, deleting=True), **WITHOUT_KVM), id="somebody has deleted it"
        ),
        pytest.param(
            vmi_world(a_vmi("Scheduled", **GRANTED), a_running_pod(has_kvm=True), **WITHOUT_KVM), id="granted"
        ),
        pytest.param(
            vmi_world(a_vmi("Scheduled", **GRANTED), a_pod(has_kvm=True), **WITHOUT_KVM),
            id="granted, and shows no node",
        ),
    ],
)
def test_no_other_pod_is_replaced(world: World) -> None:
    status = derive_status(world, None)
    assert status is None or status.attempt == 1


def test_a_further_attempt_does_not_report_the_obstacle_of_the_former() -> None:
    vmi = a_vmi("Scheduling", attempt=2, conditions=[NO_NODE_HAS_KVM])
    status = derive_status(vmi_world(vmi, **WITHOUT_KVM), None)
    assert status is not None
    assert [condition.type for condition in status.conditions] == ["Ready"]
    assert status.phase == "Scheduling"
