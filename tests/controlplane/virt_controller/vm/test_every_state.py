# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions on a VM and its printable status: for every strategy, state of its instance and request."""

from __future__ import annotations

from itertools import product
from typing import Any

from controlplane.api.objects.phase import RUNNING, UNKNOWN, is_final
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.world import World
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_controller.builders import VMI_UID, a_condition, a_vm, a_vmi, vm_world

NONE = "no instance"
PHASES = ("", "Pending", "Scheduling", "Scheduled", "Running", UNKNOWN, "WaitingForSync", "Succeeded", "Failed")
STATES = (
    NONE,
    *(f"{phase or 'new'}{how}" for phase, how in product(PHASES, ("", ", going"))),
    "Succeeded, shut down",
    "Succeeded, evicted",
    "Failed, never ran",
)
START, STOP, STALE = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}, {"action": "Stop", "uid": "an older one"}
PAUSED = {"action": "Start", "data": {"paused": "true"}}
REQUESTS: dict[str, list[dict[str, Any]]] = {
    "nothing asked": [],
    "Start": [START],
    "Start paused": [PAUSED],
    "Stop": [STOP],
    "Stop, Start": [STOP, START],
    "Stop of another": [STALE],
}
STRATEGIES = ("Always", "RerunOnFailure", "Manual", "Once", "Halted", "WaitAsReceiver")
CELLS = list(product(STRATEGIES, (False, True), STATES, REQUESTS))


def instance(state: str) -> VirtualMachineInstance | None:
    if state == NONE:
        return None
    phase, _unused, how = state.partition(", ")
    phase = "" if phase == "new" else phase
    ran = (phase in (RUNNING, UNKNOWN) or is_final(phase)) and how != "never ran"
    evicted = [a_condition("DisruptionTarget", "True", "EvictionByEvictionAPI")] if how == "evicted" else []
    return a_vmi(phase, ran=ran, deleting=how == "going", conditions=evicted)


def world(strategy: str, is_acted_on: bool, state: str, request: str) -> World:
    status = {"stateChangeRequests": REQUESTS[request], **({"runStrategy": strategy} if is_acted_on else {})}
    is_pod_evicted = False if state.endswith("shut down") else None
    return vm_world(a_vm(strategy, **status), instance(state), is_pod_evicted=is_pod_evicted)


def done(*cell: Any) -> str:
    return steps(decide(world(*cell)))


def shown_status(*cell: Any) -> str:
    cell_world = world(*cell)
    status = derive_status(cell_world, None) or cell_world.vm.status
    return status.printable_status


def test_the_actions_in_every_state_match_the_table() -> None:
    tables = {}
    for strategy, is_acted_on in product(STRATEGIES, (False, True)):
        title = f"{strategy}, {'acted on before' if is_acted_on else 'new'}"

        def cell(state: str, request: str, strategy: str = strategy, is_acted_on: bool = is_acted_on) -> str:
            return done(strategy, is_acted_on, state, request)

        tables[title] = render(title, STATES, list(REQUESTS), cell)
    check("vm", tables)


def test_the_printable_status_in_every_state_matches_the_table() -> None:
    def cell(state: str, strategy: str) -> str:
        return shown_status(strategy, True, state, "nothing asked")

    check("vm_printable_status", {"all": render("printableStatus, acted on before", STATES, STRATEGIES, cell)})


def test_no_instance_is_created_beside_another() -> None:
    cells = [cell for cell in CELLS if "CreateVmi" in done(*cell)]

    assert {state for _strategy, _unused, state, _request in cells} == {NONE}
    assert {strategy for strategy, *_unused in cells} == {"Always", "RerunOnFailure", "Manual", "Once"}


def test_nothing_is_deleted_without_a_cause_nor_twice() -> None:
    for cell in CELLS:
        if "DeleteVmi" not in done(*cell):
            continue
        strategy, _unused, state, request = cell
        is_over = state.startswith(("Succeeded", "Failed"))
        is_asked = "Stop" in request.split(", ") and strategy in ("Always", "RerunOnFailure", "Manual")
        assert strategy == "Halted" or is_asked or (is_over and strategy in ("Always", "RerunOnFailure")), cell
        assert "going" not in state, cell
