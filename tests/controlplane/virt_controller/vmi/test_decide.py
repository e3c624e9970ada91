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
from controlplane.engine.plan import IndependentActions
from controlplane.virt_controller.vmi.decide import RULES, decide
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.world import ConfirmPodsAbsent, DeletePod, GrantStart, Role, World
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    a_condition,
    a_moved_pod,
    a_pod,
    a_running_pod,
    a_vmi,
    vmi_world,
)

SCHEDULING = {"phase": "Scheduling", "attempt": 1}
GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
OTHER_GRANT = {"attempt": 1, "epoch": 1, "activePods": {"another": "node-1"}, "nodeName": "node-1"}
SENT = {"deletes_sent": frozenset({POD_UID})}
ABSENT = {"is_absence_confirmed": True}
BEGUN = {"was_begun": True}
BOUND = a_pod(node="node-1")
SECOND = a_vmi("Scheduling", attempt=2)
EMULATED = {
    "configuration": KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True)),
}
HERE, UNSEEN = NodeState("node-1"), NodeState("node-1", is_unseen=True)
TARGET = a_pod("Failed", uid="target", attempt=2, node="node-2", labels={MIGRATION_JOB: "job"})
NAMESAKE = a_running_pod(uid="target", labels={ROLE: LAUNCHER_ROLE, MIGRATION_JOB: "job"})
MOVED = a_moved_pod()
STRIPPED = a_running_pod(labels={})
RUNNING = a_vmi("Running", node="node-1", **GRANTED)

