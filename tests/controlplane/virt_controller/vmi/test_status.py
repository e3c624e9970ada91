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
from kubevirt_api.names import VM_GENERATION

from controlplane.api.objects import conditions
from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import FINAL, TRANSITIONS, is_allowed_transition
from controlplane.api.objects.pod import Failure, Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.engine.errors import ApiError, Forbidden, Invalid
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.status import derive_status, grant, next_phase, refusal_message
from controlplane.virt_controller.vmi.world import AddFinalizer, ClaimWriter, CreatePod, World
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    STAMP,
    UP,
    VM_UID,
    a_condition,
    a_migrated_pod,
    a_pod,
    a_running_pod,
    a_vmi,
    vmi_world,
)

S = {"phase": "Scheduling", "attempt": 1}
GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
NO_CLAIM = {"spec": {"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]}}
ABSENT = {"is_absence_confirmed": True}
HERE = NodeState("node-1")
GONE = NodeState("node-1", is_unseen=True, is_gone=True)
OFF = NodeState("node-1", is_out_of_service=True)
OTHER = Key("default", "x")
BEHIND = {"claim_writers": {"c": ClaimWriter(OTHER)}}
STARTING, LABELLED, ENDING = a_vmi(**S), a_vmi(node="node-1", **S), a_vmi(node="node-1", deleting=True, **S)
SCHEDULED, RUNNING, UNKNOWN, FAILED = (a_vmi(at, **GRANTED) for at in ("Scheduled", "Running", "Unknown", "Failed"))
ENDING_SCHEDULED = a_vmi("Scheduled", deleting=True, **GRANTED)
ENDED = {"terminated": {"exitCode": 1, "message": "volume root: not a disk image"}}
KILLED = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
UP_POD, GOING, SUCCEEDED, CRASHED = (
    a_running_pod(),
    a_running_pod(deleting=True),
    a_pod("Succeeded"),
    a_pod("Failed", node="node-1", compute=ENDED),
)
CRASHED_BESIDE_SIDECAR = a_pod("Running", node="node-1", compute=ENDED)
REFUSED = a_pod("Failed", reason="UnexpectedAdmissionError", message="no kvm")
REFUSED_BY_NODE = a_pod("Failed", node="node-1", reason="UnexpectedAdmissionError", message="no kvm")
ONLY_ATTEMPT: dict[str, Any] = {"configuration": KubeVirtConfiguration(further_attempts=0)}
LATE: dict[str, Any] = {"placed_for": 600.0}
OTHER_SUCCEEDED, FAILED_TARGET = a_pod("Succeeded", uid="another"), a_pod("Failed", uid="t", attempt=2)

PHASES: dict[str, tuple[World, str, str]] = {
    # world, phase, reason
    "fresh": (vmi_world(a_vmi()), "Scheduling", ""),
    "fresh, without finalizer": (vmi_world(a_vmi(finalizers=())), "", ""),
    "fresh, spec is invalid": (vmi_world(a_vmi(), problems=("x",)), "Pending", ""),
    "fresh, a claim is missing": (vmi_world(a_vmi(**NO_CLAIM)), "Pending", ""),
    "fresh, a Pod of its predecessor is there": (vmi_world(a_vmi(), predecessors=(UP_POD,)), "Pending", ""),
    "pending, a claim is missing": (vmi_world(a_vmi("Pending", **NO_CLAIM)), "Pending", ""),
    "pending, nothing is missing": (vmi_world(a_vmi("Pending")), "Scheduling", ""),
    "pending, a Pod existed, a claim went": (vmi_world(a_vmi("Pending", **NO_CLAIM), was_begun=True), "Scheduling", ""),
    "pending, spec is invalid": (vmi_world(a_vmi("Pending"), problems=("x",)), "Pending", ""),
    "no Pod yet, spec is invalid": (vmi_world(STARTING, problems=("x",)), "Scheduling", ""),
    "no Pod yet, a claim went": (vmi_world(a_vmi(**NO_CLAIM, **S)), "Scheduling", ""),
    "fresh, a Pod exists": (vmi_world(a_vmi(), UP_POD), "Scheduling", ""),
    "fresh, deleted, not confirmed": (vmi_world(a_vmi(deleting=True)), "", ""),
    "fresh, deleted": (vmi_world(a_vmi(deleting=True), **ABSENT), "Failed", "Deleted"),
    "no Pod yet": (vmi_world(STARTING), "Scheduling", ""),
    "no Pod yet, confirmed": (vmi_world(STARTING, **ABSENT), "Scheduling", ""),
    "Pod pending": (vmi_world(LABELLED, a_pod(node="node-1")), "Scheduling", ""),
    "Pod was deleted, not confirmed": (vmi_world(LABELLED, was_begun=True), "Scheduling", ""),
    "Pod was deleted": (vmi_world(LABELLED, was_begun=True, **ABSENT), "Failed", "PodDeleted"),
    "Pod running, launcher not": (vmi_world(LABELLED, a_pod("Running", node="node-1")), "Scheduling", ""),
    "Pod up: the grant is an action": (vmi_world(LABELLED, UP_POD), "Scheduling", ""),
    "Pod up, VMI deleted": (vmi_world(ENDING, UP_POD), "Scheduling", ""),
    "Pod going": (vmi_world(LABELLED, GOING), "Failed", "PodDeleted"),
    "Pod failed": (vmi_world(LABELLED, CRASHED), "Failed", "LauncherFailed"),
    "launcher ended": (vmi_world(LABELLED, CRASHED_BESIDE_SIDECAR), "Failed", "LauncherFailed"),
    "Pod refused by the kubelet": (vmi_world(LABELLED, REFUSED), "Failed", "UnexpectedAdmissionError"),
    "Pod refused by its node: a further attempt": (vmi_world(LABELLED, REFUSED_BY_NODE), "Scheduling", ""),
    "Pod refused by its node, the only attempt": (
        vmi_world(LABELLED, REFUSED_BY_NODE, **ONLY_ATTEMPT),
        "Failed",
        "UnexpectedAdmissionError",
    ),
    "launcher not up in time: a further attempt": (
        vmi_world(LABELLED, a_pod(node="node-1"), **LATE),
        "Scheduling",
        "",
    ),
    "launcher not up in time, the only attempt": (
        vmi_world(LABELLED, a_pod(node="node-1"), **LATE, **ONLY_ATTEMPT),
        "Failed",
        "RunTimedOut",
    ),
    "scheduled, Pod up": (vmi_world(SCHEDULED, UP_POD), "Scheduled", ""),
    "running, Pod going": (vmi_world(RUNNING, GOING), "Running", ""),
    "running, Pod succeeded": (vmi_world(RUNNING, SUCCEEDED), "Succeeded", ""),
    "running, Pod failed": (vmi_world(RUNNING, CRASHED), "Failed", "LauncherFailed"),
    "running, OOM": (vmi_world(RUNNING, a_pod("Failed", compute=KILLED)), "Failed", "OOMKilled"),
    "running, a target failed": (vmi_world(RUNNING, UP_POD, FAILED_TARGET), "Running", ""),
    "running, Pod not in the cache": (vmi_world(RUNNING), "Running", ""),
    "running, Pod gone, no proof": (vmi_world(RUNNING, node=HERE, **ABSENT), "Unknown", "LauncherLost"),
    "running, Pod and Node gone": (vmi_world(RUNNING, node=GONE, **ABSENT), "Failed", "NodeGone"),
    "running, Pod removed after its end": (vmi_world(RUNNING, last_states=(SUCCEEDED,), **ABSENT), "Succeeded", ""),
    "running, another Pod removed after its end": (
        vmi_world(RUNNING, last_states=(OTHER_SUCCEEDED,), node=HERE, **ABSENT),
        "Unknown",
        "LauncherLost",
    ),
    "running, the Pod is back": (vmi_world(RUNNING, UP_POD, node=HERE, **ABSENT), "Running", ""),
    "unknown, node out of service": (vmi_world(UNKNOWN, node=OFF, **ABSENT), "Failed", "NodeOutOfService"),
    "unknown, the Pod is back": (vmi_world(UNKNOWN, UP_POD), "Unknown", ""),
    "scheduled, Pod gone, deleted": (vmi_world(ENDING_SCHEDULED, node=HERE, **ABSENT), "Unknown", "LauncherLost"),
    "failed, Pod succeeded": (vmi_world(FAILED, SUCCEEDED), "Failed", ""),
}


@pytest.mark.parametrize(("world", "phase", "reason"), PHASES.values(), ids=PHASES.keys())
def test_the_next_phase(world: World, phase: str, reason: str) -> None:
    step = next_phase(world)
    assert (step.phase, step.trouble.reason if step.trouble else "") == (phase, reason)


PODS = ((), (a_pod(node="node-1"),), (UP_POD,), (GOING,), (SUCCEEDED,), (CRASHED,))


@pytest.mark.parametrize("phase", TRANSITIONS, ids=lambda phase: phase or "none")
def test_phases_follow_the_table_in_every_world(phase: str) -> None:
    """The full product of phases, Pods, deletion, nodes and knowledge."""
    for pods, deleting, node, absent, begun in product(
        PODS, (False, True), (None, HERE, GONE, OFF), (False, True), (False, True)
    ):
        vmi = a_vmi(phase, deleting=deleting, **(GRANTED if phase not in ("", "Pending", "Scheduling") else {}))
        world = vmi_world(vmi, *pods, node=node, is_absence_confirmed=absent and not pods, was_begun=begun)
        status = derive_status(world, None)
        after = phase if status is None else status.phase
        assert is_allowed_transition(phase, after)
        assert phase not in FINAL or after == phase


def derived(world: World, problem: RefusedStep[Any] | None = None) -> VirtualMachineInstanceStatus:
    """The status that is written; a second pass has nothing to add to it."""
    status = derive_status(world, problem)
    assert status is not None
    again = replace(world, vmi=msgspec.structs.replace(world.vmi, status=status), now=world.now + 100)
    if problem is None and (status.phase == world.vmi.status.phase or status.phase != "Scheduling"):
        assert derive_status(again, None) is None
    return status


def condition_of(status: VirtualMachineInstanceStatus, kind: str) -> Condition | None:
    return conditions.find(status.conditions, kind)


def types_of(status: VirtualMachineInstanceStatus) -> list[str]:
    return [condition.type for condition in status.conditions]


# the start


def test_the_first_write_records_attempt_and_both_phases() -> None:
    status = derived(vmi_world(a_vmi()))
    assert (status.attempt, status.epoch) == (1, 0)
    assert [transition.phase for transition in status.phase_transition_timestamps] == ["Pending", "Scheduling"]
    assert {transition.phase_transition_timestamp for transition in status.phase_transition_timestamps} == {STAMP}
    assert (status.runtime_user, status.memory and status.memory.guest_at_boot) == (107, "64Mi")
    assert status.memory is not None
    assert status.memory.guest_requested == "64Mi"


@pytest.mark.parametrize("domain", [{}, {"memory": {"hugepages": {"pageSize": "2Mi"}}}], ids=["no memory", "no guest"])
def test_without_guest_memory_in_the_spec_no_memory_is_reported(domain: Any) -> None:
    assert derived(vmi_world(a_vmi(spec={"domain": domain}))).memory is None


def test_the_first_write_names_the_revision_of_the_start() -> None:
    vmi = a_vmi()
    meta = msgspec.structs.replace(vmi.metadata, annotations={VM_GENERATION: "3"})
    world = vmi_world(msgspec.structs.replace(vmi, metadata=meta))
    named = f"revision-start-vm-{VM_UID}-3"
    assert derived(world).virtual_machine_revision_name == named


def test_an_instance_that_a_former_version_began_names_no_revision() -> None:
    """There is none."""
    vmi = a_vmi("Pending")
    meta = msgspec.structs.replace(vmi.metadata, annotations={VM_GENERATION: "3"})
    assert derived(vmi_world(msgspec.structs.replace(vmi, metadata=meta))).virtual_machine_revision_name == ""


@pytest.mark.parametrize(
    ("cpu", "topology"),
    [(None, None), ({}, (1, 1, 1)), ({"cores": 2, "sockets": 3, "threads": 4}, (2, 3, 4)), ({"sockets": 3}, (1, 3, 1))],
)
def test_the_first_write_records_the_cpu_topology(cpu: Any, topology: tuple[int, int, int] | None) -> None:
    domain = {"memory": {"guest": "64Mi"}, **({} if cpu is None else {"cpu": cpu})}
    recorded = derived(vmi_world(a_vmi(spec={"domain": domain}))).current_cpu_topology
    assert (recorded and (recorded.cores, recorded.sockets, recorded.threads)) == topology


@pytest.mark.parametrize(("domain", "overhead"), [({}, "73Mi"), ({"cpu": {"cores": 4}}, "97Mi")])
def test_the_first_write_records_what_the_pod_needs_beside_the_guests_memory(domain: Any, overhead: str) -> None:
    memory = derived(vmi_world(a_vmi(spec={"domain": {**domain, "memory": {"guest": "512Mi"}}}))).memory
    assert memory is not None
    assert memory.memory_overhead == overhead


def test_nothing_is_written_between_the_first_phase_and_the_grant() -> None:
    """Budget: the Pod's creation and placement change nothing in the VMI's status."""
    vmi = msgspec.structs.replace(a_vmi(), status=derived(vmi_world(a_vmi())))
    for pod in (a_pod(), a_pod(node="node-1"), a_pod("Running", node="node-1", compute=UP)):
        assert derive_status(vmi_world(vmi, pod), None) is None


def test_the_start_is_granted_to_exactly_one_pod_in_one_write() -> None:
    """Conditions about the start are removed in the same write: nobody else would, after the hand-over."""
    old_conditions = [a_condition(kind, "False", "ErrImagePull") for kind in ("PodScheduled", "Synchronized")]
    old = a_vmi(conditions=old_conditions, epoch=7, **NO_CLAIM, **S)
    pod, claims = a_running_pod(qosClass="Burstable"), {"disk": PersistentVolumeClaim()}
    status = grant(vmi_world(old, pod, claims=claims), pod)
    assert (status.phase, status.node_name, status.active_pods) == ("Scheduled", "node-1", {POD_UID: "node-1"})
    assert (status.attempt, status.epoch, status.launcher_container_image_version) == (1, 8, "launcher:1")
    assert (status.qos_class, status.migration_method, status.migration_transport) == (
        "Burstable",
        "LiveMigration",
        "Unix",
    )
    assert [volume.name for volume in status.volume_status] == ["disk"]
    assert types_of(status) == ["Ready"]
    granted = msgspec.structs.replace(old, status=status)
    assert derive_status(vmi_world(granted, pod, claims=claims), None) is None


WAITING = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
CREATING = a_pod(compute={"waiting": {"reason": "ContainerCreating"}})
NO_IMAGE = ("Synchronized", "ImagePullBackOff", "no such image")
UNPLACED = (a_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available"),)
MOUNT = Failure("FailedMount", 'secret "seed" not found')
NO_SECRET = {"event_troubles": {POD_UID: MOUNT}}
NOT_MOUNTED = ("Synchronized", *MOUNT)
MOUNT_REPORTED = a_vmi(node="node-1", conditions=[a_condition("Synchronized", "False", *MOUNT)], **S)
REFUSED_FIRST = {"attempt": 1, "nodeName": "node-0", "reason": "OutOfcpu", "message": "no cpu"}
SECOND = a_vmi("Scheduling", attempt=2)
RETRIED = a_vmi("Scheduling", attempt=2, failedAttempts=[REFUSED_FIRST])
NEXT = "attempt 1 failed on node node-0: OutOfcpu: no cpu; attempt 2 follows when that Pod is deleted, on another node "
FURTHER_ATTEMPT = ("Synchronized", "FurtherAttempt", NEXT + "if one fits; 1 more may follow")
NOT_AN_IMAGE = ("Synchronized", "LauncherFailed", "volume root: not a disk image")
QUOTA = RefusedStep(CreatePod(1, because="x"), Forbidden("exceeded quota: pods=5"))
NO_FINALIZER = RefusedStep(AddFinalizer("x"), Forbidden("no"))
INVALID = "the spec cannot be run: spec.domain.memory.guest: is negative"


def scheduled(status: str) -> Any:
    return a_pod(conditions=(a_condition("PodScheduled", status),))


TROUBLES: dict[str, tuple[World, RefusedStep[Any] | None, tuple[str, str, str] | None]] = {
    "no image": (vmi_world(LABELLED, a_pod(compute=WAITING)), None, NO_IMAGE),
    "no image, no Secret before": (vmi_world(LABELLED, a_pod(compute=WAITING), **NO_SECRET), None, NO_IMAGE),
    "being created": (vmi_world(LABELLED, CREATING), None, None),
    "no Secret": (vmi_world(LABELLED, CREATING, **NO_SECRET), None, NOT_MOUNTED),
    "no Secret, no container yet": (vmi_world(LABELLED, a_pod(), **NO_SECRET), None, NOT_MOUNTED),
    "up, no Secret before": (vmi_world(LABELLED, UP_POD, **NO_SECRET), None, None),
    "no Secret for another Pod": (vmi_world(LABELLED, CREATING, event_troubles={"other": MOUNT}), None, None),
    "no Secret, as a former leader reported": (vmi_world(MOUNT_REPORTED, CREATING), None, NOT_MOUNTED),
    "no Secret as a former leader reported, no image since": (
        vmi_world(MOUNT_REPORTED, a_pod(compute=WAITING)),
        None,
        NO_IMAGE,
    ),
    "a former attempt failed, no Pod yet": (vmi_world(RETRIED), None, FURTHER_ATTEMPT),
    "a former attempt failed, being created": (vmi_world(RETRIED, a_pod(attempt=2)), None, FURTHER_ATTEMPT),
    "a former attempt failed, no image": (vmi_world(RETRIED, a_pod(attempt=2, compute=WAITING)), None, NO_IMAGE),
    "a Pod, a claim went": (vmi_world(a_vmi(**NO_CLAIM, **S), a_pod()), None, None),
    "no node": (
        vmi_world(STARTING, a_pod(conditions=UNPLACED)),
        None,
        ("PodScheduled", "Unschedulable", "0/3 nodes are available"),
    ),
    "no node, and failed since": (
        vmi_world(STARTING, a_pod("Failed", conditions=UNPLACED, compute=ENDED)),
        None,
        NOT_AN_IMAGE,
    ),
    "a node": (vmi_world(LABELLED, scheduled("True")), None, None),
    "placement unknown": (vmi_world(LABELLED, scheduled("Unknown")), None, None),
    "Pod refused": (vmi_world(STARTING), QUOTA, ("Synchronized", "FailedCreate", refusal_message(QUOTA))),
    "Pod of a former attempt refused": (vmi_world(SECOND), QUOTA, None),
    "finalizer refused": (
        vmi_world(STARTING),
        NO_FINALIZER,
        ("Synchronized", "FailedUpdate", refusal_message(NO_FINALIZER)),
    ),
    "spec is invalid": (
        vmi_world(a_vmi(), problems=("spec.domain.memory.guest: is negative",)),
        None,
        ("Synchronized", "InvalidSpec", INVALID),
    ),
    "launcher failed": (vmi_world(LABELLED, CRASHED), None, NOT_AN_IMAGE),
    "deleted": (
        vmi_world(a_vmi(deleting=True, **S), **ABSENT),
        None,
        ("Synchronized", "Deleted", "the VMI was deleted before its guest was started"),
    ),
    "deleted, a claim is missing": (
        vmi_world(a_vmi(deleting=True, **NO_CLAIM, **S), **ABSENT),
        None,
        ("Synchronized", "Deleted", "the VMI was deleted before its guest was started"),
    ),
    "runs, though its spec is invalid": (vmi_world(RUNNING, UP_POD, problems=("x",)), None, None),
}


@pytest.mark.parametrize(("world", "problem", "reported"), TROUBLES.values(), ids=TROUBLES.keys())
def test_obstacles_to_the_start_are_reported(
    world: World, problem: RefusedStep[Any] | None, reported: tuple[str, str, str] | None
) -> None:
    listed = derived(world, problem).conditions
    matching = [condition for condition in listed if condition.type in ("Synchronized", "PodScheduled")]
    assert [(condition.type, condition.reason, condition.message) for condition in matching] == (
        [] if reported is None else [reported]
    )
    assert all(condition.status == "False" for condition in matching)


@pytest.mark.parametrize(
    ("step", "error", "remedy"),
    [
        (CreatePod(1, because="x"), Invalid("no"), "no; correct the machine's spec"),
        (AddFinalizer("x"), Invalid("no"), "no; compare the installed CRDs with the control plane's version"),
    ],
    ids=["a Pod is made of the machine's spec", "a finalizer is not"],
)
def test_a_refusal_tells_what_to_correct(step: Any, error: ApiError, remedy: str) -> None:
    assert refusal_message(RefusedStep(step, error)) == remedy


def test_a_failed_attempt_is_recorded_and_the_next_begun_in_one_write() -> None:
    status = derive_status(vmi_world(LABELLED, REFUSED_BY_NODE), None)
    assert status is not None
    assert (status.phase, status.attempt) == ("Scheduling", 2)
    assert [(failed.attempt, failed.node_name) for failed in status.failed_attempts] == [(1, "node-1")]


def test_an_evacuation_that_is_requested_before_the_grant_is_kept() -> None:
    status = derived(vmi_world(a_vmi(evacuationNodeName="node-1", **S), a_pod(node="node-1")))
    assert status.evacuation_node_name == "node-1"


def claiming(*claims: str) -> dict[str, Any]:
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {"spec": {"volumes": volumes}}


def test_a_run_that_cannot_have_a_pod_yet_is_pending_and_begins_when_it_can() -> None:
    """Clients of KubeVirt read phase, condition and message of a claim that does not exist."""
    world = vmi_world(a_vmi(**claiming("disk")))
    waiting = derived(world)
    scheduled = condition_of(waiting, "PodScheduled")
    assert scheduled is not None
    assert (waiting.phase, waiting.attempt) == ("Pending", 0)
    assert (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
    assert scheduled.message == "PVC default/disk does not exist, waiting for it to appear"
    pending = msgspec.structs.replace(world.vmi, status=waiting)
    assert derive_status(replace(world, vmi=pending), None) is None, "nothing new"

    begun = derived(replace(world, vmi=pending, claims={"disk": PersistentVolumeClaim()}))

    assert (begun.phase, begun.attempt, types_of(begun)) == ("Scheduling", 1, ["Ready"])
    assert [volume.name for volume in begun.volume_status] == ["disk"]
    assert [transition.phase for transition in begun.phase_transition_timestamps] == ["Pending", "Scheduling"]


def test_missing_claims_are_named_until_they_exist() -> None:
    volumes = claiming(*"abcde")["spec"]["volumes"]
    vmi = a_vmi(spec={"volumes": volumes}, **S)
    world = vmi_world(vmi, claims={"b": PersistentVolumeClaim()})
    status = derived(world)
    names = "default/a, default/c, default/d and 1 more"
    text = f"PVC {names} do not exist, waiting for them to appear"
    for kind, reason in (("Synchronized", "FailedPvcNotFound"), ("PodScheduled", "Unschedulable")):
        condition = condition_of(status, kind)
        assert condition is not None
        assert (condition.reason, condition.message) == (reason, text)
    waiting = msgspec.structs.replace(vmi, status=status)
    after = derived(replace(world, vmi=waiting, claims={name: PersistentVolumeClaim() for name in "abcde"}))
    assert types_of(after) == ["Ready"]


def test_a_claim_that_another_instance_writes_to_is_named() -> None:
    vmi = a_vmi(spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, **S)
    world = vmi_world(vmi, claims={"c": PersistentVolumeClaim()}, **BEHIND)
    condition = condition_of(derived(world), "Synchronized")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "ClaimInUse")
    assert "claim c of default/x, and two guests" in condition.message
    missing = condition_of(derived(replace(world, claims={})), "Synchronized")
    assert missing is not None
    assert missing.reason == "FailedPvcNotFound", "it comes first"
    with_pod = derived(replace(world, pods=(a_pod(),)))
    assert (with_pod.phase, with_pod.attempt) == ("Scheduling", 2), "it gives way"
    assert condition_of(with_pod, "Synchronized") == condition
    assert "gone" not in condition.message


def test_one_that_goes_first_waits_with_its_pod_until_the_other_has_given_way() -> None:
    writers = {"c": ClaimWriter(OTHER, gives_way=True)}
    status = derived(vmi_world(STARTING, UP_POD, claim_writers=writers))
    assert (status.phase, status.attempt) == ("Scheduling", 1)
    condition = condition_of(status, "Synchronized")
    assert condition is not None
    assert condition.reason == "ClaimInUse"


def test_a_pod_that_ended_does_not_give_way() -> None:
    ended = derived(vmi_world(STARTING, a_pod("Failed", reason="Preempting"), **BEHIND))
    assert (ended.phase, ended.attempt) == ("Failed", 1)


def test_the_pod_of_an_instance_that_is_gone_is_named_with_what_to_do() -> None:
    writers = {"c": ClaimWriter(Key("default", "y"), orphan="virt-launcher-y"), "d": ClaimWriter(OTHER)}
    condition = condition_of(derived(vmi_world(STARTING, claim_writers=writers)), "Synchronized")
    assert condition is not None
    assert (
        "claim c of default/y, which is gone (launcher Pod virt-launcher-y), d of default/x, and" in condition.message
    )
    assert condition.message.endswith("see that the node is off, then delete the Pod by force")


def test_of_many_such_claims_some_are_named() -> None:
    writers = {name: ClaimWriter(Key("default", f"of-{name}")) for name in "abcde"}
    condition = condition_of(derived(vmi_world(STARTING, claim_writers=writers)), "Synchronized")
    assert condition is not None
    assert "claim a of default/of-a, b of default/of-b, c of default/of-c and 2 more, and two" in condition.message


def test_past_trouble_is_removed() -> None:
    old = [a_condition("Synchronized", "False", "FailedCreate"), *UNPLACED]
    status = derived(vmi_world(a_vmi(node="node-1", conditions=old, **S), a_pod(node="node-1")))
    assert types_of(status) == ["Ready"]


EMULATED = {
    "configuration": KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True)),
}
NO_NODE_HAS_KVM = a_condition("PodScheduled", "False", "Unschedulable", "2 Insufficient devices.kubevirt.io/kvm")


def test_a_pod_that_must_be_recreated_begins_a_further_attempt() -> None:
    """The next attempt does not report the obstacle of the former. A Pod that failed meanwhile ends the run."""
    pod = a_pod(has_kvm=True, conditions=(NO_NODE_HAS_KVM,))
    status = derive_status(vmi_world(STARTING, pod, **EMULATED), None)
    assert status is not None
    assert (status.phase, status.attempt) == ("Scheduling", 2)
    second = a_vmi("Scheduling", attempt=2, conditions=[NO_NODE_HAS_KVM])
    assert types_of(derived(vmi_world(second, **EMULATED))) == ["Ready"]
    failed = a_pod("Failed", has_kvm=True, reason="Preempting", message="for another")
    ended = derived(vmi_world(STARTING, failed, **EMULATED))
    assert (ended.phase, ended.attempt, ended.reason) == ("Failed", 1, "Preempting")


# after the grant


def test_after_the_hand_over_conditions_of_virt_handler_are_kept() -> None:
    synchronized = a_condition("Synchronized", "False", "StartFailed")
    ready = a_condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")
    vmi = a_vmi("Scheduled", conditions=[synchronized, ready], **GRANTED)
    assert derive_status(vmi_world(vmi, UP_POD), None) is None


NOT_READY = a_pod("Running", conditions=(a_condition("Ready", "False", "ContainersNotReady"),))
FOREIGN_GATE = a_migrated_pod(gates=(UNPAUSED, "other"))
READINESS: dict[str, tuple[str, str, Any, str, str]] = {
    # phase, reason of the condition Paused, Pod, status, reason
    "guest not running": ("Scheduled", "", UP_POD, "False", "GuestNotRunning"),
    "ready": ("Running", "", UP_POD, "True", ""),
    "Pod going": ("Running", "", GOING, "False", "PodTerminating"),
    "Pod without a condition": ("Running", "", a_pod("Running"), "False", "PodConditionMissing"),
    "Pod not ready": ("Running", "", NOT_READY, "False", "ContainersNotReady"),
    "migrated, its gate is written now": ("Running", "", a_migrated_pod(), "True", ""),
    "migrated, a foreign gate is missing": ("Running", "", FOREIGN_GATE, "False", "ReadinessGatesNotReady"),
    "migrated, paused": ("Running", "PausedByUser", a_migrated_pod(), "False", "Paused"),
    "paused by a user": ("Running", "PausedByUser", UP_POD, "False", "Paused"),
    "paused by an I/O error": ("Running", "PausedIOError", UP_POD, "False", "Paused"),
    "paused, Pod not ready": ("Running", "PausedByUser", NOT_READY, "False", "Paused"),
    "paused, Pod going": ("Running", "PausedByUser", GOING, "False", "PodTerminating"),
}


@pytest.mark.parametrize(("phase", "paused", "pod", "status", "reason"), READINESS.values(), ids=READINESS.keys())
def test_readiness(phase: str, paused: str, pod: Any, status: str, reason: str) -> None:
    listed = [a_condition("Paused", "True", paused)] if paused else []
    ready = condition_of(derived(vmi_world(a_vmi(phase, conditions=listed, **GRANTED), pod)), "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == (status, reason)


def test_a_resumed_guest_is_ready_again() -> None:
    paused = a_condition("Ready", "False", "Paused", "Guest VM is paused")
    status = derived(vmi_world(a_vmi("Running", conditions=[paused], **GRANTED), UP_POD))
    assert conditions.is_true(status.conditions, "Ready")


def test_an_evacuation_is_reported_until_it_is_withdrawn() -> None:
    vmi = a_vmi("Running", evacuationNodeName="node-1", **GRANTED)
    status = derived(vmi_world(vmi, UP_POD))
    condition = condition_of(status, "EvictionRequested")
    assert condition is not None
    assert (condition.status, condition.message) == (
        "True",
        "it is to leave node node-1; to let it stay: virtctl evacuate-cancel vmi web -n default",
    )
    kept = msgspec.structs.replace(status, evacuation_node_name="")
    status = derived(vmi_world(msgspec.structs.replace(vmi, status=kept), UP_POD))
    assert condition_of(status, "EvictionRequested") is None


def test_an_evacuation_mark_for_a_former_node_is_removed() -> None:
    """virt-api read the instance before its migration ended. Nothing else would remove the mark."""
    status = derived(vmi_world(a_vmi("Running", evacuationNodeName="node-9", **GRANTED), UP_POD))
    assert status.evacuation_node_name == ""
    assert condition_of(status, "EvictionRequested") is None


@pytest.mark.parametrize("pod", [UP_POD, GOING], ids=["its Pod is to be deleted next", "its Pod is being deleted"])
def test_a_guest_that_is_to_stop_is_not_ready_for_its_whole_grace_period(pod: Pod) -> None:
    vmi = a_vmi("Running", deleting=True, conditions=[a_condition("Ready", "True")], **GRANTED)
    status = derived(vmi_world(vmi, pod))
    ready = condition_of(status, "Ready")
    assert status.phase == "Running"
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "PodTerminating")


def test_a_start_that_is_deleted_is_not_called_terminating() -> None:
    status = derived(vmi_world(ENDING_SCHEDULED, UP_POD))
    ready = condition_of(status, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "GuestNotRunning")


def test_deletion_freezes_no_condition() -> None:
    """What a VMI waits for, or does not wait for any more, matters while it ends as well."""
    silent = NodeState("node-1", takes_none=True)
    synchronized = condition_of(derived(vmi_world(ENDING_SCHEDULED, GOING, node=silent)), "Synchronized")
    assert synchronized is not None
    assert synchronized.reason == "VirtHandlerSilent"
    requested = [a_condition("Ready", "False", "PodTerminating"), a_condition("EvictionRequested", "True")]
    ending = a_vmi("Running", deleting=True, conditions=requested, **GRANTED)
    assert condition_of(derived(vmi_world(ending, GOING)), "EvictionRequested") is None


def test_a_phase_that_is_entered_again_keeps_its_first_time() -> None:
    """The status of a run that is lost and recovered repeatedly does not grow."""
    entered = [{"phase": name, "phaseTransitionTimestamp": "2020-01-01T00:00:00Z"} for name in ("Running", "Unknown")]
    vmi = a_vmi("Running", phaseTransitionTimestamps=entered, **GRANTED)
    status = derived(vmi_world(vmi, node=HERE, **ABSENT))
    assert status.phase == "Unknown"
    assert status.phase_transition_timestamps == vmi.status.phase_transition_timestamps


def test_the_reason_of_a_phase_is_removed_with_it() -> None:
    """Otherwise a run that was lost and has succeeded would report a lost launcher forever."""
    status = derived(vmi_world(a_vmi("Unknown", reason="LauncherLost", **GRANTED), SUCCEEDED))
    assert (status.phase, status.reason) == ("Succeeded", "")


@pytest.mark.parametrize("phase", sorted(FINAL))
def test_of_a_final_status_only_the_readiness_changes(phase: str) -> None:
    for pod in (UP_POD, SUCCEEDED, CRASHED):
        assert derive_status(vmi_world(a_vmi(phase, **GRANTED), pod), None) is None
    ready = derived(vmi_world(a_vmi(phase, conditions=[a_condition("Ready", "True")], **GRANTED)))
    assert not conditions.is_true(ready.conditions, "Ready")


@pytest.mark.parametrize("phase", ["WaitingForSync", "Bogus"])
def test_an_unknown_phase_is_kept_and_reported(phase: str) -> None:
    status = derived(vmi_world(a_vmi(phase, **GRANTED)))
    assert (status.phase, status.active_pods) == (phase, {POD_UID: "node-1"})
    (condition,) = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Synchronized", "False", "UnknownPhase")
    assert phase in condition.message
