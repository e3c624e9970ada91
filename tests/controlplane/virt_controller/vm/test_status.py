# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VM, as tables."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from kubevirt_api.names import TEMPLATE_HASH

from controlplane.api.objects import conditions
from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.engine.errors import Forbidden
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vm.start_failure import next_start_failure
from controlplane.virt_controller.vm.status import derive_status, printable_status
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.world import CreateVmi, World
from tests.controlplane.virt_controller.builders import NOW, VMI_UID, a_condition, a_vm, a_vmi, vm_world

READY = a_condition("Ready", "True")
UNPLACED = a_condition("PodScheduled", "False", "Unschedulable", "no node")
NO_IMAGE = a_condition("Synchronized", "False", "ErrImagePull", "no such image")
IMAGE_BACK_OFF = a_condition("Synchronized", "False", "ImagePullBackOff", "no such image")
NOT_YET_READY = a_condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")
NO_CLAIM = a_condition("Synchronized", "False", "FailedPvcNotFound", "default/data not found")
LOOPING = {
    "startFailure": {"consecutiveFailCount": 2, "lastFailedVMIUID": "x", "retryAfterTimestamp": "2026-01-01T00:05:00Z"}
}


def running(*listed: dict[str, Any], **options: Any) -> Any:
    return a_vmi("Running", ran=True, conditions=listed, **options)


def migrating(phase: str = "Running", *, listed: Any = (READY,), deleting: bool = False, **state: Any) -> Any:
    moving = {"migrationUid": "m", "startTimestamp": "2026-01-01T00:00:00Z", **state}
    return a_vmi(phase, ran=True, conditions=listed, deleting=deleting, migrationState=moving)


