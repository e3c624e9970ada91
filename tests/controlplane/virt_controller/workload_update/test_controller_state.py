# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered of instances that are updated, and for how long."""

from __future__ import annotations

from controlplane.api.objects.resources import Key
from controlplane.virt_controller.workload_update.controller_state import ControllerState
from tests.support.clock import SimulatedClock


def test_what_is_refused_is_tried_ever_later_until_it_is_taken() -> None:
    memory = ControllerState(SimulatedClock())
    for seconds in (20, 40, 80):
        memory.refuse("a")
        assert memory.backs_off_for("a") == seconds
    assert memory.of("a").refusals == 3
    memory.accept("a")
    assert memory.of("a").refusals == 0
    memory.refuse("a")
    assert memory.backs_off_for("a") == 20
    memory.accept("b")
    assert memory.backs_off_for("b") == 0


def test_nothing_is_kept_of_machines_that_are_concerned_no_more() -> None:
    memory = ControllerState(SimulatedClock())
    for uid in ("a", "b"):
        memory.refuse(uid)
        memory.note_made(uid, Key("default", uid))
        memory.note_evicted(uid, f"{uid}-pod")
        memory.note_announced(uid, f"{uid}-1")
    memory.keep_only({"b", "c"})
    assert (memory.announced, memory.backs_off_for("a"), memory.of("a").made, memory.of("a").evicted) == (
        {"b-1"},
        0,
        None,
        "",
    )
    assert memory.backs_off_for("b") == 20
