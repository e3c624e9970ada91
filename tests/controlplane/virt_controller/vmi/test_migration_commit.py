# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commit of a migration, which makes the target the owner of the run: a table, and invariants of every cell."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from controlplane.api.objects.pod import Pod
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.migration_commit import commit_migration, find_arrived_migration
from controlplane.virt_controller.vmi.status import derive_status
from controlplane.virt_controller.vmi.world import World
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_controller.builders import a_pod, a_running_pod, vmi_world
from tests.controlplane.virt_controller.migration.worlds import (
    ARRIVED,
    BEGUN,
    DOOR_OPEN,
    FAILED_SENT,
    HANDED_OVER,
    LEFT,
    TARGET_UID,
    THERE,
    Json,
    a_target,
    an_instance,
)

ABSENT: dict[str, Any] = {"is_absence_confirmed": True, "was_begun": True}
SOURCES: dict[str, tuple[tuple[Pod, ...], dict[str, Any]]] = {
    "source up": ((a_running_pod(),), {}),
    "source ended": ((a_pod("Failed", node="node-1"),), {}),
    "source unseen": ((), {}),
    "source gone": ((), {**ABSENT, "node": NodeState("node-1")}),
    "source gone, node gone": ((), {**ABSENT, "node": NodeState("node-1", is_unseen=True, is_gone=True)}),
}
TARGETS: dict[str, tuple[Pod, ...]] = {
    "up": (a_target(),),
    "ended": (a_target("Failed"),),
    "unseen": (),
}
MOVES: dict[str, Json] = {
    "handed over": HANDED_OVER,
    "door open": DOOR_OPEN,
    "begun": BEGUN,
    "arrived": ARRIVED,
    "arrived, failed": {**ARRIVED, "failed": True, "completed": True},
    "failed": FAILED_SENT,
    "left": LEFT,
    "left, cancelled": {**LEFT, "abortRequested": True},
    "left another Pod": {**LEFT, "sourcePodUID": "another"},
    "left for nowhere": {**LEFT, "targetNode": ""},
}
CELLS = list(product(MOVES, SOURCES, TARGETS, (False, True)))


def world(move: str, source: str, target: str, is_deleting: bool) -> World:
    pods, facts = SOURCES[source]
    vmi = an_instance(MOVES[move], deleting=is_deleting, node="node-1", ran=True)
    return vmi_world(vmi, *pods, *TARGETS[target], **facts)


def outcome(*cell: Any) -> str:
    before = world(*cell)
    does, status = steps(decide(before)), derive_status(before, None)
    after = before.vmi.status.phase if status is None else status.phase
    return does if after == "Running" else f"{does} > {after}"


def test_every_state_of_a_migrating_run_matches_the_table() -> None:
    tables = {}
    for title, is_deleting in (("there", False), ("being deleted", True)):

        def one(row: str, move: str, is_deleting: bool = is_deleting) -> str:
            source, target = row.split("; target ")
            return outcome(move, source, target, is_deleting)

        rows = [f"{source}; target {target}" for source, target in product(SOURCES, TARGETS)]
        tables[title] = render(f"{title}; > the phase that is written", rows, list(MOVES), one)
    check("vmi_moving", tables)


def test_a_commit_needs_the_sources_report_or_proof() -> None:
    for cell in CELLS:
        move, source, target, _unused = cell
        if "CommitMigration" in outcome(*cell):
            is_dead = source in ("source ended", "source gone, node gone")
            by_proof = move == "arrived" and is_dead and target != "ended"
            assert move in ("left", "left, cancelled") or by_proof, cell


def test_the_sources_report_is_enough_for_a_commit() -> None:
    for cell in product(("left", "left, cancelled"), SOURCES, TARGETS, (False, True)):
        assert outcome(*cell) == "CommitMigration", cell


def test_the_pods_of_a_running_migration_stay() -> None:
    for cell in CELLS:
        if not cell[3]:
            assert "DeletePod" not in outcome(*cell), cell


def test_a_run_is_committed_once() -> None:
    vmi = an_instance(LEFT, activePods=THERE, nodeName="node-2", node="node-2")
    assert find_arrived_migration(vmi_world(vmi, a_running_pod(), a_target())) is None
    assert steps(decide(vmi_world(vmi, a_running_pod(), a_target()))) == "-"


@pytest.mark.parametrize(("marked", "after"), [("node-1", ""), ("node-3", "node-3"), ("", "")])
def test_what_a_commit_writes(marked: str, after: str) -> None:
    before = vmi_world(an_instance(LEFT, evacuationNodeName=marked), a_running_pod(), a_target())
    moving = find_arrived_migration(before)
    assert moving is not None
    status = commit_migration(before, moving)
    assert (status.node_name, status.active_pods, status.epoch) == ("node-2", {TARGET_UID: "node-2"}, 2)
    assert status.evacuation_node_name == after
    assert status.migration_state == moving


@pytest.mark.parametrize(
    ("memory", "after"), [({"guestAtBoot": "512Mi", "memoryOverhead": "73Mi"}, "81Mi"), (None, None)]
)
def test_a_commit_says_what_the_larger_pod_needs_beside_the_guests_memory(memory: Any, after: str | None) -> None:
    grown = {"domain": {"memory": {"guest": "512Mi"}, "cpu": {"sockets": 2}}}
    before = vmi_world(an_instance(LEFT, spec=grown, memory=memory), a_running_pod(), a_target())
    moving = find_arrived_migration(before)
    assert moving is not None
    written = commit_migration(before, moving).memory
    assert (written and written.memory_overhead, written and written.guest_at_boot) == (after, after and "512Mi")


def test_a_dead_source_ends_the_migration_with_the_commit() -> None:
    before = vmi_world(an_instance(ARRIVED), a_pod("Failed", node="node-1"), a_target())
    moving = find_arrived_migration(before)
    assert moving is not None
    state = commit_migration(before, moving).migration_state
    assert state is not None
    assert state.has_moved
    assert state.end_timestamp
