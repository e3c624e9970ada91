# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions about a VMI, as a table."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from kubevirt_api.condition_types import UNPAUSED
from kubevirt_api.names import LAUNCHER_ROLE, MIGRATION_JOB, ROLE, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.api.objects.phase import AFTER_HAND_OVER, OWNERS
from controlplane.api.objects.resources import Key
from controlplane.engine.plan import IndependentActions
from controlplane.virt_controller.vmi.decide import RULES, decide
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.world import (
    AnnotateEviction,
    ClaimWriter,
    ConfirmPodsAbsent,
    DeletePod,
    GrantStart,
    Role,
    World,
)
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    a_condition,
    a_migrated_pod,
    a_pod,
    a_running_pod,
    a_vmi,
    vmi_world,
)
from tests.controlplane.virt_controller.migration.worlds import LEFT, a_target, an_instance

GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
OTHER_GRANT = {**GRANTED, "activePods": {"another": "node-1"}}
SENT = {"deletes_sent": frozenset({POD_UID})}
ABSENT, BEGUN = {"is_absence_confirmed": True}, {"was_begun": True}
EMULATED = {
    "configuration": KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True)),
}
HERE, UNSEEN = NodeState("node-1"), NodeState("node-1", is_unseen=True)
GONE = replace(UNSEEN, is_gone=True)
LOOKS_OFF = replace(HERE, looks_out_of_service=True)
OFF = replace(LOOKS_OFF, is_out_of_service=True)

