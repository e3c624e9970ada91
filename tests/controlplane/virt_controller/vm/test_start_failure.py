# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failed starts: which ones count, and how long the next start waits, with any clock."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.api.timestamps import format_timestamp, parse_timestamp
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.start_failure import delay_seconds, next_start_failure, seconds_to_wait, spread
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import NOW, VM_UID, a_vm, a_vmi, vm_world

START = {"action": "Start"}
RERUN = "RerunOnFailure"
ACTED_ON = {"runStrategy": RERUN}


def looping(retry: str | None = format_timestamp(NOW + 100), count: int = 2) -> dict[str, Any]:
    return {"startFailure": {"consecutiveFailCount": count, "lastFailedVMIUID": "x", "retryAfterTimestamp": retry}}


def with_status(vm: VirtualMachine, status: VirtualMachineStatus) -> VirtualMachine:
    return msgspec.structs.replace(vm, status=status)


WAITS = {
    -1: (10, 15),
    0: (10, 15),
    1: (10, 15),
    2: (40, 60),
    3: (90, 135),
    4: (160, 240),
    5: (250, 300),
    10**9: (250, 300),
}


@pytest.mark.parametrize("count", WAITS)
def test_the_delay_grows_with_the_square_to_five_minutes_with_jitter(count: int) -> None:
    """The numbers are upstream's; the jitter also applies from the sixth failure on, where upstream has none."""
    shortest, longest = WAITS[count]
    assert [delay_seconds(count, jitter=part) for part in (0.0, 0.5, 1.0)] == [
        shortest,
        (shortest + longest) / 2,
        longest,
    ]
    assert shortest <= delay_seconds(count, jitter=spread(VM_UID, count)) <= longest


def test_machines_that_failed_together_start_apart() -> None:
    """Every replica computes the same jitter for a machine, and another one for the next machine."""
    spreads = [spread(f"vm {number}", 6) for number in range(1000)]
    assert spreads == [spread(f"vm {number}", 6) for number in range(1000)]
    tenths = [sum(start < jitter <= start + 0.1 for jitter in spreads) for start in (0.0, 0.2, 0.4, 0.6, 0.8)]
    assert min(tenths) > 50
    assert spread("vm", 1) != spread("vm", 2)


def test_failures_are_counted_once_per_run() -> None:
    vm = a_vm()
    for number in range(1, 4):
        vmi = a_vmi("Failed")
        vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, uid=f"run {number}"))
        failure = next_start_failure(vm_world(vm, vmi))
        assert failure is not None
        assert (failure.consecutive_fail_count, failure.last_failed_vmi_uid) == (number, f"run {number}")
        vm = with_status(vm, VirtualMachineStatus(start_failure=failure))
        assert next_start_failure(vm_world(vm, vmi)) == failure, "one run counts once"


LOOPING_RERUN = a_vm(RERUN, **ACTED_ON, **looping())
COUNTS: dict[str, tuple[World, int | None]] = {
    # a run that a user ended is no failed start: a restart of a pending machine needs no back-off
    "deleted": (vm_world(a_vm(), a_vmi("Failed", deleting=True)), None),
    "delete sent": (vm_world(a_vm(), a_vmi("Failed"), is_delete_sent=True), None),
    "rerun, deleted": (vm_world(a_vm(RERUN), a_vmi("Failed", deleting=True)), None),
    "once, deleted": (vm_world(a_vm("Once"), a_vmi("Failed", deleting=True)), None),
    # failed starts are forgotten
    "it runs": (vm_world(a_vm(**looping()), a_vmi("Running", ran=True)), None),
    "it ran": (vm_world(a_vm(**looping()), a_vmi("Failed", ran=True)), None),
    "it is halted": (vm_world(a_vm("Halted", **looping())), None),
    "a user decides": (vm_world(a_vm("Manual", **looping())), None),
    "no rerun after success": (vm_world(a_vm(RERUN, **looping()), a_vmi("Succeeded")), None),
    "once, succeeded": (vm_world(a_vm("Once", **looping()), a_vmi("Succeeded")), None),
    "rerun, stopped": (vm_world(LOOPING_RERUN), None),
    # a guest that powers off at once would be restarted without a pause
    "always, succeeded before it was observed running": (vm_world(a_vm(), a_vmi("Succeeded")), 1),
    # another start follows
    "rerun, requested": (vm_world(a_vm(RERUN, stateChangeRequests=[START], **ACTED_ON, **looping())), 2),
    "rerun, the strategy is new": (vm_world(a_vm(RERUN, runStrategy="Always", **looping())), 2),
    "rerun, starting": (vm_world(LOOPING_RERUN, a_vmi("Scheduling")), 2),
    "rerun, the instance may be unseen": (vm_world(LOOPING_RERUN, is_instance_known=False), 2),
}


@pytest.mark.parametrize(("world", "count"), COUNTS.values(), ids=COUNTS)
def test_which_failed_starts_count(world: World, count: int | None) -> None:
    failure = next_start_failure(world)
    assert (None if failure is None else failure.consecutive_fail_count) == count


@pytest.mark.parametrize(
    "stamp",
    [
        format_timestamp(NOW + 3600),
        format_timestamp(NOW + 301),
        "9999-12-31T23:59:59-23:59",
        "soon",
        "",
        "2026-13-45T00:00:00Z",
    ],
)
def test_an_implausible_retry_time_is_replaced(stamp: str) -> None:
    """Another leader's clock was an hour ahead: the delay restarts once, and ends."""
    world = vm_world(a_vm(**looping(stamp)))
    requeue_after = decide(world).requeue_after
    assert requeue_after is not None
    assert 0 < requeue_after <= 60
    status = derive_status(world, None)
    assert status is not None
    assert status.start_failure is not None
    assert parse_timestamp(status.start_failure.retry_after_timestamp or "") <= NOW + 60
    later = dataclasses.replace(world, vm=with_status(world.vm, status), now=NOW + requeue_after)
    assert decide(later).steps


@settings(max_examples=40, deadline=None)
@given(now=st.floats(NOW - 10**6, NOW + 10**6), count=st.sampled_from([1, 2, 6, 50]))
def test_no_clock_step_delays_a_start_by_more_than_five_minutes(now: float, count: int) -> None:
    """In total, not only until the next pass: the clock continues from where it stepped to."""
    world, waited = vm_world(a_vm(**looping(count=count)), now=now), 0.0
    while not (plan := decide(world)).steps:
        assert plan.requeue_after is not None
        waited += plan.requeue_after
        vm = with_status(world.vm, derive_status(world, None) or world.vm.status)
        world = dataclasses.replace(world, vm=vm, now=world.now + plan.requeue_after)
        assert waited <= 301


@pytest.mark.parametrize("left", [1, 249, 251, 299, 300, -1, -299, -301, -(10**6)], ids=str)
def test_a_plausible_retry_time_is_kept(left: int) -> None:
    """Otherwise each pass, and each write causes one, would postpone the start forever. It may be long past."""
    world = vm_world(a_vm(**looping(format_timestamp(NOW + left))))
    assert next_start_failure(world) == world.vm.status.start_failure
    assert seconds_to_wait(world) == left
    assert [type(step).__name__ for step in decide(world).steps] == (["CreateVmi"] if left < 0 else [])


def test_the_last_half_second_is_waited_for() -> None:
    plan = decide(vm_world(a_vm(**looping(format_timestamp(NOW))), now=NOW - 0.5))
    assert (plan.steps, plan.requeue_after) == ((), 0.5)


def test_a_failure_without_a_time_does_not_wait() -> None:
    assert seconds_to_wait(vm_world(a_vm(**looping(None)))) == 0
