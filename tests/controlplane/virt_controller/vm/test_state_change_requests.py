# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queued requests: which are done, which can never be carried out, and the next run that a failed one requests."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.virt_controller.vm.state_change_requests import (
    has_answered_start,
    has_stale_stop,
    needs_pod,
    needs_rerun_request,
    rerun_requests,
    why_drop,
)
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import VMI_UID, a_vm, a_vmi, vm_world
from tests.controlplane.virt_controller.vm.scenes import PAUSED, PAUSED_BEFORE, PAUSED_OF_NOW

START, STOP, STOP_ANY = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}, {"action": "Stop"}
STOP_OTHER = {"action": "Stop", "uid": "another"}
RUNNING = a_vmi("Running")
DISRUPTED = [{"type": "DisruptionTarget", "status": "True"}]
EVICTED = a_vmi("Succeeded", conditions=DISRUPTED)


def queued(*queue: dict[str, Any], strategy: str = "Manual", vmi: Any = None) -> World:
    return vm_world(a_vm(strategy, stateChangeRequests=list(queue)), vmi)


def start(**data: str) -> dict[str, Any]:
    return {"action": "Start", "data": data}


DONE: dict[str, tuple[World, bool, bool]] = {
    # world, whether a stop without a UID is done, whether a start is done
    "nothing": (queued(), False, False),
    "any stop, none": (queued(STOP_ANY), True, False),
    "any stop, alive": (queued(STOP_ANY, vmi=RUNNING), False, False),
    "stop of another, none": (queued(STOP_OTHER), False, False),
    "stop of another, any stop, alive": (queued(STOP_OTHER, STOP_ANY, vmi=RUNNING), False, False),
    "start, none": (queued(START), False, False),
    "start, alive": (queued(START, vmi=RUNNING), False, True),
    "restart, started again": (queued(STOP_OTHER, START, vmi=RUNNING), False, True),
    "restart, not stopped": (queued(STOP, START, vmi=RUNNING), False, False),
}


@pytest.mark.parametrize(("world", "is_stale", "is_answered"), DONE.values(), ids=DONE)
def test_which_requests_are_done(world: World, is_stale: bool, is_answered: bool) -> None:
    assert (has_stale_stop(world), has_answered_start(world)) == (is_stale, is_answered)


@pytest.mark.parametrize(
    ("strategy", "own", "queue", "is_needed"),
    [
        ("RerunOnFailure", a_vmi("Failed"), (), True),
        ("RerunOnFailure", a_vmi("Failed", deleting=True), (), False),
        ("RerunOnFailure", a_vmi("Succeeded"), (), False),
        ("RerunOnFailure", EVICTED, (), True),
        ("RerunOnFailure", EVICTED, (STOP,), False),
        ("RerunOnFailure", a_vmi("Running", conditions=DISRUPTED), (), False),
        ("Always", EVICTED, (), False),
        ("Manual", EVICTED, (), False),
        ("Once", EVICTED, (), False),
        ("RerunOnFailure", RUNNING, (), False),
        ("RerunOnFailure", a_vmi("Failed"), (STOP,), False),
        ("Always", a_vmi("Failed"), (), False),
        ("Manual", a_vmi("Failed"), (), False),
    ],
)
def test_only_a_failed_or_evicted_run_under_rerun_on_failure_requests_another(
    strategy: str, own: Any, queue: tuple[dict[str, Any], ...], is_needed: bool
) -> None:
    assert needs_rerun_request(queued(*queue, strategy=strategy, vmi=own), own) is is_needed


@pytest.mark.parametrize(
    ("strategy", "own", "queue", "is_pod_evicted", "is_needed"),
    [
        ("RerunOnFailure", a_vmi("Succeeded"), (), None, True),
        ("RerunOnFailure", a_vmi("Succeeded"), (), False, False),
        ("RerunOnFailure", a_vmi("Succeeded"), (), True, False),
        ("RerunOnFailure", a_vmi("Failed"), (), None, False),
        ("RerunOnFailure", EVICTED, (), None, False),
        ("RerunOnFailure", a_vmi("Succeeded"), (STOP,), None, False),
        ("Always", a_vmi("Succeeded"), (), None, False),
        ("Manual", a_vmi("Succeeded"), (), None, False),
    ],
)
def test_the_pod_is_read_only_where_it_decides_about_another_run(
    strategy: str, own: Any, queue: tuple[Any, ...], is_pod_evicted: bool | None, is_needed: bool
) -> None:
    vm = a_vm(strategy, stateChangeRequests=list(queue))
    assert needs_pod(vm_world(vm, own, is_pod_evicted=is_pod_evicted), own) is is_needed


def test_only_under_always_a_paused_start_is_requested_again() -> None:
    """Under Manual nothing follows a failed run by itself, however it began."""
    failed = a_vmi("Failed", spec={"domain": {}, "startStrategy": "Paused"})
    needed = {
        strategy: needs_rerun_request(vm_world(a_vm(strategy), failed), failed)
        for strategy in ("Always", "Manual", "Halted", "Once")
    }
    assert needed == {"Always": True, "Manual": False, "Halted": False, "Once": False}


def test_another_run_is_a_stop_of_this_one_and_a_start() -> None:
    own = a_vmi("Failed")
    stop, start = rerun_requests(queued(vmi=own), own)
    assert (stop.action, stop.uid, start.action, start.uid) == ("Stop", VMI_UID, "Start", None)
    assert start.data == {}


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (queued(), None),
        (queued(START), None),
        (queued(STOP, vmi=RUNNING), None),
        (queued(START, strategy="Halted"), "run strategy is Halted"),
        (queued(STOP, strategy="Halted", vmi=RUNNING), None),
        (queued(STOP, strategy="Once", vmi=RUNNING), "run strategy is Once"),
        (queued(START, strategy="Once"), None),
        (queued(start(paused="true")), None),
        (queued(start(paused="perhaps")), "paused=perhaps is not implemented"),
        (queued(PAUSED, strategy="Halted"), "run strategy is Halted"),
        (queued(PAUSED_BEFORE, strategy="Halted"), "run strategy is Halted"),
        (queued(PAUSED_OF_NOW, strategy="Halted"), None),
        (queued(start(generation="3"), strategy="Halted"), "run strategy is Halted"),
        (queued(start(paused="False")), None),
        (queued({"action": "Dance"}), "does not know such a request"),
    ],
)
def test_why_a_request_is_dropped(world: World, words: str | None) -> None:
    reason = why_drop(world)
    assert (reason is None) if words is None else (reason is not None and words in reason)
