# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pending requests, and the ownership of an instance."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import VM_UID, VMI_UID, a_vm, a_vmi, vm_world

START, STOP, STOP_ANY, STOP_OTHER = (
    {"action": "Start"},
    {"action": "Stop", "uid": VMI_UID},
    {"action": "Stop"},
    {"action": "Stop", "uid": "another"},
)


def asked(*queue: dict[str, Any], vmi: Any = None, **facts: Any) -> World:
    return vm_world(a_vm("Manual", stateChangeRequests=list(queue)), vmi, **facts)


PENDING: dict[str, tuple[World, list[dict[str, Any]]]] = {
    "a start, nothing lives": (asked(START), [START]),
    "a start, the instance lives": (asked(START, vmi=a_vmi("Running")), []),
    "a start, its instance is going already": (asked(START, vmi=a_vmi("Running", deleting=True)), []),
    "a start, its instance's delete was sent": (asked(START, vmi=a_vmi("Running"), is_delete_sent=True), []),
    "a start, its run is over already": (asked(START, vmi=a_vmi("Succeeded")), []),
    "a start, an orphan is there": (asked(START, vmi=a_vmi("Succeeded", owner=None)), [START]),
    "a start, somebody else's instance": (asked(START, vmi=a_vmi("Running", owner="x")), [START]),
    "another start, the last run is over": (asked(STOP, START, vmi=a_vmi("Succeeded")), [STOP, START]),
    "another start, the old instance is going": (
        asked(STOP, START, vmi=a_vmi("Running", deleting=True)),
        [STOP, START],
    ),
    "another start, its run is over already": (asked(STOP_OTHER, START, vmi=a_vmi("Succeeded")), []),
    "a stop of the instance that is there": (asked(STOP, vmi=a_vmi("Running")), [STOP]),
    "a stop of whatever is there": (asked(STOP_ANY, vmi=a_vmi("Running")), [STOP_ANY]),
    "a stop of another instance": (asked(STOP_OTHER, vmi=a_vmi("Running")), []),
    "a stop, nothing is there": (asked(STOP), []),
    "a stop of an orphan that is about to be adopted": (asked(STOP, vmi=a_vmi("Running", owner=None)), [STOP]),
    "a stop, somebody else's instance": (asked(STOP, vmi=a_vmi("Running", owner="x")), []),
    "a stop of an instance that the cache may not have seen yet": (asked(STOP, is_instance_known=False), [STOP]),
    "a restart of an instance that the cache may not have seen yet": (
        asked(STOP, START, is_instance_known=False),
        [STOP, START],
    ),
    "a start, and what seems to live may have ended": (
        asked(START, vmi=a_vmi("Running"), is_instance_known=False),
        [START],
    ),
    "a restart, not stopped yet": (asked(STOP, START, vmi=a_vmi("Running")), [STOP, START]),
    "a restart, stopped": (asked(STOP, START), [START]),
    "a restart, started again": (asked(STOP_OTHER, START, vmi=a_vmi("Scheduling")), []),
}


@pytest.mark.parametrize(("world", "left"), PENDING.values(), ids=PENDING.keys())
def test_which_requests_are_pending(world: World, left: list[dict[str, Any]]) -> None:
    requests = [(request.action, request.uid) for request in world.pending_requests]
    assert requests == [(expected["action"], expected.get("uid")) for expected in left]


def test_an_instance_belongs_to_the_vm_by_its_controller_only() -> None:
    assert vm_world(a_vm(), a_vmi(owner=VM_UID)).own is not None
    assert vm_world(a_vm(), a_vmi(owner="another")).own is None
    assert vm_world(a_vm(), a_vmi(owner=None)).own is None


@pytest.mark.parametrize(
    ("world", "is_start", "is_stop"),
    [(asked(), False, False), (asked(START), True, False), (asked(STOP, START, vmi=a_vmi("Running")), False, True)],
    ids=["nothing is asked", "a start", "a restart: the stop first"],
)
def test_the_first_request_is_carried_out_first(world: World, is_start: bool, is_stop: bool) -> None:
    assert (world.wants_start, world.wants_stop) == (is_start, is_stop)


@pytest.mark.parametrize(
    ("strategy", "is_known"),
    [
        ("Always", True),
        ("Halted", True),
        ("Manual", True),
        ("Once", True),
        ("RerunOnFailure", True),
        ("OfTomorrow", False),
    ],
)
def test_an_unknown_strategy_is_recognized(strategy: str, is_known: bool) -> None:
    assert vm_world(a_vm(strategy)).is_strategy_known is is_known


@pytest.mark.parametrize(
    ("world", "is_stopping"),
    [
        (vm_world(a_vm()), False),
        (vm_world(a_vm(), a_vmi("Running")), False),
        (vm_world(a_vm(), a_vmi("Running", deleting=True)), True),
        (vm_world(a_vm(), a_vmi("Running"), is_delete_sent=True), True),
        (vm_world(a_vm(), a_vmi("Running", owner="x", deleting=True)), False),
    ],
    ids=["none", "it runs", "it is going", "its delete was sent", "somebody else's is going"],
)
def test_whether_the_instance_is_stopping(world: World, is_stopping: bool) -> None:
    assert world.is_stopping is is_stopping
