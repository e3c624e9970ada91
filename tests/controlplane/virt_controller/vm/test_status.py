# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a VM is, as tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects import conditions
from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.engine.errors import Forbidden
from controlplane.engine.plan import Problem
from controlplane.virt_controller.vm.status import derive_status, next_start_failure, printable_status
from controlplane.virt_controller.vm.world import CreateVmi, DeleteVmi, World
from tests.controlplane.virt_controller.builders import NOW, VMI_UID, a_condition, a_vm, a_vmi, vm_world

READY = a_condition("Ready", "True")
UNPLACED = a_condition("PodScheduled", "False", "Unschedulable", "no node")
NO_IMAGE = a_condition("Synchronized", "False", "ErrImagePull", "no such image")
IMAGE_BACK_OFF = a_condition("Synchronized", "False", "ImagePullBackOff", "no such image")
NOT_YET_READY = a_condition("Ready", "False", "GuestNotRunning")
LOOPING = {
    "startFailure": {"consecutiveFailCount": 2, "lastFailedVMIUID": "x", "retryAfterTimestamp": "2026-01-01T00:05:00Z"}
}


def running(*listed: dict[str, Any], **options: Any) -> Any:
    return a_vmi("Running", ran=True, conditions=listed, **options)


WORDS: dict[str, tuple[World, str]] = {
    "deleted": (vm_world(a_vm(deleting=True), running(READY)), "Terminating"),
    "instance going": (vm_world(a_vm(), running(READY, deleting=True)), "Stopping"),
    "delete sent": (vm_world(a_vm("Halted"), running(READY), is_delete_sent=True), "Stopping"),
    "paused": (vm_world(a_vm(), running(READY, a_condition("Paused", "True"))), "Paused"),
    "running": (vm_world(a_vm(), running(READY)), "Running"),
    "running, its Pod not ready": (vm_world(a_vm(), running(a_condition("Ready", "False", "X"))), "Running"),
    "running, readiness not said yet": (vm_world(a_vm(), running(NOT_YET_READY)), "Starting"),
    "no node fits": (vm_world(a_vm(), a_vmi("Scheduling", conditions=[UNPLACED])), "ErrorUnschedulable"),
    "no image": (vm_world(a_vm(), a_vmi("Scheduling", conditions=[NO_IMAGE])), "ErrImagePull"),
    "no image for long": (vm_world(a_vm(), a_vmi("Scheduling", conditions=[IMAGE_BACK_OFF])), "ImagePullBackOff"),
    "fresh": (vm_world(a_vm(), a_vmi()), "Starting"),
    "pending": (vm_world(a_vm(), a_vmi("Pending")), "Starting"),
    "scheduling": (vm_world(a_vm(), a_vmi("Scheduling")), "Starting"),
    "scheduled": (vm_world(a_vm(), a_vmi("Scheduled")), "Starting"),
    "an unknown phase": (vm_world(a_vm(), a_vmi("Unknown")), "Unknown"),
    "failing starts": (vm_world(a_vm(**LOOPING)), "CrashLoopBackOff"),
    "failing starts, the last still there": (vm_world(a_vm(**LOOPING), a_vmi("Failed")), "CrashLoopBackOff"),
    "starting again after failures": (vm_world(a_vm(**LOOPING), a_vmi("Scheduling")), "Starting"),
    "succeeded": (vm_world(a_vm("Manual"), a_vmi("Succeeded", ran=True)), "Stopped"),
    "none": (vm_world(a_vm("Halted")), "Stopped"),
    "somebody else's": (vm_world(a_vm(), running(READY, owner="somebody")), "Stopped"),
}


@pytest.mark.parametrize(("world", "word"), WORDS.values(), ids=WORDS.keys())
def test_the_word_for_people(world: World, word: str) -> None:
    assert printable_status(world, next_start_failure(world)) == word


def settled(world: World) -> VirtualMachineStatus:
    """The status that is written, and that a second look has nothing to add to."""
    status = derive_status(world, None)
    assert status is not None
    again = msgspec.structs.replace(world.vm, status=status)
    assert derive_status(World(vm=again, vmi=world.vmi, now=world.now + 100), None) is None
    return status


def test_a_running_instance_is_mirrored() -> None:
    migratable = a_condition("LiveMigratable", "False", "X")
    vmi = running(READY, migratable)
    vmi = msgspec.structs.replace(
        vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations={"kubevirt.io/vm-generation": "2"})
    )
    status = settled(vm_world(a_vm(), vmi))
    assert (status.created, status.ready, status.printable_status, status.run_strategy) == (
        True,
        True,
        "Running",
        "Always",
    )
    assert (status.observed_generation, status.desired_generation) == (2, 3)
    assert {one.type: one.status for one in status.conditions} == {"Ready": "True", "LiveMigratable": "False"}


def test_a_condition_that_the_instance_lost_is_lost_here_too() -> None:
    vm = a_vm(conditions=[a_condition("Paused", "True"), a_condition("RestartRequired", "True")])
    assert {one.type for one in settled(vm_world(vm, running(READY))).conditions} == {"RestartRequired", "Ready"}


def test_without_an_instance_the_last_run_s_conditions_stay() -> None:
    vm = a_vm("Halted", conditions=[a_condition("Synchronized", "False", "LauncherFailed", "not a disk image")])
    status = settled(vm_world(vm))
    found = conditions.find(status.conditions, "Ready")
    assert found is not None
    assert found.reason == "VMINotExists"
    assert conditions.find(status.conditions, "Synchronized") is not None