FIRST, SECOND = a_vmi("Scheduling", attempt=1), a_vmi("Scheduling", attempt=2)
LABELLED = a_vmi("Scheduling", attempt=1, node="node-1")
CLAIMING = a_vmi(
    "Scheduling", attempt=1, spec={"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]}
)
CLAIMS = {"c": PersistentVolumeClaim()}
BEHIND = {"claim_writers": {"c": ClaimWriter(Key("default", "other"))}}
AHEAD = {"claim_writers": {"c": ClaimWriter(Key("default", "other"), gives_way=True)}}
RUNNING = a_vmi("Running", node="node-1", **GRANTED)
UNLABELLED = a_vmi("Running", **GRANTED)
PAUSED = a_vmi("Running", node="node-1", conditions=[a_condition("Paused", "True")], **GRANTED)
UNKNOWN = a_vmi("Unknown", node="node-1", **GRANTED)
ENDING = a_vmi("Running", deleting=True, **GRANTED)
LEAVING = a_vmi("Running", node="node-1", evacuationNodeName="node-1", **GRANTED)
LEAVING_BEFORE = a_vmi("Running", node="node-1", evacuationNodeName="node-9", **GRANTED)
ENDING_EARLY = a_vmi("Scheduling", attempt=1, deleting=True)
ENDING_UNKNOWN = a_vmi("Unknown", deleting=True, **GRANTED)
FAILED, FAILED_ELSEWHERE = a_vmi("Failed", **GRANTED), a_vmi("Failed", **OTHER_GRANT)
ENDING_FAILED = a_vmi("Failed", deleting=True)

EVICTING = "descheduler.alpha.kubernetes.io/eviction-in-progress"
ANNOTATED, ANNOTATED_BY_OTHERS = (a_running_pod(annotations={EVICTING: who}) for who in ("kubevirt", "me"))
ANNOTATED_AND_GOING = a_running_pod(annotations={EVICTING: "kubevirt"}, deleting=True)
ANNOTATED_AND_OVER = a_pod("Failed", node="node-1", annotations={EVICTING: "kubevirt"})
UP, GOING, OVER = a_running_pod(), a_running_pod(deleting=True), a_pod("Failed")
BOUND = a_pod(node="node-1")
CRASHED = a_pod("Running", node="node-1", compute={"terminated": {"exitCode": 1}})
ENDED = a_pod("Failed", node="node-1")
NEEDS_KVM = a_pod(has_kvm=True)
NO_IMAGE = a_pod(node="node-1", compute={"waiting": {"reason": "ErrImagePull", "message": 'no image "launcher:1"'}})
IN_A_MINUTE = {"configuration": KubeVirtConfiguration(run_timeout_seconds=60, further_attempts=0)}
STRIPPED, ORPHAN = a_running_pod(labels={}), a_running_pod(owner_name=None)
IS_TARGET = {"uid": "target", "labels": {ROLE: LAUNCHER_ROLE, MIGRATION_JOB: "job"}}
TARGET = a_pod("Failed", attempt=2, node="node-2", **IS_TARGET)
NAMESAKE, UP_TARGET = a_running_pod(**IS_TARGET), a_running_pod(attempt=2, **IS_TARGET)
MIGRATED = a_migrated_pod()
NOT_YET, ALREADY = (a_migrated_pod(a_condition(UNPAUSED, status)) for status in ("False", "True"))

TABLE: dict[str, tuple[World, str]] = {
    # until the grant
    "fresh: the attempt is recorded first": (vmi_world(a_vmi()), "WriteStatus"),
    "without finalizer": (vmi_world(a_vmi(finalizers=())), "AddFinalizer"),
    "attempt recorded": (vmi_world(FIRST), "CreatePod"),
    "a claim is missing": (vmi_world(CLAIMING), "WriteStatus"),
    "its claims exist": (vmi_world(CLAIMING, claims=CLAIMS), "CreatePod"),
    "a claim that another instance writes to": (
        vmi_world(CLAIMING, claims=CLAIMS, **BEHIND),
        "WriteStatus",
    ),
    "its Pod is to give way to another instance": (vmi_world(FIRST, BOUND, **BEHIND), "WriteStatus"),
    "its Pod is up and is to give way": (vmi_world(FIRST, UP, **BEHIND), "WriteStatus"),
    "its Pod is up, another one gives way": (vmi_world(FIRST, UP, **AHEAD), "WriteStatus"),
    "its Pod is not up, another one gives way": (vmi_world(FIRST, BOUND, **AHEAD), "LabelNode"),
    "its Pod has given way": (vmi_world(SECOND, UP, **BEHIND), "DeletePod"),
    "no Pod, another one gives way": (vmi_world(FIRST, **AHEAD), "WriteStatus"),
    "a claim went after its Pod was created": (vmi_world(CLAIMING, a_pod()), ""),
    "the spec is invalid": (vmi_world(a_vmi("Pending"), problems=("x",)), "WriteStatus"),
    "the spec is invalid, an attempt is recorded": (vmi_world(FIRST, problems=("x",)), "WriteStatus"),
    "Pod without a node": (vmi_world(FIRST, a_pod()), ""),
    "Pod with a node": (vmi_world(FIRST, BOUND), "LabelNode"),
    "Pod with a node, labelled": (vmi_world(LABELLED, BOUND), ""),
    "node name too long for a label": (vmi_world(FIRST, a_pod(node="n" * 64)), ""),
    "node name just fits": (vmi_world(FIRST, a_pod(node="n" * 63)), "LabelNode"),
    "Pod up, not labelled": (vmi_world(FIRST, UP), "GrantStart"),
    "Pod running, launcher not": (vmi_world(LABELLED, a_pod("Running", node="node-1")), ""),
    "Pod going": (vmi_world(FIRST, a_pod(node="node-1", deleting=True)), "WriteStatus"),
    "Pod up and going": (vmi_world(FIRST, GOING), "WriteStatus"),
    "launcher ended beside a sidecar": (vmi_world(FIRST, CRASHED), "WriteStatus"),
    "Pod failed": (vmi_world(FIRST, ENDED), "WriteStatus"),
    "its node has no launcher image": (vmi_world(LABELLED, NO_IMAGE), "WriteStatus"),
    "launcher not up, time is left": (vmi_world(LABELLED, BOUND, placed_for=59.0, **IN_A_MINUTE), ""),
    "launcher not up in time": (vmi_world(LABELLED, BOUND, placed_for=60.0, **IN_A_MINUTE), "WriteStatus"),
    "Pod lost its label": (vmi_world(FIRST, STRIPPED), "AdoptPod"),
    "Pod lost its owner": (vmi_world(FIRST, ORPHAN), "AdoptPod"),
    "Pod existed and is not in the cache": (vmi_world(FIRST, **BEGUN), "ConfirmPodsAbsent"),
    "Pod was deleted: never created again": (vmi_world(FIRST, **BEGUN, **ABSENT), "WriteStatus"),
    "only a migration's Pod": (vmi_world(FIRST, TARGET), "CreatePod"),
    "the attempt's Pod with a migration's label": (vmi_world(FIRST, NAMESAKE), "GrantStart"),
    "Pod of an earlier attempt": (vmi_world(SECOND, UP), "DeletePod"),
    "Pods of an earlier attempt and of another name": (
        vmi_world(SECOND, UP, a_running_pod(uid="another", attempt=9)),
        "DeletePod",
    ),
    "Pod of an earlier attempt going": (vmi_world(SECOND, GOING), ""),
    "Pod of an earlier attempt, delete sent": (vmi_world(SECOND, UP, **SENT), ""),
    "Pod of an earlier attempt not in the cache": (vmi_world(SECOND), "ConfirmPodsAbsent"),
    "Pod of an earlier attempt gone": (vmi_world(SECOND, **ABSENT), "CreatePod"),
    "emulation, Pod needs KVM and has no node": (vmi_world(FIRST, NEEDS_KVM, **EMULATED), "WriteStatus"),
    "emulation, Pod has KVM and a node": (vmi_world(LABELLED, a_pod(node="node-1", has_kvm=True), **EMULATED), ""),
    "emulation, Pod needs KVM and is up": (vmi_world(FIRST, a_running_pod(has_kvm=True), **EMULATED), "GrantStart"),
    "emulation, Pod needs no KVM": (vmi_world(FIRST, a_pod(), **EMULATED), ""),
    "Pod needs KVM": (vmi_world(FIRST, NEEDS_KVM), ""),
    # after the grant
    "running": (vmi_world(RUNNING, UP), ""),
    "running, no node label": (vmi_world(UNLABELLED, UP), "LabelNode"),
    "running, label of another node": (vmi_world(a_vmi("Running", node="node-2", **GRANTED), UP), "LabelNode"),
    "running, Pod names another owner": (vmi_world(RUNNING, a_running_pod(owner_name="other")), "AdoptPod"),
    "running, Pod lost its label": (vmi_world(RUNNING, STRIPPED), "AdoptPod"),
    "to leave": (vmi_world(LEAVING, UP), "AnnotateEviction"),
    "to leave, annotated": (vmi_world(LEAVING, ANNOTATED), ""),
    "to leave, another value": (vmi_world(LEAVING, ANNOTATED_BY_OTHERS), "AnnotateEviction"),
    "to leave, Pod going": (vmi_world(LEAVING, GOING), ""),
    "to leave, Pod over": (vmi_world(LEAVING, ENDED), ""),
    "to leave another node": (vmi_world(LEAVING_BEFORE, UP), ""),
    "it stays": (vmi_world(RUNNING, ANNOTATED), "AnnotateEviction"),
    "it stays, somebody else's value": (vmi_world(RUNNING, ANNOTATED_BY_OTHERS), ""),
    "it stays, Pod going": (vmi_world(RUNNING, ANNOTATED_AND_GOING), ""),
    "it stays, Pod over": (vmi_world(RUNNING, ANNOTATED_AND_OVER), ""),
    "it is to leave no node, its Pod has none": (vmi_world(RUNNING, a_pod()), ""),
    "to leave before it runs": (
        vmi_world(a_vmi("Scheduled", evacuationNodeName="node-1", **GRANTED), UP),
        "AnnotateEviction LabelNode",
    ),
    "migrated": (vmi_world(RUNNING, MIGRATED), "SetUnpausedCondition"),
    "migrated, no node label": (vmi_world(UNLABELLED, MIGRATED), "SetUnpausedCondition LabelNode"),
    "migrated, gate is false": (vmi_world(RUNNING, NOT_YET), "SetUnpausedCondition"),
    "migrated, gate is true": (vmi_world(RUNNING, ALREADY), ""),
    "migrated and paused": (vmi_world(PAUSED, MIGRATED), ""),
    "migrated and ended": (vmi_world(RUNNING, a_pod("Failed", node="node-1", gates=(UNPAUSED,))), ""),
    "migrated, foreign gate first": (
        vmi_world(RUNNING, a_migrated_pod(gates=("other", UNPAUSED))),
        "SetUnpausedCondition",
    ),
    "migrated, Pod going": (vmi_world(RUNNING, a_migrated_pod(deleting=True)), ""),
    "migrated, virt-handler is silent": (vmi_world(UNKNOWN, MIGRATED), "SetUnpausedCondition"),
    "Pod with a foreign gate": (vmi_world(RUNNING, a_running_pod(gates=("other",))), ""),
    "a target without a guest": (vmi_world(RUNNING, UP, a_migrated_pod(uid="target", attempt=2)), ""),
    "a target failed": (vmi_world(RUNNING, UP, TARGET), ""),
    "its guest has left for the target": (vmi_world(an_instance(LEFT), UP, a_target()), "CommitMigration"),
    "its guest has left, over since": (vmi_world(an_instance(LEFT, "Failed"), OVER), ""),
    "Pod not in the cache": (vmi_world(RUNNING, node=HERE), "ConfirmPodsAbsent"),
    "Pod gone": (vmi_world(RUNNING, node=HERE, **ABSENT), "WriteStatus"),
    "Pod gone, its last state known": (vmi_world(RUNNING, node=HERE, last_states=(ENDED,)), "WriteStatus"),
    "Pod gone, last state known, node unseen": (vmi_world(RUNNING, node=UNSEEN, last_states=(ENDED,)), "WriteStatus"),
    "Pod gone, node unseen": (vmi_world(RUNNING, node=UNSEEN, **ABSENT), "ConfirmNode"),
    "Pod gone, node gone": (vmi_world(RUNNING, node=GONE, **ABSENT), "WriteStatus"),
    "Pod gone, node looks off": (vmi_world(RUNNING, node=LOOKS_OFF, **ABSENT), "ConfirmNode"),
    "Pod gone, node is off": (vmi_world(RUNNING, node=OFF, **ABSENT), "WriteStatus"),
    "another Pod has its name": (vmi_world(a_vmi("Scheduled", **OTHER_GRANT), UP), "ConfirmPodsAbsent"),
    "no Pod was granted, none exists": (vmi_world(a_vmi("Running"), **ABSENT), "WriteStatus"),
    # final
    "final, its Pod over": (vmi_world(FAILED, OVER), ""),
    "final, its Pod ends by itself": (vmi_world(FAILED, UP), ""),
    "failed, an idle Pod": (vmi_world(FAILED_ELSEWHERE, UP), "DeletePod"),
    "failed, an idle Pod that is over: its log is kept": (vmi_world(FAILED_ELSEWHERE, OVER), ""),
    "succeeded, an idle Pod": (vmi_world(a_vmi("Succeeded", **OTHER_GRANT), UP), "DeletePod"),
    "final without a start": (vmi_world(a_vmi("Failed", reason="InvalidDomain", **GRANTED), UP), "DeletePod"),
    "final, unknown to its launcher": (vmi_world(a_vmi("Failed", reason="GuestLost", **GRANTED), UP), "DeletePod"),
    # deletion
    "deleted": (vmi_world(ENDING, UP), "DeletePod"),
    "deleted, only the target is left": (vmi_world(ENDING, UP_TARGET), "DeletePod"),
    "deleted before the grant": (vmi_world(ENDING_EARLY, UP), "DeletePod"),
    "deleted, the garbage collector took the owner": (vmi_world(ENDING, ORPHAN), "DeletePod"),
    "deleted, Pod lost its label: its end must enqueue": (vmi_world(ENDING, STRIPPED), "AdoptPod"),
    "deleted, Pod going": (vmi_world(ENDING, GOING), ""),
    "deleted, Pod's delete sent": (vmi_world(ENDING, UP, **SENT), ""),
    "deleted, no Pod in the cache": (vmi_world(ENDING_FAILED), "ConfirmPodsAbsent"),
    "deleted, no Pod, never started": (vmi_world(ENDING_EARLY, **ABSENT), "WriteStatus"),
    "deleted, Pod gone without proof": (vmi_world(ENDING, node=HERE, **ABSENT), "WriteStatus"),
    "deleted, Pod gone, node unseen": (vmi_world(ENDING_UNKNOWN, node=UNSEEN, **ABSENT), "ConfirmNode"),
    "deleted, no Pod was granted, node unseen": (
        vmi_world(a_vmi("Running", deleting=True, nodeName="node-1"), node=UNSEEN, **ABSENT),
        "ConfirmNode",
    ),
    "deleted, no Pod, final": (vmi_world(ENDING_FAILED, **ABSENT), "RemoveFinalizers"),
    "deleted, upstream's finalizer": (
        vmi_world(a_vmi("Failed", deleting=True, finalizers=(VM_FINALIZER,)), **ABSENT),
        "RemoveFinalizers",
    ),
    "deleted, only foreign finalizers": (vmi_world(a_vmi("Running", deleting=True, finalizers=("x",)), UP), ""),
    "evacuated, its Pod is over": (vmi_world(LEAVING, ENDED), ""),
    # phases of other versions
    "unknown phase": (vmi_world(a_vmi("WaitingForSync", attempt=1)), ""),
    "unknown phase, deleted": (vmi_world(a_vmi("WaitingForSync", deleting=True), UP), ""),
}


@pytest.mark.parametrize(("world", "steps"), TABLE.values(), ids=TABLE.keys())
def test_each_world_has_its_actions(world: World, steps: str) -> None:
    plan = decide(world)
    actions = [
        step for step in plan.steps for step in (step.actions if isinstance(step, IndependentActions) else (step,))
    ]
    assert " ".join(type(step).__name__ for step in actions) == steps
    assert all(step.because for step in actions)


def test_every_known_phase_has_a_rule_and_no_other() -> None:
    assert set(RULES) == set(OWNERS)


def test_deletes_name_the_pod_by_uid() -> None:
    (action,) = decide(vmi_world(ENDING, UP)).steps
    assert isinstance(action, DeletePod)
    assert action.uid == POD_UID


def test_the_start_is_granted_to_the_pod_that_is_up() -> None:
    (action,) = decide(vmi_world(FIRST, UP)).steps
    assert isinstance(action, GrantStart)
    assert action.pod.uid == POD_UID


def test_a_launcher_that_is_not_up_is_looked_at_again_when_its_time_is_over() -> None:
    assert decide(vmi_world(LABELLED, BOUND, placed_for=20.0, **IN_A_MINUTE)).requeue_after == 40.0


@pytest.mark.parametrize(
    ("world", "value", "because"),
    [
        (vmi_world(LEAVING, UP), "kubevirt", "its guest is to leave the node"),
        (vmi_world(LEAVING, ANNOTATED_BY_OTHERS), "kubevirt", "its guest is to leave the node"),
        (vmi_world(RUNNING, ANNOTATED), None, "its guest stays"),
        (vmi_world(LEAVING_BEFORE, ANNOTATED), None, "its guest stays"),
    ],
    ids=["to leave", "to leave, another value", "it stays", "it has left the node"],
)
def test_the_annotation_of_a_pod_says_whether_its_guest_is_to_leave(
    world: World, value: str | None, because: str
) -> None:
    (step,) = decide(world).steps
    assert isinstance(step, IndependentActions)
    assert step.actions == (AnnotateEviction(UP.metadata.name, POD_UID, value, because=because),)


@pytest.mark.parametrize("phase", sorted(AFTER_HAND_OVER))
@pytest.mark.parametrize("finalizer", [(VMI_FINALIZER,), (VMI_FINALIZER, VM_FINALIZER)], ids=["ours", "both"])
def test_absence_in_the_cache_is_never_taken_for_death(phase: str, finalizer: tuple[str, ...]) -> None:
    plan = decide(vmi_world(a_vmi(phase, finalizers=finalizer, **GRANTED)))
    assert [type(step) for step in plan.steps] == [ConfirmPodsAbsent]


@pytest.mark.parametrize("deleting", [False, True], ids=["wanted", "deleted"])
def test_a_pod_is_created_or_granted_only_without_a_grant(deleting: bool) -> None:
    """The full product of everything that can be known after the hand-over."""
    pods = ((), (UP,), (GOING,), (OVER,), (TARGET,), (STRIPPED,))
    for phase, some, absent, begun, node in product(
        sorted(AFTER_HAND_OVER), pods, (False, True), (False, True), (None, HERE, UNSEEN)
    ):
        vmi = a_vmi(phase, deleting=deleting, **GRANTED)
        world = vmi_world(vmi, *some, is_absence_confirmed=absent, was_begun=begun, node=node)
        names = {type(step).__name__ for step in decide(world).steps}
        assert not names & {"CreatePod", "GrantStart", "RemoveFinalizers"}, world


def test_a_pod_is_a_target_by_the_grant_alone() -> None:
    """Users can write labels: a label must not make a pending Pod a migration's target."""
    before, after = vmi_world(FIRST, NAMESAKE), vmi_world(RUNNING, UP, TARGET)
    assert (before.role_of(NAMESAKE), before.source) == (Role.SOURCE, NAMESAKE)
    assert [after.role_of(pod) for pod in after.pods] == [Role.SOURCE, Role.TARGET]
