# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions and phase changes of a VMI on its node: each phase with each state of its launcher."""

from __future__ import annotations

from itertools import product

from controlplane.api.objects.phase import AFTER_HAND_OVER, OWNERS, is_allowed_transition, is_final
from controlplane.domain.state import Life, State
from controlplane.virt_handler.vmi.decide import decide
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus, World
from tests.controlplane.decision_table import check, render, steps
from tests.controlplane.virt_handler.builders import OFF, RUNNING, a_launcher, a_look, a_pod, a_vmi, a_world, seen

ROWS = (*OWNERS, "WaitingForSync")
IOERROR, PAUSED = State(Life.PAUSED, "ioerror"), State(Life.PAUSED, "user")
CRASHED, NEVER = State(Life.SHUT_OFF, "crashed"), State(Life.SHUT_OFF, "unknown")
STATES: dict[str, tuple[Launcher, ...]] = {
    "no launcher": (),
    "not dialled": (a_launcher(LauncherStatus(is_here=True)),),
    "no contact": (a_launcher(),),
    "no domain": (a_launcher(seen(None)),),
    "no domain, no network": (a_launcher(seen(None, is_network_ready=False)),),
    "defined": (a_launcher(seen(NEVER)),),
    "runs": (a_launcher(seen(RUNNING)),),
    "paused": (a_launcher(seen(PAUSED)),),
    "paused by an error": (a_launcher(seen(IOERROR)),),
    "runs, Pod removed": (a_launcher(seen(RUNNING), gone=True),),
    "has shut down": (a_launcher(seen(OFF)),),
    "has crashed": (a_launcher(seen(CRASHED)),),
    "Pod failed": (a_launcher(pod=a_pod(phase="Failed")),),
}
LOOKS = {
    "removed, not looked": None,
    "removed, traces left": a_look(directory=True, processes=2, at=999.5),
    "removed, nothing left": a_look(at=999.5),
}
CELLS = list(product(ROWS, (*STATES, *LOOKS), (False, True)))


def world(phase: str, state: str, is_deleting: bool) -> World:
    facts = {"deleting_since": 999.0} if is_deleting else {}
    return a_world(a_vmi(phase, deleting=is_deleting), *STATES.get(state, ()), look=LOOKS.get(state), **facts)


def outcome(phase: str, state: str, is_deleting: bool) -> tuple[str, str]:
    observed_world = world(phase, state, is_deleting)
    status = derive_status(observed_world, None)
    return steps(decide(observed_world)), phase if status is None else status.phase


def cell(phase: str, state: str, is_deleting: bool) -> str:
    does, after = outcome(phase, state, is_deleting)
    return does if after == phase else f"{does} > {after}"


def test_actions_and_phases_of_every_state() -> None:
    tables = {}
    for title, gone in (("there", False), ("being deleted", True)):

        def one(state: str, phase: str, gone: bool = gone) -> str:
            return cell("" if phase == "new" else phase, state, gone)

        columns = [phase or "new" for phase in ROWS]
        tables[title] = render(f"{title}; > the phase that is written", [*STATES, *LOOKS], columns, one)
    check("vmi_on_its_node", tables)


def test_a_domain_starts_only_if_it_never_ran_and_the_run_is_granted() -> None:
    started = {state_case for state_case in CELLS if "StartDomain" in outcome(*state_case)[0]}
    assert started == {("Scheduled", "no domain", False), ("Scheduled", "defined", False)}


def test_a_guest_is_ended_only_for_a_cause_in_an_object() -> None:
    for phase, state, is_deleting in CELLS:
        does, _unused = outcome(phase, state, is_deleting)
        if any(word in does for word in ("ShutDown", "Destroy")):
            assert is_deleting or is_final(phase) or state == "runs, Pod removed", (phase, state)


def test_an_unknown_state_ends_no_run() -> None:
    ends = {"has shut down", "has crashed", "Pod failed", "removed, nothing left"}
    for phase, state, is_deleting in CELLS:
        _unused, after = outcome(phase, state, is_deleting)
        if phase in AFTER_HAND_OVER and is_final(after):
            assert state in ends, (phase, state, is_deleting)


def test_every_phase_change_is_allowed_and_final_phases_stay() -> None:
    for state_case in CELLS:
        phase, (_unused, after) = state_case[0], outcome(*state_case)
        assert after == phase or is_allowed_transition(phase, after), state_case
        assert not is_final(phase) or after == phase, state_case
