# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions on a VMI and its next phase: for every phase, state of its Pod and of its node."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from controlplane.api.objects.phase import AFTER_HAND_OVER, OWNERS, UNKNOWN, is_final
from controlplane.api.objects.pod import Pod
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.status import derive_status
from controlplane.virt_controller.vmi.world import World
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_controller.builders import POD_UID, a_pod, a_running_pod, a_vmi, vmi_world

ROWS = (*OWNERS, "WaitingForSync")
HERE = NodeState("node-1")
ABSENT: dict[str, Any] = {"is_absence_confirmed": True, "was_begun": True}
STATES: dict[str, tuple[tuple[Pod, ...], dict[str, Any]]] = {
    "Pod unseen": ((), {}),
    "Pod waits": ((a_pod(),), {}),
    "Pod placed": ((a_pod(node="node-1"),), {}),
    "launcher up": ((a_running_pod(),), {}),
    "launcher going": ((a_running_pod(deleting=True),), {}),
    "Pod done": ((a_pod("Succeeded", node="node-1"),), {}),
    "Pod failed": ((a_pod("Failed", node="node-1"),), {}),
    "no Pod, node here": ((), {**ABSENT, "node": HERE}),
    "no Pod, node gone": ((), {**ABSENT, "node": replace(HERE, is_unseen=True, is_gone=True)}),
    "no Pod, node off": ((), {**ABSENT, "node": replace(HERE, looks_out_of_service=True, is_out_of_service=True)}),
}
CELLS = list(product(ROWS, STATES, (False, True)))


def world(phase: str, state: str, is_deleting: bool) -> World:
    pods, facts = STATES[state]
    status: dict[str, Any] = {} if phase in ("", "Pending") else {"attempt": 1}
    if phase in AFTER_HAND_OVER or is_final(phase) or phase == "WaitingForSync":
        status |= {"epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
    vmi = a_vmi(phase, deleting=is_deleting, node="node-1", ran=phase in ("Running", UNKNOWN), **status)
    return vmi_world(vmi, *pods, **facts)


def outcome(phase: str, state: str, is_deleting: bool) -> tuple[str, str]:
    before = world(phase, state, is_deleting)
    status = derive_status(before, None)
    return steps(decide(before)), phase if status is None else status.phase


def cell(phase: str, state: str, is_deleting: bool) -> str:
    does, after = outcome(phase, state, is_deleting)
    return does if after == phase else f"{does} > {after}"


def test_the_actions_in_every_state_match_the_table() -> None:
    tables = {}
    for title, gone in (("there", False), ("being deleted", True)):

        def one(state: str, phase: str, gone: bool = gone) -> str:
            return cell("" if phase == "new" else phase, state, gone)

        columns = [phase or "new" for phase in ROWS]
        tables[title] = render(f"{title}; > the phase that is written", list(STATES), columns, one)
    check("vmi", tables)


def test_no_guest_is_taken_for_dead_without_proof() -> None:
    for phase, state, is_deleting in CELLS:
        _unused, after = outcome(phase, state, is_deleting)
        if phase in AFTER_HAND_OVER and is_final(after):
            assert state in ("Pod done", "Pod failed", "no Pod, node gone", "no Pod, node off"), (phase, state)


def test_the_start_is_granted_once_and_to_a_launcher_that_is_ready() -> None:
    granted = [cell for cell in CELLS if "GrantStart" in outcome(*cell)[0]]
    assert set(granted) == {(phase, "launcher up", False) for phase in ("Scheduling",)}


def test_a_pod_is_created_only_where_none_existed_and_nothing_was_granted() -> None:
    for phase, state, is_deleting in CELLS:
        if "CreatePod" in outcome(phase, state, is_deleting)[0]:
            assert (phase, state, is_deleting) == ("Scheduling", "Pod unseen", False)