WORDS: dict[str, tuple[World, str]] = {
    "deleted": (vm_world(a_vm(deleting=True), running(READY)), "Terminating"),
    "instance going": (vm_world(a_vm(), running(READY, deleting=True)), "Stopping"),
    "delete sent": (vm_world(a_vm("Halted"), running(READY), is_delete_sent=True), "Stopping"),
    "paused": (vm_world(a_vm(), running(READY, a_condition("Paused", "True"))), "Paused"),
    "running": (vm_world(a_vm(), running(READY)), "Running"),
    "migrates": (vm_world(a_vm(), migrating()), "Migrating"),
    "migrates, paused": (vm_world(a_vm(), migrating(listed=[READY, a_condition("Paused", "True")])), "Migrating"),
    "migrates, nobody knows": (vm_world(a_vm(), migrating("Unknown")), "Migrating"),
    "migrates, going": (vm_world(a_vm(), migrating(deleting=True)), "Stopping"),
    "is to migrate": (vm_world(a_vm(), migrating(startTimestamp=None)), "Running"),
    "has migrated": (vm_world(a_vm(), migrating(completed=True)), "Running"),
    "failed to migrate": (vm_world(a_vm(), migrating(completed=True, failed=True)), "Running"),
    "running, its Pod not ready": (vm_world(a_vm(), running(a_condition("Ready", "False", "X"))), "Running"),
    "running, readiness not said yet": (vm_world(a_vm(), running(NOT_YET_READY)), "Starting"),
    "no node fits": (vm_world(a_vm(), a_vmi("Scheduling", conditions=[UNPLACED])), "ErrorUnschedulable"),
    "a claim is not there": (
        vm_world(a_vm(), a_vmi("Scheduling", conditions=[NO_CLAIM, UNPLACED])),
        "ErrorPvcNotFound",
    ),
    "a claim has no volume yet": (
        vm_world(a_vm(), a_vmi("Scheduling"), is_volume_unbound=True),
        "WaitingForVolumeBinding",
    ),
    "a claim has no volume yet, and no node fits": (
        vm_world(a_vm(), a_vmi("Scheduling", conditions=[UNPLACED]), is_volume_unbound=True),
        "ErrorUnschedulable",
    ),
    "a claim lost its volume under a guest": (vm_world(a_vm(), running(READY), is_volume_unbound=True), "Running"),
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
def test_the_printable_status(world: World, word: str) -> None:
    assert printable_status(world, next_start_failure(world)) == word


def settled(world: World) -> VirtualMachineStatus:
    """The status that is written; a second pass has nothing to add to it."""
    status = derive_status(world, None)
    assert status is not None
    again = msgspec.structs.replace(world.vm, status=status)
    assert derive_status(dataclasses.replace(world, vm=again, now=world.now + 1), None) is None
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
    assert {condition.type: condition.status for condition in status.conditions} == {
        "Ready": "True",
        "LiveMigratable": "False",
    }


def test_a_condition_that_the_instance_lost_is_removed() -> None:
    vm = a_vm(conditions=[a_condition("Paused", "True")])
    assert {condition.type for condition in settled(vm_world(vm, running(READY))).conditions} == {"Ready"}


@pytest.mark.parametrize(
    "theirs",
    [
        a_condition("Synchronized", "False", "ImagePullBackOff", "no such image"),
        a_condition("Synchronized", "False", "ErrImagePull", "the registry does not answer"),
        a_condition("Synchronized", "True", "ErrImagePull", "no such image"),
    ],
    ids=["reason", "message", "status"],
)
def test_a_changed_condition_of_the_instance_is_copied(theirs: Any) -> None:
    vm = a_vm(conditions=[a_condition("Synchronized", "False", "ErrImagePull", "no such image")])
    status = settled(vm_world(vm, a_vmi("Scheduling", conditions=[theirs])))
    synchronized = next(condition for condition in status.conditions if condition.type == "Synchronized")
    assert (synchronized.status, synchronized.reason, synchronized.message) == (
        theirs["status"],
        theirs["reason"],
        theirs["message"],
    )


STALE = [
    a_condition("Synchronized", "False", "ShutdownTimedOut", "it did not go down in time"),
    a_condition("LiveMigratable", "False", "X"),
    a_condition("SoftwareEmulation", "True"),
    a_condition("RestartRequired", "True"),
    a_condition("Ready", "True"),
]


@pytest.mark.parametrize(
    "vmi",
    [None, running(READY, owner="somebody"), a_vmi("Running", owner=None, deleting=True)],
    ids=["none", "foreign", "a departing orphan"],
)
def test_conditions_of_the_instance_are_removed_with_it(vmi: Any) -> None:
    """A stopped machine is not emulated, and its last shutdown is no trouble any more."""
    status = settled(vm_world(a_vm("Halted", conditions=STALE), vmi))
    assert [(condition.type, condition.status, condition.reason) for condition in status.conditions] == [
        ("Ready", "False", "VMINotExists")
    ]


def failure_of(status: VirtualMachineStatus) -> tuple[str, str] | None:
    failure = conditions.find(status.conditions, "Failure")
    return None if failure is None else (failure.reason, failure.message)


def test_a_failed_start_is_reported_until_the_next_one_begins() -> None:
    """The instance with the reason is deleted while the machine waits."""
    synchronized = a_condition("Synchronized", "False", "LauncherFailed", "not a disk image")
    expected = ("FailedStart", "LauncherFailed: not a disk image")
    failed = a_vmi("Failed", conditions=[synchronized])
    status = settled(vm_world(a_vm(), failed))
    assert (failure_of(status), status.printable_status) == (expected, "CrashLoopBackOff")
    going = derive_status(
        vm_world(_with(a_vm(), status), a_vmi("Failed", deleting=True, conditions=[synchronized])), None
    )
    assert failure_of(going or status) == expected
    waiting = settled(vm_world(_with(a_vm(), going or status)))
    assert (failure_of(waiting), waiting.printable_status) == (expected, "CrashLoopBackOff")
    assert {condition.type for condition in waiting.conditions} == {"Ready", "Failure"}
    for later in (vm_world(_with(a_vm(), waiting), a_vmi("Scheduling")), vm_world(_with(a_vm("Halted"), waiting))):
        assert failure_of(settled(later)) is None


def test_another_failure_does_not_outlive_its_cause_during_the_back_off() -> None:
    refused = a_condition("Failure", "True", "FailedCreate", "quota exceeded")
    assert failure_of(settled(vm_world(a_vm(conditions=[refused], **LOOPING)))) is None


def test_a_failed_start_without_a_reason_is_reported_too() -> None:
    status = settled(vm_world(a_vm(), a_vmi("Failed")))
    assert failure_of(status) == ("FailedStart", "its instance ended before the guest ran")


@pytest.mark.parametrize("how", ["Succeeded", "Failed"])
@pytest.mark.parametrize("strategy", ["Always", "Manual", "Once"])
def test_the_end_of_a_guest_that_ran_is_no_failed_start(strategy: str, how: str) -> None:
    assert failure_of(settled(vm_world(a_vm(strategy), a_vmi(how, ran=True)))) is None


def test_an_unknown_strategy_is_reported_and_completes_no_request() -> None:
    """It comes from a newer API: anything that this version records would be a guess."""
    requests = {"stateChangeRequests": [{"action": "Stop", "uid": "older"}, {"action": "Start"}]}
    status = settled(vm_world(a_vm("WaitAsReceiver", runStrategy="Always", **requests, **LOOPING)))
    reason, message = failure_of(status) or ("", "")
    assert reason == "UnknownRunStrategy"
    assert "'WaitAsReceiver' is not known" in message
    assert "choose one of Always, Halted" in message
    assert status.run_strategy == "Always"
    assert len(status.state_change_requests) == 2
    assert status.start_failure is not None


def test_the_message_about_an_unknown_strategy_has_a_limited_length() -> None:
    _unused, message = failure_of(settled(vm_world(a_vm("W" * 10_000)))) or ("", "")
    assert "'WWW" in message
    assert len(message) < 300


TEMPLATE, CHANGED = b'{"domain":{"memory":{"guest":"64Mi"}}}', b'{"domain":{"memory":{"guest":"65Mi"}}}'
MADE = {TEMPLATE_HASH: template_hash(TEMPLATE)}


def made_from(vmi: Any, annotations: dict[str, str]) -> Any:
    return msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations=annotations))