def test_a_fresh_instance_is_said_what_its_first_status_will_say() -> None:
    """Otherwise every start would write the VM once more."""
    fresh = settled(vm_world(a_vm(), a_vmi()))
    vm = msgspec.structs.replace(a_vm(), status=fresh)
    scheduling = a_vmi("Scheduling", conditions=[NOT_YET_READY])
    assert derive_status(vm_world(vm, scheduling), None) is None


def test_a_deleted_vm_gets_its_word_and_nothing_else() -> None:
    vm = a_vm(deleting=True, created=True, ready=True, printableStatus="Running")
    status = derive_status(vm_world(vm), None)
    assert status == msgspec.structs.replace(vm.status, printable_status="Terminating")


FAILURES = {
    "create": (CreateVmi("x"), "FailedCreate"),
    "delete": (DeleteVmi("x"), "FailedDelete"),
}


@pytest.mark.parametrize(("action", "reason"), FAILURES.values(), ids=FAILURES.keys())
def test_what_does_not_work_is_said_with_the_server_s_words_until_it_works(action: Any, reason: str) -> None:
    world = vm_world(a_vm())
    status = derive_status(world, Problem(action, Forbidden("quota exceeded")))
    assert status is not None
    failure = conditions.find(status.conditions, "Failure")
    assert failure is not None
    assert (failure.status, failure.reason, failure.message) == ("True", reason, "quota exceeded")
    later = derive_status(vm_world(_with(world.vm, status)), None)
    assert later is not None
    assert conditions.find(later.conditions, "Failure") is None


def test_a_foreign_instance_in_the_way_is_said() -> None:
    failure = conditions.find(settled(vm_world(a_vm(), running(owner="somebody"))).conditions, "Failure")
    assert failure is not None
    assert "belongs to another object" in failure.message
    halted = settled(vm_world(a_vm("Halted"), running(owner="somebody")))
    assert conditions.find(halted.conditions, "Failure") is None


def _with(vm: VirtualMachine, status: VirtualMachineStatus) -> VirtualMachine:
    return msgspec.structs.replace(vm, status=status)


def test_failed_starts_wait_ten_seconds_doubling_to_five_minutes() -> None:
    waits = []
    vm = a_vm()
    for number in range(8):
        vmi = a_vmi("Failed")
        vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, uid=f"run {number}"))
        failure = next_start_failure(vm_world(vm, vmi))
        assert failure is not None
        assert failure.last_failed_vmi_uid == f"run {number}"
        waits.append(failure.retry_after_timestamp)
        vm = _with(vm, VirtualMachineStatus(start_failure=failure))
    assert [stamp and stamp[-6:-1] for stamp in waits] == [
        "00:10", "00:20", "00:40", "01:20", "02:40", "05:00", "05:00", "05:00",
    ]  # fmt: skip


def test_one_failed_start_counts_once() -> None:
    status = settled(vm_world(a_vm(), a_vmi("Failed")))
    assert status.start_failure is not None
    assert (status.start_failure.consecutive_fail_count, status.start_failure.last_failed_vmi_uid) == (1, VMI_UID)


@pytest.mark.parametrize(
    "world",
    [
        vm_world(a_vm(**LOOPING), running(READY)),
        vm_world(a_vm(**LOOPING), a_vmi("Failed", ran=True)),
        vm_world(a_vm("Halted", **LOOPING)),
        vm_world(a_vm("Manual", **LOOPING)),
    ],
    ids=["it runs", "it ran", "it is halted", "a human decides"],
)
def test_failed_starts_are_forgotten(world: World) -> None:
    assert next_start_failure(world) is None


START = {"stateChangeRequests": [{"action": "Start"}]}
RESTART = {"stateChangeRequests": [{"action": "Stop", "uid": VMI_UID}, {"action": "Start"}]}
REQUESTS: dict[str, tuple[World, list[str]]] = {
    "a stop waits for the instance to go": (
        vm_world(a_vm("Manual", **RESTART), running()),
        ["Stop", "Start"],
    ),
    "a stop is done when it is gone": (
        vm_world(a_vm("Manual", **RESTART)),
        ["Start"],
    ),
    "a start is done when one lives": (
        vm_world(a_vm("Manual", **START), running()),
        [],
    ),
    "a start is not done by a finished one": (
        vm_world(a_vm("Manual", **START), a_vmi("Failed", ran=True)),
        ["Start"],
    ),
    "a failed run asks for the next": (vm_world(a_vm("RerunOnFailure"), a_vmi("Failed", ran=True)), ["Start"]),
    "a succeeded one does not": (vm_world(a_vm("RerunOnFailure"), a_vmi("Succeeded", ran=True)), []),
}


@pytest.mark.parametrize(("world", "left"), REQUESTS.values(), ids=REQUESTS.keys())
def test_requests_are_dropped_when_they_are_done(world: World, left: list[str]) -> None:
    status = derive_status(world, None)
    assert status is not None
    assert [one.action for one in status.state_change_requests] == left


def test_stamps_are_of_the_given_time() -> None:
    found = conditions.find(settled(vm_world(a_vm("Halted"))).conditions, "Ready")
    assert found is not None
    assert (found.last_transition_time, NOW) == ("2026-01-01T00:00:00Z", 1_767_225_600.0)
