# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failed starts: which ones count, and how long the next start waits, with any clock."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.api.timestamps import format_timestamp, parse_timestamp
from controlplane.virt_controller.vm.decide import decide
from controlplane.virt_controller.vm.start_failure import delay_seconds, next_start_failure, seconds_to_wait, spread
from controlplane.virt_controller.vm.status import derive_status
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import NOW, VM_UID, VMI_UID, a_vm, a_vmi, vm_world

FUTURE = format_timestamp(NOW + 100)
START = {"action": "Start"}


def looping(retry: str | None = FUTURE) -> dict[str, Any]:
    return {"startFailure": {"consecutiveFailCount": 2, "lastFailedVMIUID": "x", "retryAfterTimestamp": retry}}


WAITS = {1: (10, 15), 2: (40, 60), 3: (90, 135), 4: (160, 240), 5: (250, 300), 6: (250, 300), 10**9: (250, 300)}


@pytest.mark.parametrize("count", WAITS)
def test_the_delay_grows_with_the_square_to_five_minutes_with_jitter(count: int) -> None:
    """The numbers are upstream's; the jitter also applies from the sixth failure on, where upstream has none."""
    shortest, longest = WAITS[count]
    assert delay_seconds(count, jitter=0.0) == shortest
    assert delay_seconds(count, jitter=0.5) == (shortest + longest) / 2
    assert delay_seconds(count, jitter=1.0) == longest
    assert shortest <= delay_seconds(count, jitter=spread(VM_UID, count)) <= longest


@pytest.mark.parametrize("count", [0, -1, -(10**9)])
def test_an_invalid_count_waits_like_the_first(count: int) -> None:
    assert delay_seconds(count, jitter=0.0) == 10


def test_machines_that_failed_together_start_apart() -> None:
    """Every replica computes the same jitter for a machine, and another one for the next machine."""
    spreads = [spread(f"vm {number}", 6) for number in range(1000)]
    assert spreads == [spread(f"vm {number}", 6) for number in range(1000)]
    tenths = [sum(name < spread_ <= name + 0.1 for spread_ in spreads) for name in (0.0, 0.2, 0.4, 0.6, 0.8)]
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
        vm = _with(vm, VirtualMachineStatus(start_failure=failure))
        assert next_start_failure(vm_world(vm, vmi)) == failure, "one run counts once"


def test_a_failed_start_is_recorded_with_its_instance() -> None:
    status = derive_status(vm_world(a_vm(), a_vmi("Failed")), None)
    assert status is not None
    assert status.start_failure is not None
    assert status.start_failure.last_failed_vmi_uid == VMI_UID


@pytest.mark.parametrize(
    "world",
    [
        vm_world(a_vm(), a_vmi("Failed", deleting=True)),
        vm_world(a_vm(), a_vmi("Failed"), is_delete_sent=True),
        vm_world(a_vm("RerunOnFailure"), a_vmi("Failed", deleting=True)),
        vm_world(a_vm("Once"), a_vmi("Failed", deleting=True)),
    ],
    ids=["deleted", "delete sent", "rerun", "once"],
)
def test_a_run_that_a_user_ended_is_no_failed_start(world: World) -> None:
    """A restart of a pending machine needs no back-off."""
    assert next_start_failure(world) is None


@pytest.mark.parametrize(
    "world",
    [
        vm_world(a_vm(**looping()), a_vmi("Running", ran=True)),
        vm_world(a_vm(**looping()), a_vmi("Failed", ran=True)),
        vm_world(a_vm("Halted", **looping())),
        vm_world(a_vm("Manual", **looping())),
        vm_world(a_vm("RerunOnFailure", **looping()), a_vmi("Succeeded")),
        vm_world(a_vm("Once", **looping()), a_vmi("Succeeded")),
        vm_world(a_vm("RerunOnFailure", runStrategy="RerunOnFailure", **looping())),
    ],
    ids=[
        "it runs",
        "it ran",
        "it is halted",
        "a human decides",
        "no rerun after success",
        "once, and well",
        "it was stopped",
    ],
)
def test_failed_starts_are_forgotten_in_these_states(world: World) -> None:
    assert next_start_failure(world) is None