RESTARTS: dict[str, tuple[World, bool]] = {
    "running, changed": (vm_world(a_vm(), made_from(running(READY), MADE), template=CHANGED), True),
    "pending, changed": (vm_world(a_vm(), made_from(a_vmi("Scheduling"), MADE), template=CHANGED), True),
    "manual, changed": (vm_world(a_vm("Manual"), made_from(running(READY), MADE), template=CHANGED), True),
    "running, as it was": (vm_world(a_vm(), made_from(running(READY), MADE), template=TEMPLATE), False),
    "running, back again": (
        vm_world(a_vm(conditions=STALE), made_from(running(READY), MADE), template=TEMPLATE),
        False,
    ),
    "running, made by a version that did not say": (
        vm_world(a_vm(), made_from(running(READY), {"kubevirt.io/vm-generation": "1"}), template=CHANGED),
        False,
    ),
    "stopping": (vm_world(a_vm(conditions=STALE), made_from(running(deleting=True), MADE), template=CHANGED), False),
    "delete sent": (
        vm_world(a_vm(conditions=STALE), made_from(running(), MADE), template=CHANGED, is_delete_sent=True),
        False,
    ),
    "over": (vm_world(a_vm("Manual"), made_from(a_vmi("Succeeded", ran=True), MADE), template=CHANGED), False),
    "no instance": (vm_world(a_vm("Halted", conditions=STALE), template=CHANGED), False),
}


@pytest.mark.parametrize(("world", "is_required"), RESTARTS.values(), ids=RESTARTS.keys())
def test_a_restart_is_required_while_the_template_differs_from_the_running_one(world: World, is_required: bool) -> None:
    condition = conditions.find(settled(world).conditions, "RestartRequired")
    assert (condition is not None) is is_required
    if condition is not None:
        assert (condition.status, condition.reason) == ("True", "")
        assert condition.message.startswith("a non-live-updatable field was changed in the template spec")


def test_the_status_of_a_new_instance_matches_its_first_own_status() -> None:
    """Otherwise every start would write the VM once more."""
    fresh = settled(vm_world(a_vm(), a_vmi()))
    vm = msgspec.structs.replace(a_vm(), status=fresh)
    scheduling = a_vmi("Scheduling", conditions=[NOT_YET_READY])
    assert derive_status(vm_world(vm, scheduling), None) is None


def test_a_deleting_vm_is_terminating_and_otherwise_unchanged() -> None:
    vm = a_vm(deleting=True, created=True, ready=True, printableStatus="Running")
    status = derive_status(vm_world(vm), None)
    assert status == msgspec.structs.replace(vm.status, printable_status="Terminating")


def test_a_failure_is_reported_with_the_servers_message_until_it_is_over() -> None:
    world = vm_world(a_vm())
    status = derive_status(world, RefusedStep(CreateVmi("x"), Forbidden("quota exceeded")))
    assert status is not None
    failure = conditions.find(status.conditions, "Failure")
    assert failure is not None
    assert (failure.status, failure.reason) == ("True", "FailedCreate")
    assert failure.message.startswith("quota exceeded; look at the namespace's ResourceQuota")
    later = derive_status(vm_world(_with(world.vm, status)), None)
    assert later is not None
    assert conditions.find(later.conditions, "Failure") is None


def test_a_foreign_instance_with_the_name_is_reported() -> None:
    failure = conditions.find(settled(vm_world(a_vm(), running(owner="somebody"))).conditions, "Failure")
    assert failure is not None
    assert "belongs to another object" in failure.message
    halted = settled(vm_world(a_vm("Halted"), running(owner="somebody")))
    assert conditions.find(halted.conditions, "Failure") is None


def _with(vm: VirtualMachine, status: VirtualMachineStatus) -> VirtualMachine:
    return msgspec.structs.replace(vm, status=status)


