# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller state of instances that are updated, and how long it is kept."""

from __future__ import annotations

from controlplane.api.objects.resources import Key
from controlplane.virt_controller.workload_update.controller_state import ControllerState
from tests.support.clock import SimulatedClock


def test_refusals_have_a_growing_back_off_until_a_success() -> None:
    state = ControllerState(SimulatedClock())
    for seconds in (20, 40, 80):
        state.refuse("a")
        assert state.backs_off_for("a") == seconds
    assert state.of("a").refusals == 3
    state.accept("a")
    assert state.of("a").refusals == 0
    state.refuse("a")
    assert state.backs_off_for("a") == 20
    state.accept("b")
    assert state.backs_off_for("b") == 0


def test_instances_that_are_no_candidates_any_more_are_forgotten() -> None:
    state = ControllerState(SimulatedClock())
    for uid in ("a", "b"):
        state.refuse(uid)
        state.note_made(uid, Key("default", uid))
        state.note_evicted(uid, f"{uid}-pod")
        state.note_announced(uid, f"{uid}-1")
    state.keep_only({"b", "c"})
    assert (state.announced, state.backs_off_for("a"), state.of("a").made, state.of("a").evicted) == (
        {"b-1"},
        0,
        None,
        "",
    )
    assert state.backs_off_for("b") == 20
