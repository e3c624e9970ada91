# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about what a migration leaves that is gone, as a table, and what no cell of it may say."""

from __future__ import annotations

from itertools import product
from typing import Any

from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE
from msgspec.structs import replace

from controlplane.api.objects.pod import Pod
from controlplane.engine.plan import Plan
from controlplane.virt_controller.migration.world import DeleteTarget
from controlplane.virt_controller.orphan.decide import decide
from controlplane.virt_controller.orphan.world import World
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_controller.builders import a_running_pod
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
    a_target,
    an_instance,
)

GIVEN = {"activePods": THERE, "nodeName": "node-2"}


def made_for_it(pod: Pod) -> Pod:
    meta = pod.metadata
    return replace(pod, metadata=replace(meta, labels={**meta.labels, MIGRATION_JOB: UID}))


PODS: dict[str, tuple[Pod, ...]] = {
    "target up": (made_for_it(a_target()),),
    "target ended": (made_for_it(a_target("Failed")),),
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


def a_world(state: str, pods: str, **facts: Any) -> World:
    moving, changes = STATES[state]
    vmi = an_instance(moving, ran=True, node="node-1", **changes)
    return World(vmi=vmi, pods=PODS[pods], **{"gone": frozenset({UID}), **facts})


def test_what_is_done_about_what_is_left() -> None:
    table = render(
        "the migration is gone", list(STATES), list(PODS), lambda state, pods: steps(decide(a_world(state, pods)))
    )
    check("orphan", {"gone": table})


def test_a_pod_where_the_guest_may_be_stays() -> None:
    for state, pods in product(STATES, PODS):
        world = a_world(state, pods)
        for step in decide(world).steps:
            if isinstance(step, DeleteTarget):
                assert step.uid not in world.vmi.status.active_pods, (state, pods)
                assert step.uid != TARGET_UID or state.startswith(("not", "another", "failed")), (state, pods)


def test_nothing_is_done_of_what_is_there() -> None:
    for state, pods in product(STATES, PODS):
        assert decide(a_world(state, pods, gone=frozenset({"another one"}))) == Plan(), (state, pods)


def test_a_pod_is_deleted_once() -> None:
    assert decide(a_world("failed", "target up", deletes_sent=frozenset({TARGET_UID}))) == Plan()


def test_the_label_goes_last() -> None:
    left = a_world("failed", "target going").vmi
    marked = replace(left, metadata=replace(left.metadata, labels={MIGRATION_TARGET_NODE: "node-2"}))
    gone = frozenset({UID})
    found = [steps(decide(World(vmi=marked, pods=PODS[pods], gone=gone))) for pods in PODS]
    assert found == ["DeleteTarget", "DeleteTarget", "Unlabel", "DeleteTarget", "Unlabel"]