START = {"stateChangeRequests": [{"action": "Start"}]}
RESTART = {"stateChangeRequests": [{"action": "Stop", "uid": VMI_UID}, {"action": "Start"}]}
REQUESTS: dict[str, tuple[World, list[str]]] = {
    "a stop waits for the instance to go": (vm_world(a_vm("Manual", **RESTART), running()), ["Stop", "Start"]),
    "a stop of an orphan waits until it is adopted": (
        vm_world(a_vm("Manual", **RESTART), running(owner=None)),
        ["Stop", "Start"],
    ),
    "a stop of somebody else's is none of ours": (
        vm_world(a_vm("Manual", **RESTART), running(owner="somebody")),
        ["Start"],
    ),
    "a stop is done when it is gone": (vm_world(a_vm("Manual", **RESTART)), ["Start"]),
    "a start is done when one lives": (vm_world(a_vm("Manual", **START), running()), []),
    "a start is done when one has lived": (vm_world(a_vm("Manual", **START), a_vmi("Failed", ran=True)), []),
    "a start of another is not done by a finished one": (
        vm_world(a_vm("Manual", **RESTART), a_vmi("Failed", ran=True)),
        ["Stop", "Start"],
    ),
    "a failed run asks for the next, and names itself": (
        vm_world(a_vm("RerunOnFailure"), a_vmi("Failed", ran=True)),
        ["Stop", "Start"],
    ),
    "a failed run that was asked for asks for the next, too": (
        vm_world(a_vm("RerunOnFailure", **START), a_vmi("Failed", ran=True)),
        ["Stop", "Start"],
    ),
    "a succeeded one does not": (vm_world(a_vm("RerunOnFailure"), a_vmi("Succeeded", ran=True)), []),
}


@pytest.mark.parametrize(("world", "left"), REQUESTS.values(), ids=REQUESTS.keys())
def test_completed_requests_are_removed(world: World, left: list[str]) -> None:
    status = derive_status(world, None)
    assert status is not None
    assert [request.action for request in status.state_change_requests] == left


def test_timestamps_are_of_the_given_time() -> None:
    condition = conditions.find(settled(vm_world(a_vm("Halted"))).conditions, "Ready")
    assert condition is not None
    assert (condition.last_transition_time, NOW) == ("2026-01-01T00:00:00Z", 1_767_225_600.0)


@pytest.mark.parametrize(
    ("strategy", "vmi", "recorded"),
    [
        ("Always", None, "Halted"),
        ("Always", a_vmi("Pending"), "Always"),
        ("RerunOnFailure", None, "Halted"),
        ("Once", None, "Halted"),
        ("Manual", None, "Manual"),
        ("RerunOnFailure", a_vmi("Running"), "RerunOnFailure"),
        ("RerunOnFailure", a_vmi("Running", deleting=True), "Halted"),
        ("RerunOnFailure", a_vmi("Failed", deleting=True), "Halted"),
        ("Manual", a_vmi("Running", deleting=True), "Manual"),
    ],
)
def test_a_strategy_is_recorded_when_it_was_acted_on(strategy: str, vmi: Any, recorded: str) -> None:
    """Recorded too early, RerunOnFailure would take its first start for a repeated one; the same for a deleting
    instance.
    """
    status = derive_status(vm_world(a_vm(strategy, runStrategy="Halted"), vmi), None)
    assert status is not None
    assert status.run_strategy == recorded


@pytest.mark.parametrize(("listed", "ready"), [((READY,), True), ((NOT_YET_READY,), False), ((), False)])
def test_a_machine_is_ready_when_its_instance_is(listed: tuple[Any, ...], ready: bool) -> None:
    """Not as soon as there is one: a wait for `ready` would end before the guest runs."""
    assert settled(vm_world(a_vm(), running(*listed))).ready is ready


def test_a_foreign_instance_does_not_count_as_created() -> None:
    status = derive_status(vm_world(a_vm(), a_vmi("Running", owner="somebody")), None)
    assert status is not None
    assert not status.created


def test_an_instance_without_a_ready_condition_is_not_ready() -> None:
    status = derive_status(vm_world(a_vm(), a_vmi("Scheduled")), None)
    assert status is not None
    (ready,) = (condition for condition in status.conditions if condition.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "VMIConditionMissing")


@pytest.mark.parametrize(("strategy", "is_followed"), [("Always", True), ("Manual", False), ("Once", False)])
def test_a_failed_paused_start_is_followed_by_another_where_the_strategy_runs(strategy: str, is_followed: bool) -> None:
    failed = a_vmi("Failed", spec={"startStrategy": "Paused"})
    status = derive_status(vm_world(a_vm(strategy), failed), None)
    assert status is not None
    assert [request.action for request in status.state_change_requests] == (["Stop", "Start"] if is_followed else [])