def test_a_run_that_succeeded_before_it_was_observed_running_counts_where_another_follows() -> None:
    """A guest that powers off at once would be restarted without a pause."""
    failure = next_start_failure(vm_world(a_vm("Always"), a_vmi("Succeeded")))
    assert failure is not None
    assert failure.consecutive_fail_count == 1


@pytest.mark.parametrize(
    "world",
    [
        vm_world(a_vm("RerunOnFailure", runStrategy="RerunOnFailure", stateChangeRequests=[START], **looping())),
        vm_world(a_vm("RerunOnFailure", runStrategy="Always", **looping())),
        vm_world(a_vm("RerunOnFailure", runStrategy="RerunOnFailure", **looping()), a_vmi("Scheduling")),
        dataclasses.replace(
            vm_world(a_vm("RerunOnFailure", runStrategy="RerunOnFailure", **looping())), is_instance_known=False
        ),
    ],
    ids=["the next is asked for", "the strategy is new", "the next is on its way", "it may only not be seen"],
)
def test_failed_starts_are_kept_while_another_start_follows(world: World) -> None:
    assert next_start_failure(world) == world.vm.status.start_failure
    assert next_start_failure(world) is not None


@pytest.mark.parametrize(
    "stamp",
    [
        format_timestamp(NOW + 3600),
        format_timestamp(NOW + 301),
        "9999-12-31T23:59:59Z",
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
    later = dataclasses.replace(world, vm=_with(world.vm, status), now=NOW + requeue_after)
    assert decide(later).steps


@pytest.mark.parametrize("now", [NOW - 10**6, NOW - 3600, NOW, NOW + 3600, NOW + 10**6], ids=str)
@pytest.mark.parametrize("count", [1, 2, 6, 50])
def test_no_clock_step_delays_a_start_by_more_than_five_minutes(now: float, count: int) -> None:
    """In total, not only until the next pass: the clock continues from where it stepped to."""
    failure = {"consecutiveFailCount": count, "lastFailedVMIUID": "x", "retryAfterTimestamp": FUTURE}
    world, waited = vm_world(a_vm(startFailure=failure), now=now), 0.0
    while not (plan := decide(world)).steps:
        assert plan.requeue_after is not None
        waited += plan.requeue_after
        vm = _with(world.vm, derive_status(world, None) or world.vm.status)
        world = dataclasses.replace(world, vm=vm, now=world.now + plan.requeue_after)
        assert waited <= 300


@pytest.mark.parametrize("left", [1, 249, 251, 299, 300], ids=str)
def test_a_plausible_retry_time_is_kept(left: int) -> None:
    """Otherwise each pass, and each write causes one, would postpone the start forever."""
    world = vm_world(a_vm(**looping(format_timestamp(NOW + left))))
    assert next_start_failure(world) == world.vm.status.start_failure
    assert seconds_to_wait(world) == left


@pytest.mark.parametrize("ago", [1, 299, 301, 10**6], ids=str)
def test_a_past_retry_time_does_not_delay(ago: int) -> None:
    """However old it is: the controller may have been down."""
    world = vm_world(a_vm(**looping(format_timestamp(NOW - ago))))
    assert seconds_to_wait(world) < 0
    assert [type(step).__name__ for step in decide(world).steps] == ["CreateVmi"]


def test_the_last_half_second_is_waited_for() -> None:
    plan = decide(dataclasses.replace(vm_world(a_vm(**looping(format_timestamp(NOW)))), now=NOW - 0.5))
    assert (plan.steps, plan.requeue_after) == ((), 0.5)


def test_a_failure_without_a_time_does_not_wait() -> None:
    assert seconds_to_wait(vm_world(a_vm(**looping(None)))) == 0


def _with(vm: VirtualMachine, status: VirtualMachineStatus) -> VirtualMachine:
    return msgspec.structs.replace(vm, status=status)
