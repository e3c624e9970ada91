# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pending requests, and the ownership of an instance."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.run_strategies import BUILT

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import VM_UID, VMI_UID, a_condition, a_vm, a_vmi, vm_world

START, STOP, STOP_ANY, STOP_OTHER = (
    {"action": "Start"},
    {"action": "Stop", "uid": VMI_UID},
    {"action": "Stop"},
    {"action": "Stop", "uid": "another"},
)


def queued(*queue: dict[str, Any], vmi: Any = None, **facts: Any) -> World:
    return vm_world(a_vm("Manual", stateChangeRequests=list(queue)), vmi, **facts)


RUNNING, GOING = a_vmi("Running"), a_vmi("Running", deleting=True)
SUCCEEDED, ORPHAN, FOREIGN = a_vmi("Succeeded"), a_vmi("Running", owner=None), a_vmi("Running", owner="x")
MAYBE_UNSEEN = {"is_instance_known": False}
PENDING: dict[str, tuple[list[Any], VirtualMachineInstance | None, dict[str, Any], list[Any]]] = {
    # queue, instance, facts, requests that are left
    "start, none": ([START], None, {}, [START]),
    "start, alive": ([START], RUNNING, {}, []),
    "start, going": ([START], GOING, {}, []),
    "start, delete sent": ([START], RUNNING, {"is_delete_sent": True}, []),
    "start, final": ([START], SUCCEEDED, {}, []),
    "start, orphan": ([START], a_vmi("Succeeded", owner=None), {}, [START]),
    "start, foreign": ([START], FOREIGN, {}, [START]),
    "start, may have ended unseen": ([START], RUNNING, MAYBE_UNSEEN, [START]),
    "stop": ([STOP], RUNNING, {}, [STOP]),
    "stop of any": ([STOP_ANY], RUNNING, {}, [STOP_ANY]),
    "stop of another": ([STOP_OTHER], RUNNING, {}, []),
    "stop, none": ([STOP], None, {}, []),
    "stop, orphan that will be adopted": ([STOP], ORPHAN, {}, [STOP]),
    "stop, foreign": ([STOP], FOREIGN, {}, []),
    "stop, may be unseen": ([STOP], None, MAYBE_UNSEEN, [STOP]),
    "restart, may be unseen": ([STOP, START], None, MAYBE_UNSEEN, [STOP, START]),
    "restart, alive": ([STOP, START], RUNNING, {}, [STOP, START]),
    "restart, going": ([STOP, START], GOING, {}, [STOP, START]),
    "restart, final": ([STOP, START], SUCCEEDED, {}, [STOP, START]),
    "restart, stopped": ([STOP, START], None, {}, [START]),
    "restart, started again": ([STOP_OTHER, START], a_vmi("Scheduling"), {}, []),
    "restart, started again and over": ([STOP_OTHER, START], SUCCEEDED, {}, []),
}


@pytest.mark.parametrize(("queue", "vmi", "facts", "left"), PENDING.values(), ids=PENDING.keys())
def test_which_requests_are_pending(
    queue: list[Any], vmi: VirtualMachineInstance | None, facts: dict[str, Any], left: list[Any]
) -> None:
    requests = [(request.action, request.uid) for request in queued(*queue, vmi=vmi, **facts).pending_requests]
    assert requests == [(expected["action"], expected.get("uid")) for expected in left]


@pytest.mark.parametrize(
    ("world", "is_in_doubt"),
    [
        (queued(vmi=RUNNING, **MAYBE_UNSEEN), False),
        (queued(START, **MAYBE_UNSEEN), False),
        (queued(START, vmi=RUNNING, **MAYBE_UNSEEN), True),
        (queued(STOP, **MAYBE_UNSEEN), True),
        (queued(STOP), False),
    ],
    ids=["no request", "not done", "a start that looks done", "a stop that looks done", "done"],
)
def test_only_a_request_that_looks_done_is_in_doubt(world: World, is_in_doubt: bool) -> None:
    assert world.is_in_doubt is is_in_doubt


def test_an_instance_belongs_to_the_vm_by_its_controller_only() -> None:
    assert vm_world(a_vm(), a_vmi(owner=VM_UID)).own is not None
    assert vm_world(a_vm(), a_vmi(owner="another")).own is None
    assert vm_world(a_vm(), a_vmi(owner=None)).own is None


@pytest.mark.parametrize(
    ("world", "is_start", "is_stop"),
    [(queued(), False, False), (queued(START), True, False), (queued(STOP, START, vmi=a_vmi("Running")), False, True)],
    ids=["no request", "a start", "a restart: the stop first"],
)
def test_the_first_request_is_carried_out_first(world: World, is_start: bool, is_stop: bool) -> None:
    assert (world.wants_start, world.wants_stop) == (is_start, is_stop)


@pytest.mark.parametrize("strategy", [*BUILT, "OfTomorrow"])
def test_an_unknown_strategy_is_recognized(strategy: str) -> None:
    assert vm_world(a_vm(strategy)).is_strategy_known is (strategy != "OfTomorrow")


@pytest.mark.parametrize(
    ("world", "is_stopping"),
    [
        (vm_world(a_vm()), False),
        (vm_world(a_vm(), a_vmi("Running")), False),
        (vm_world(a_vm(), a_vmi("Running", deleting=True)), True),
        (vm_world(a_vm(), a_vmi("Running"), is_delete_sent=True), True),
        (vm_world(a_vm(), a_vmi("Running", owner="x", deleting=True)), False),
    ],
    ids=["none", "it runs", "it is going", "its delete was sent", "a foreign one is going"],
)
def test_whether_the_instance_is_stopping(world: World, is_stopping: bool) -> None:
    assert world.is_stopping is is_stopping


DISRUPTED = [a_condition("DisruptionTarget", "True", "EvictionByEvictionAPI")]
SPARED = [a_condition("DisruptionTarget", "False")]


@pytest.mark.parametrize(
    ("vmi", "is_pod_evicted", "was_evicted"),
    [
        (SUCCEEDED, None, False),
        (SUCCEEDED, False, False),
        (SUCCEEDED, True, True),
        (a_vmi("Succeeded", conditions=DISRUPTED), None, True),
        (a_vmi("Succeeded", conditions=DISRUPTED), False, True),
        (a_vmi("Succeeded", conditions=SPARED), None, False),
        (a_vmi("Succeeded", owner="x", conditions=DISRUPTED), True, False),
        (None, True, False),
    ],
    ids=[
        "its Pod was not read",
        "its Pod ended",
        "its Pod was evicted",
        "it says so",
        "it says so, its Pod does not",
        "it denies it",
        "a foreign one",
        "none",
    ],
)
def test_an_instance_was_evicted_if_it_or_its_pod_says_so(
    vmi: VirtualMachineInstance | None, is_pod_evicted: bool | None, was_evicted: bool
) -> None:
    assert vm_world(a_vm(), vmi, is_pod_evicted=is_pod_evicted).was_evicted is was_evicted
