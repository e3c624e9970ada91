# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions about the remains of a deleted migration, as a table, and invariants of every cell."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE
from msgspec.structs import replace

from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.pod import ContainerState, ContainerStatus, Pod, Terminated
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.migration.world import DeleteTarget
from controlplane.virt_controller.orphan.decide import decide
from controlplane.virt_controller.orphan.world import World
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_controller.builders import POD_UID, a_running_pod
from tests.controlplane.virt_controller.migration.worlds import (
    ARRIVED,
    BEGUN,
    DOOR_OPEN,
    FAILED_SENT,
    HANDED_OVER,
    LEFT,
    OTHERS,
    TARGET_UID,
    THERE,
    UID,
    Json,
    a_migration,
    a_target,
    an_instance,
)

GIVEN = {"activePods": THERE, "nodeName": "node-2"}


def made_for_it(pod: Pod) -> Pod:
    meta = pod.metadata
    return replace(pod, metadata=replace(meta, labels={**meta.labels, MIGRATION_JOB: UID}))


def with_ended_launcher() -> Pod:
    ended = ContainerStatus(name="compute", state=ContainerState(terminated=Terminated(exit_code=137)))
    up = a_target()
    return replace(up, status=replace(up.status, container_statuses=(ended,)))


PODS: dict[str, tuple[Pod, ...]] = {
    "target up": (made_for_it(a_target()),),
    "target ended": (made_for_it(a_target("Failed")),),
    "its launcher ended": (made_for_it(with_ended_launcher()),),
    "target going": (made_for_it(a_target(deleting=True)),),
    "both": (a_running_pod(), made_for_it(a_target())),
    "none": (),
}
STATES: dict[str, tuple[Json | None, Json]] = {
    "not handed over": (None, {}),
    "another one's": ({**OTHERS, "sourcePodUID": "another"}, {}),
    "handed over": (HANDED_OVER, {}),
    "door open": (DOOR_OPEN, {}),
    "begun": (BEGUN, {}),
    "begun, to end": ({**BEGUN, "abortRequested": True}, {}),
    "arrived": (ARRIVED, {}),
    "failed": (FAILED_SENT, {}),
    "left": (LEFT, {}),
    "given": (LEFT, GIVEN),
}


def a_world(state: str, pods: str, *migrations: VirtualMachineInstanceMigration, **facts: Any) -> World:
    migration, changes = STATES[state]
    vmi = an_instance(migration, ran=True, node="node-1", **changes)
    spare = tuple(pod for pod in PODS[pods] if pod.uid not in vmi.status.active_pods)
    return World(vmi=vmi, spare=spare, migrations=migrations, **{"gone": frozenset({UID}), **facts})


def test_what_is_done_with_the_remains_matches_the_table() -> None:
    table = render(
        "the migration is gone", list(STATES), list(PODS), lambda state, pods: steps(decide(a_world(state, pods)))
    )
    check("orphan", {"gone": table})


def deleted(world: World) -> list[str]:
    actions = [step for step in decide(world).steps if isinstance(step, IndependentActions) for step in step.actions]
    return [action.uid for action in actions if isinstance(action, DeleteTarget)]


def test_a_pod_that_may_run_the_guest_stays() -> None:
    for state, pods in product(STATES, PODS):
        world = a_world(state, pods)
        for uid in deleted(world):
            assert uid not in world.vmi.status.active_pods, (state, pods)
            assert uid != TARGET_UID or state.startswith(("not", "another", "failed")), (state, pods)


def test_nothing_is_done_before_the_migration_is_confirmed_gone() -> None:
    for state, pods in product(STATES, PODS):
        if (state, pods) not in (("given", "both"), ("another one's", "both")):
            assert decide(a_world(state, pods, gone=frozenset({"another one"}))) == Plan(), (state, pods)


def test_a_pod_is_deleted_once() -> None:
    assert decide(a_world("failed", "target up", deletes_sent=frozenset({TARGET_UID}))) == Plan()


SUCCEEDED, FAILED = (a_migration(name, migrationState=LEFT) for name in ("Succeeded", "Failed"))


@pytest.mark.parametrize(
    ("migrations", "gone", "left"),
    [
        ((), frozenset(), [POD_UID]),
        ((SUCCEEDED,), frozenset(), []),
        ((FAILED,), frozenset(), [POD_UID]),
        ((), frozenset({UID}), [POD_UID]),
    ],
    ids=["no migration", "it exists", "another one failed", "it is gone"],
)
def test_the_pod_that_a_guest_has_left_is_deleted_unless_a_migration_is_responsible(
    migrations: tuple[VirtualMachineInstanceMigration, ...], gone: frozenset[str], left: list[str]
) -> None:
    """A later hand-over has replaced the migration state that named it."""
    later = {**OTHERS, "sourcePodUID": TARGET_UID}
    vmi = an_instance(later, ran=True, **GIVEN)
    world = World(vmi=vmi, spare=(a_running_pod(),), migrations=migrations, gone=gone)
    assert deleted(world) == left


@pytest.mark.parametrize(("phase", "left"), [("Succeeded", [TARGET_UID]), ("Failed", []), ("Running", [])])
def test_a_former_target_that_the_guest_has_left_is_deleted(phase: str, left: list[str]) -> None:
    """A later migration, which no longer exists, moved the guest away."""
    vmi = an_instance(None, ran=True)
    world = World(vmi=vmi, spare=(made_for_it(a_target()),), migrations=(a_migration(phase),))
    assert deleted(world) == left


def labelled(state: str, pods: str) -> World:
    world = a_world(state, pods)
    meta = world.vmi.metadata
    vmi = replace(world.vmi, metadata=replace(meta, labels={**meta.labels, MIGRATION_TARGET_NODE: "node-2"}))
    return World(vmi=vmi, spare=world.spare, gone=world.gone)


@pytest.mark.parametrize("state", ["not handed over", "another one's", "handed over", "begun, to end", "left"])
def test_the_label_of_an_active_or_another_migration_stays(state: str) -> None:
    assert "RemoveTargetLabel" not in steps(decide(labelled(state, "target going")))


@pytest.mark.parametrize("state", ["failed", "given"])
def test_the_label_is_removed_last(state: str) -> None:
    actions = [steps(decide(labelled(state, pods))) for pods in ("both", "none")]
    assert actions == ["IndependentActions", "RemoveTargetLabel"]
