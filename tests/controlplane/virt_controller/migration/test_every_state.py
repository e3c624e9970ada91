# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions and next phase of a migration, for every phase and every state of its instance and its Pods."""

from __future__ import annotations

from itertools import product

import pytest
from kubevirt_api.names import MIGRATION_TARGET_NODE
from msgspec.structs import replace

from controlplane.api.objects.migration import FAILED, FINAL, SUCCEEDED
from controlplane.virt_controller.migration.decide import RULES, decide
from controlplane.virt_controller.migration.status import NEXT, derive_status, next_phase
from controlplane.virt_controller.migration.world import FINISHED_KEPT, DeleteMigration
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_controller.builders import STAMP, a_running_pod
from tests.controlplane.virt_controller.migration.worlds import (
    ARRIVED,
    BEGUN,
    LEFT,
    OTHERS,
    ROWS,
    STATES,
    TARGET_POD,
    TARGET_UID,
    a_migration,
    a_state,
    a_target,
    a_world,
    an_instance,
)

CELLS = list(product(ROWS, STATES, (False, True)))


def outcome(phase: str, state: str, is_cancelled: bool) -> tuple[str, str]:
    world = a_state(phase, state, is_cancelled=is_cancelled)
    status = derive_status(world, None)
    return steps(decide(world)), phase if status is None else status.phase


def test_the_actions_in_every_state_match_the_table() -> None:
    tables = {}
    for title, is_cancelled in (("wanted", False), ("being deleted", True)):

        def one(state: str, phase: str, is_cancelled: bool = is_cancelled) -> str:
            before = "" if phase == "new" else phase
            does, after = outcome(before, state, is_cancelled)
            return does if after == before else f"{does} > {after}"

        columns = [phase or "new" for phase in ROWS]
        tables[title] = render(f"{title}; > the phase that is written", list(STATES), columns, one)
    check("migration", tables)


def test_every_phase_has_rules_and_rows() -> None:
    assert set(RULES) == set(NEXT) == set(ROWS) - {"WaitingForSync"}


def test_a_final_phase_is_kept() -> None:
    for cell in CELLS:
        if cell[0] in FINAL:
            assert outcome(*cell)[1] == cell[0], cell


def test_only_the_commit_makes_a_migration_succeed() -> None:
    for phase, state, is_cancelled in CELLS:
        if outcome(phase, state, is_cancelled)[1] == SUCCEEDED and phase != SUCCEEDED:
            assert state.startswith("given"), (phase, state)


def test_a_target_that_may_run_the_guest_is_never_deleted() -> None:
    kept = {"handed over", "door open", "begun", "arrived", "left", "given", "given, source going"}
    for phase, state, is_cancelled in CELLS:
        if "DeleteTarget" in outcome(phase, state, is_cancelled)[0]:
            assert phase == FAILED, (phase, state)
            assert state not in kept, (phase, state)


def test_the_source_is_deleted_only_after_the_hand_over() -> None:
    for phase, state, is_cancelled in CELLS:
        if "DeleteSource" in outcome(phase, state, is_cancelled)[0]:
            assert (phase, state) == (SUCCEEDED, "given")


def test_a_running_migration_ends_by_proof_only() -> None:
    for phase, state, is_cancelled in CELLS:
        if "FailMigration" in outcome(phase, state, is_cancelled)[0]:
            assert state not in ("begun", "begun, no Pod", "arrived", "left", "failed"), (phase, state)
            assert not state.startswith("given")


def test_no_migration_fails_for_an_unconfirmed_reason() -> None:
    doubtful = ("no Pod", "another", "VMI over", "no VMI")
    for phase, state, _unused in CELLS:
        if state in doubtful and phase not in FINAL:
            assert outcome(phase, state, False)[1] != FAILED, (phase, state)


def test_a_target_is_created_only_for_a_pending_migration_at_its_turn() -> None:
    created = {
        (phase, state) for phase, state, gone in CELLS if "CreateTarget" in outcome(phase, state, gone)[0] and gone
    }
    assert created == set()
    created = {(phase, state) for phase, state, gone in CELLS if "CreateTarget" in outcome(phase, state, gone)[0]}
    assert {phase for phase, _unused in created} == {"Pending"}
    assert "not its turn" not in {state for _unused, state in created}


@pytest.mark.parametrize("state", [BEGUN, ARRIVED])
def test_a_failed_target_is_recorded_once(state: dict[str, str]) -> None:
    failed = an_instance({**state, "failed": True, "completed": True})
    world = a_world(a_migration("Running"), failed, target=a_target("Failed"))
    assert steps(decide(world)) == "WriteStatus"
    assert next_phase(world).phase == FAILED


def test_the_pod_of_the_guest_is_kept_whatever_the_migrations_phase() -> None:
    vmi = an_instance(activePods={TARGET_UID: "node-2"})
    world = a_world(a_migration("Failed"), vmi, target=a_target())
    assert steps(decide(world)) == "RemoveFinalizer"


def test_a_source_pod_that_is_active_again_is_kept() -> None:
    vmi, source = an_instance(LEFT), a_running_pod()
    world = a_world(a_migration("Succeeded"), vmi, target=a_target(), source=source)
    assert source.uid in vmi.status.active_pods
    assert steps(decide(world)) == "RemoveFinalizer"


def test_an_old_migration_that_is_being_deleted_is_not_deleted_again() -> None:
    old = [
        a_migration("Failed", uid=f"old-{number}", name=f"old-{number}", created=f"2025-01-0{number}T00:00:00Z")
        for number in range(1, FINISHED_KEPT + 2)
    ]
    old[0] = replace(old[0], metadata=replace(old[0].metadata, deletion_timestamp=STAMP))
    world = a_world(a_migration("Failed", finalizers=()), an_instance(), others=tuple(old))
    assert [step.name for step in decide(world).steps if isinstance(step, DeleteMigration)] == ["old-2"]


def test_a_migration_that_succeeded_is_not_reported_as_cancelled_when_it_is_deleted() -> None:
    vmi = an_instance(LEFT, activePods={TARGET_UID: "node-2"}, nodeName="node-2")
    assert derive_status(a_world(a_migration("Succeeded", deleting=True, migrationState=LEFT), vmi), None) is None


def test_the_label_of_another_migrations_hand_over_is_kept() -> None:
    instance = an_instance(OTHERS)
    meta = instance.metadata
    labelled = replace(instance, metadata=replace(meta, labels={**meta.labels, MIGRATION_TARGET_NODE: "node-3"}))
    gone = frozenset({TARGET_POD})
    assert steps(decide(a_world(a_migration("Failed"), labelled, absent=gone))) == "RemoveFinalizer"