CLAIMING = a_vmi(spec={"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]}, **SCHEDULING)
CLAIMS = {"data": PersistentVolumeClaim()}

TABLE: dict[str, tuple[World, list[str]]] = {
    # to the node
    "fresh: the attempt is recorded first": (vmi_world(a_vmi()), ["WriteStatus"]),
    "without finalizer: that first": (vmi_world(a_vmi(finalizers=())), ["AddFinalizer"]),
    "attempt recorded: create the Pod": (vmi_world(a_vmi(**SCHEDULING)), ["CreatePod"]),
    "a claim is not there: no Pod yet": (vmi_world(CLAIMING), ["WriteStatus"]),
    "its claims are there: create the Pod": (vmi_world(CLAIMING, claims=CLAIMS), ["CreatePod"]),
    "a claim went after its Pod was made: wait for the Pod": (vmi_world(CLAIMING, a_pod()), []),
    "spec is wrong: say so, never more": (vmi_world(a_vmi("Pending"), problems=("x",)), ["WriteStatus"]),
    "spec is wrong, whatever was recorded: no Pod": (vmi_world(a_vmi(**SCHEDULING), problems=("x",)), ["WriteStatus"]),
    "Pod waits for a node: wait": (vmi_world(a_vmi(**SCHEDULING), a_pod()), []),
    "Pod placed: label": (vmi_world(a_vmi(**SCHEDULING), BOUND), ["LabelNode"]),
    "Pod placed, labelled: wait": (vmi_world(a_vmi(node="node-1", **SCHEDULING), BOUND), []),
    "Pod up: grant the start, labelled or not": (vmi_world(a_vmi(**SCHEDULING), a_running_pod()), ["GrantStart"]),
    "Pod running, launcher not: wait": (
        vmi_world(a_vmi(node="node-1", **SCHEDULING), a_pod("Running", node="node-1")),
        [],
    ),
    "Pod going: say so": (vmi_world(a_vmi(**SCHEDULING), a_pod(node="node-1", deleting=True)), ["WriteStatus"]),
    "launcher ended, something beside it runs on: say so": (
        vmi_world(a_vmi(**SCHEDULING), a_pod("Running", node="node-1", compute={"terminated": {"exitCode": 1}})),
        ["WriteStatus"],
    ),
    "Pod failed: say so": (vmi_world(a_vmi(**SCHEDULING), a_pod("Failed", node="node-1")), ["WriteStatus"]),
    "Pod up and going: no grant": (vmi_world(a_vmi(**SCHEDULING), a_running_pod(deleting=True)), ["WriteStatus"]),
    "Pod lost its label: put it back": (vmi_world(a_vmi(**SCHEDULING), STRIPPED), ["AdoptPod"]),
    "Pod lost its owner: put it back": (vmi_world(a_vmi(**SCHEDULING), a_running_pod(owner_name=None)), ["AdoptPod"]),
    "Pod names another owner while it runs: put it back": (
        vmi_world(RUNNING, a_running_pod(owner_name="other")),
        ["AdoptPod"],
    ),
    "deleted, the garbage collector took the Pod's owner: no fight": (
        vmi_world(a_vmi("Running", deleting=True, **GRANTED), a_running_pod(owner_name=None)),
        ["DeletePod"],
    ),
    "deleted, Pod lost its label: put that back, or nobody hears of its end": (
        vmi_world(a_vmi("Running", deleting=True, **GRANTED), STRIPPED),
        ["AdoptPod"],
    ),
    "Pod placed on a node whose name is too long for a label": (
        vmi_world(a_vmi(**SCHEDULING), a_pod(node="n" * 64)),
        [],
    ),
    "Pod placed on a node whose name just fits": (vmi_world(a_vmi(**SCHEDULING), a_pod(node="n" * 63)), ["LabelNode"]),
    "Pod was there and is not seen: ask": (vmi_world(a_vmi(**SCHEDULING), **BEGUN), ["ConfirmPodsAbsent"]),
    "Pod was deleted: never made again": (vmi_world(a_vmi(**SCHEDULING), **BEGUN, **ABSENT), ["WriteStatus"]),
    "a migration's Pod is none to start in": (vmi_world(a_vmi(**SCHEDULING), TARGET), ["CreatePod"]),
    "the attempt's Pod, whatever label it got, is the one to start in": (
        vmi_world(a_vmi(**SCHEDULING), NAMESAKE),
        ["GrantStart"],
    ),
    "an earlier attempt's Pod is none to start in: it goes first": (vmi_world(SECOND, a_running_pod()), ["DeletePod"]),
    "of several Pods that of an earlier attempt goes, not one of another name": (
        vmi_world(SECOND, a_running_pod(), a_running_pod(uid="another", attempt=9)),
        ["DeletePod"],
    ),
    "an earlier attempt's Pod is going: wait": (vmi_world(SECOND, a_running_pod(deleting=True)), []),
    "an earlier attempt's Pod was told to go: wait": (vmi_world(SECOND, a_running_pod(), **SENT), []),
    "an earlier attempt's Pod is not seen: ask": (vmi_world(SECOND), ["ConfirmPodsAbsent"]),
    "an earlier attempt's Pod is gone: create the next": (vmi_world(SECOND, **ABSENT), ["CreatePod"]),
    "Pod without a node asks for KVM under emulation: a further attempt is recorded": (
        vmi_world(a_vmi(**SCHEDULING), a_pod(has_kvm=True), **EMULATED),
        ["WriteStatus"],
    ),
    "Pod with a node asks for KVM under emulation: it is left as it is": (
        vmi_world(a_vmi(node="node-1", **SCHEDULING), a_pod(node="node-1", has_kvm=True), **EMULATED),
        [],
    ),
    "Pod is up with KVM under emulation: grant the start": (
        vmi_world(a_vmi(**SCHEDULING), a_running_pod(has_kvm=True), **EMULATED),
        ["GrantStart"],
    ),
    "Pod without a node asks for KVM, which is wanted: wait": (vmi_world(a_vmi(**SCHEDULING), a_pod(has_kvm=True)), []),
    "Pod without a node and without KVM under emulation: wait": (
        vmi_world(a_vmi(**SCHEDULING), a_pod(), **EMULATED),
        [],
    ),
    # after the hand-over
    "running: nothing": (vmi_world(RUNNING, a_running_pod()), []),
    "running, label of the node missing: put it back": (
        vmi_world(a_vmi("Running", **GRANTED), a_running_pod()),
        ["LabelNode"],
    ),
    "running, label names another node: put it right": (
        vmi_world(a_vmi("Running", node="node-2", **GRANTED), a_running_pod()),
        ["LabelNode"],
    ),
    "running where it has moved to: Services may send there": (vmi_world(RUNNING, MOVED), ["SetUnpausedCondition"]),
    "running where it has moved to, label of the node missing: both": (
        vmi_world(a_vmi("Running", **GRANTED), MOVED),
        ["SetUnpausedCondition", "LabelNode"],
    ),
    "running where it has moved to, which is said to be not there: put it right": (
        vmi_world(RUNNING, a_moved_pod(a_condition(UNPAUSED, "False"))),
        ["SetUnpausedCondition"],
    ),
    "running where it has moved to, and that is said: nothing": (
        vmi_world(RUNNING, a_moved_pod(a_condition(UNPAUSED, "True"))),
        [],
    ),
    "standing still where it has moved to: Services wait until it goes on": (
        vmi_world(a_vmi("Running", node="node-1", conditions=[a_condition("Paused", "True")], **GRANTED), MOVED),
        [],
    ),
    "ended where it has moved to: nothing": (vmi_world(RUNNING, a_pod("Failed", node="node-1", gates=(UNPAUSED,))), []),
    "running where it has moved to, which waits for another's word before ours": (
        vmi_world(RUNNING, a_moved_pod(gates=("other", UNPAUSED))),
        ["SetUnpausedCondition"],
    ),
    "running where it has moved to, its Pod going: nothing": (vmi_world(RUNNING, a_moved_pod(deleting=True)), []),
    "Pod waits for another word than ours: nothing": (vmi_world(RUNNING, a_running_pod(gates=("other",))), []),
    "its node's virt-handler is silent where it has moved to: Services may send there all the same": (
        vmi_world(a_vmi("Unknown", node="node-1", **GRANTED), MOVED),
        ["SetUnpausedCondition"],
    ),
    "a migration's Pod, which has no guest yet, gets nothing sent to": (
        vmi_world(RUNNING, a_running_pod(), a_moved_pod(uid="target", attempt=2)),
        [],
    ),
    "Pod lost its label while it runs: put it back": (vmi_world(RUNNING, STRIPPED), ["AdoptPod"]),
    "Pod not seen: ask the API server": (vmi_world(RUNNING, node=HERE), ["ConfirmPodsAbsent"]),
    "Pod gone from the API: say what that means": (vmi_world(RUNNING, node=HERE, **ABSENT), ["WriteStatus"]),
    "Pod gone, last words known: no need to ask": (
        vmi_world(RUNNING, node=HERE, last_words=(a_pod("Failed", node="node-1"),)),
        ["WriteStatus"],
    ),
    "Pod gone, last words known, its node not seen: no need to ask": (
        vmi_world(RUNNING, node=UNSEEN, last_words=(a_pod("Failed", node="node-1"),)),
        ["WriteStatus"],
    ),
    "Pod gone, its node not seen: ask for that, too": (vmi_world(RUNNING, node=UNSEEN, **ABSENT), ["ConfirmNode"]),
    "Pod gone, its node gone: say so": (
        vmi_world(RUNNING, node=replace(UNSEEN, is_gone=True), **ABSENT),
        ["WriteStatus"],
    ),
    "Pod gone, its node looks off: ask for that, too": (
        vmi_world(RUNNING, node=replace(HERE, looks_out_of_service=True), **ABSENT),
        ["ConfirmNode"],
    ),
    "Pod gone, its node is off by the API server's word: say so": (
        vmi_world(RUNNING, node=replace(HERE, looks_out_of_service=True, is_out_of_service=True), **ABSENT),
        ["WriteStatus"],
    ),
    "another Pod has its name: ask": (
        vmi_world(a_vmi("Scheduled", **OTHER_GRANT), a_running_pod()),
        ["ConfirmPodsAbsent"],
    ),
    "a migration's Pod failed: the source runs on": (vmi_world(RUNNING, a_running_pod(), TARGET), []),
    "no Pod was named, asked: no more asking": (vmi_world(a_vmi("Running"), **ABSENT), ["WriteStatus"]),
    # final
    "final, Pod over: keep it": (vmi_world(a_vmi("Failed", **GRANTED), a_pod("Failed")), []),
    "final, its Pod ends by itself": (vmi_world(a_vmi("Failed", **GRANTED), a_running_pod()), []),
    "final, an idle Pod: delete": (vmi_world(a_vmi("Failed", **OTHER_GRANT), a_running_pod()), ["DeletePod"]),
    "final, an idle Pod that is over: its log is kept": (
        vmi_world(a_vmi("Failed", **OTHER_GRANT), a_pod("Failed")),
        [],
    ),
    "ended well, an idle Pod: delete": (vmi_world(a_vmi("Succeeded", **OTHER_GRANT), a_running_pod()), ["DeletePod"]),
    "final without a start: delete": (
        vmi_world(a_vmi("Failed", reason="InvalidDomain", **GRANTED), a_running_pod()),
        ["DeletePod"],
    ),
    "final, and its launcher does not know it: delete": (
        vmi_world(a_vmi("Failed", reason="GuestLost", **GRANTED), a_running_pod()),
        ["DeletePod"],
    ),
    # deletion
    "deleted: delete the Pod": (vmi_world(a_vmi("Running", deleting=True, **GRANTED), a_running_pod()), ["DeletePod"]),
    "deleted, and the target of a migration is the last Pod: it goes as well": (
        vmi_world(
            a_vmi("Running", deleting=True, **GRANTED),
            a_running_pod(uid="target", attempt=2, labels={ROLE: LAUNCHER_ROLE, MIGRATION_JOB: "job"}),
        ),
        ["DeletePod"],
    ),
    "deleted before the grant: no grant": (
        vmi_world(a_vmi(deleting=True, **SCHEDULING), a_running_pod()),
        ["DeletePod"],
    ),
    "deleted, Pod going: wait": (vmi_world(a_vmi("Running", deleting=True), a_running_pod(deleting=True)), []),
    "deleted, Pod's delete sent: wait": (vmi_world(a_vmi("Running", deleting=True), a_running_pod(), **SENT), []),
    "deleted, no Pod seen: ask": (vmi_world(a_vmi("Failed", deleting=True)), ["ConfirmPodsAbsent"]),
    "deleted, no Pod, never started: say how it ended first": (
        vmi_world(a_vmi(deleting=True, **SCHEDULING), **ABSENT),
        ["WriteStatus"],
    ),
    "deleted, Pod gone without proof: say so, hold on": (
        vmi_world(a_vmi("Running", deleting=True, **GRANTED), node=HERE, **ABSENT),
        ["WriteStatus"],
    ),
    "deleted, Pod gone, node not seen: ask for it": (
        vmi_world(a_vmi("Unknown", deleting=True, **GRANTED), node=UNSEEN, **ABSENT),
        ["ConfirmNode"],
    ),
    "deleted, no Pod was named, node not seen: ask for it": (
        vmi_world(a_vmi("Running", deleting=True, nodeName="node-1"), node=UNSEEN, **ABSENT),
        ["ConfirmNode"],
    ),
    "deleted, no Pod, final: let go": (vmi_world(a_vmi("Failed", deleting=True), **ABSENT), ["RemoveFinalizers"]),
    "deleted, upstream's finalizer: let go": (
        vmi_world(a_vmi("Failed", deleting=True, finalizers=(VM_FINALIZER,)), **ABSENT),
        ["RemoveFinalizers"],
    ),
    "deleted, no finalizer of ours: nothing": (
        vmi_world(a_vmi("Running", deleting=True, finalizers=("x",)), a_running_pod()),
        [],
    ),
    # phases of other versions
    "a phase that nobody here knows: nothing": (vmi_world(a_vmi("WaitingForSync", attempt=1)), []),
    "deleted in such a phase: nothing": (vmi_world(a_vmi("WaitingForSync", deleting=True), a_running_pod()), []),
}


@pytest.mark.parametrize(("world", "steps"), TABLE.values(), ids=TABLE.keys())
def test_each_world_has_its_actions(world: World, steps: list[str]) -> None:
    plan = decide(world)
    actions = [
        step for step in plan.steps for step in (step.actions if isinstance(step, IndependentActions) else (step,))
    ]
    assert [type(step).__name__ for step in actions] == steps
    assert all(step.because for step in actions)


def test_every_known_phase_has_a_rule_and_no_other() -> None:
    assert set(RULES) == set(OWNERS)


def test_deletes_name_the_pod_by_uid() -> None:
    (action,) = decide(vmi_world(a_vmi("Running", deleting=True, **GRANTED), a_running_pod())).steps
    assert isinstance(action, DeletePod)
    assert action.uid == POD_UID


def test_the_start_is_granted_to_the_pod_that_is_ready() -> None:
    (action,) = decide(vmi_world(a_vmi(**SCHEDULING), a_running_pod())).steps
    assert isinstance(action, GrantStart)
    assert action.pod.uid == POD_UID


@pytest.mark.parametrize("phase", sorted(AFTER_HAND_OVER))
@pytest.mark.parametrize("finalizer", [(VMI_FINALIZER,), (VMI_FINALIZER, VM_FINALIZER)], ids=["ours", "both"])
def test_absence_in_the_cache_is_never_taken_for_death(phase: str, finalizer: tuple[str, ...]) -> None:
    plan = decide(vmi_world(a_vmi(phase, finalizers=finalizer, **GRANTED)))
    assert [type(step) for step in plan.steps] == [ConfirmPodsAbsent]


@pytest.mark.parametrize("deleting", [False, True], ids=["wanted", "deleted"])
def test_a_pod_is_created_or_granted_only_without_a_grant(deleting: bool) -> None:
    """The full product of everything that can be known after the hand-over."""
    pods = ((), (a_running_pod(),), (a_running_pod(deleting=True),), (a_pod("Failed"),), (TARGET,), (STRIPPED,))
    for phase, some, absent, begun, node in product(
        sorted(AFTER_HAND_OVER), pods, (False, True), (False, True), (None, HERE, UNSEEN)
    ):
        vmi = a_vmi(phase, deleting=deleting, **GRANTED)
        world = vmi_world(vmi, *some, is_absence_confirmed=absent, was_begun=begun, node=node)
        names = {type(step).__name__ for step in decide(world).steps}
        assert not names & {"CreatePod", "GrantStart", "RemoveFinalizers"}, world


def test_a_pod_is_a_target_by_the_grant_alone() -> None:
    """Users can write labels: a label on a pending Pod made it a migration target, which the controller then requested
    without end.
    """
    labelled = a_running_pod(labels={ROLE: LAUNCHER_ROLE, MIGRATION_JOB: "job"})
    before = vmi_world(a_vmi(**SCHEDULING), labelled)
    assert (before.role_of(labelled), before.source) == (Role.SOURCE, labelled)
    after = vmi_world(RUNNING, a_running_pod(), TARGET)
    assert [after.role_of(pod) for pod in after.pods] == [Role.SOURCE, Role.TARGET]
