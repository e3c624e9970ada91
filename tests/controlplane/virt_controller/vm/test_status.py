# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VM, as tables."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest
from kubevirt_api.names import TEMPLATE_HASH, TEMPLATE_METADATA_HASH, VM_GENERATION

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import Forbidden
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vm.start_failure import next_start_failure
from controlplane.virt_controller.vm.status import derive_status, printable_status
from controlplane.virt_controller.vm.template import template_hash
from controlplane.virt_controller.vm.template_metadata import metadata_hash
from controlplane.virt_controller.vm.world import CreateVmi, DeleteVmi, World
from tests.controlplane.virt_controller.builders import STAMP, VM_UID, VMI_UID, a_condition, a_vm, a_vmi, vm_world

READY, PAUSED = a_condition("Ready", "True"), a_condition("Paused", "True")
POD_NOT_READY = a_condition("Ready", "False", "X")
UNPLACED = a_condition("PodScheduled", "False", "Unschedulable", "no node")
NO_IMAGE = a_condition("Synchronized", "False", "ErrImagePull", "no such image")
IMAGE_BACK_OFF = a_condition("Synchronized", "False", "ImagePullBackOff", "no such image")
NOT_YET_READY = a_condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")
NO_CLAIM = a_condition("Synchronized", "False", "FailedPvcNotFound", "default/data not found")
LOOPING = {
    "startFailure": {"consecutiveFailCount": 2, "lastFailedVMIUID": "x", "retryAfterTimestamp": "2026-01-01T00:05:00Z"}
}
UNBOUND = {"is_volume_unbound": True}


def running(*listed: Any, **options: Any) -> VirtualMachineInstance:
    return a_vmi("Running", ran=True, conditions=listed, **options)


def scheduling(*listed: Any) -> VirtualMachineInstance:
    return a_vmi("Scheduling", conditions=listed)


def migrating(phase: str = "Running", *more: Any, deleting: bool = False, **state: Any) -> VirtualMachineInstance:
    migration = {"migrationUid": "m", "startTimestamp": STAMP, **state}
    return a_vmi(phase, ran=True, conditions=[READY, *more], deleting=deleting, migrationState=migration)


NEVER_RAN = a_vmi("Failed")
FOREIGN = running(READY, owner="somebody")
WORDS: dict[str, tuple[World, str]] = {
    "deleted": (vm_world(a_vm(deleting=True), running(READY)), "Terminating"),
    "instance going": (vm_world(a_vm(), running(READY, deleting=True)), "Stopping"),
    "delete sent": (vm_world(a_vm("Halted"), running(READY), is_delete_sent=True), "Stopping"),
    "paused": (vm_world(a_vm(), running(READY, PAUSED)), "Paused"),
    "running": (vm_world(a_vm(), running(READY)), "Running"),
    "migrating": (vm_world(a_vm(), migrating()), "Migrating"),
    "migrating, paused": (vm_world(a_vm(), migrating("Running", PAUSED)), "Migrating"),
    "migrating, unknown": (vm_world(a_vm(), migrating("Unknown")), "Migrating"),
    "migrating, going": (vm_world(a_vm(), migrating(deleting=True)), "Stopping"),
    "will migrate": (vm_world(a_vm(), migrating(startTimestamp=None)), "Running"),
    "has migrated": (vm_world(a_vm(), migrating(completed=True)), "Running"),
    "failed to migrate": (vm_world(a_vm(), migrating(completed=True, failed=True)), "Running"),
    "running, its Pod not ready": (vm_world(a_vm(), running(POD_NOT_READY)), "Running"),
    "running, readiness not reported yet": (vm_world(a_vm(), running(NOT_YET_READY)), "Starting"),
    "no node fits": (vm_world(a_vm(), scheduling(UNPLACED)), "ErrorUnschedulable"),
    "no claim, no node": (vm_world(a_vm(), scheduling(NO_CLAIM, UNPLACED)), "ErrorPvcNotFound"),
    "unbound claim": (vm_world(a_vm(), a_vmi("Scheduling"), **UNBOUND), "WaitingForVolumeBinding"),
    "unbound claim, no node": (vm_world(a_vm(), scheduling(UNPLACED), **UNBOUND), "ErrorUnschedulable"),
    "unbound claim, running": (vm_world(a_vm(), running(READY), **UNBOUND), "Running"),
    "no image": (vm_world(a_vm(), scheduling(NO_IMAGE)), "ErrImagePull"),
    "no image for long": (vm_world(a_vm(), scheduling(IMAGE_BACK_OFF)), "ImagePullBackOff"),
    "fresh": (vm_world(a_vm(), a_vmi()), "Starting"),
    "pending": (vm_world(a_vm(), a_vmi("Pending")), "Starting"),
    "scheduling": (vm_world(a_vm(), a_vmi("Scheduling")), "Starting"),
    "scheduled": (vm_world(a_vm(), a_vmi("Scheduled")), "Starting"),
    "unknown": (vm_world(a_vm(), a_vmi("Unknown")), "Unknown"),
    "failing starts": (vm_world(a_vm(**LOOPING)), "CrashLoopBackOff"),
    "failing starts, the last one exists": (vm_world(a_vm(**LOOPING), NEVER_RAN), "CrashLoopBackOff"),
    "starting again after failures": (vm_world(a_vm(**LOOPING), a_vmi("Scheduling")), "Starting"),
    "failing starts before its strategy was unknown": (vm_world(a_vm("WaitAsReceiver", **LOOPING)), "Stopped"),
    "succeeded": (vm_world(a_vm("Manual"), a_vmi("Succeeded", ran=True)), "Stopped"),
    "none": (vm_world(a_vm("Halted")), "Stopped"),
    "foreign": (vm_world(a_vm(), FOREIGN), "Stopped"),
}


@pytest.mark.parametrize(("world", "word"), WORDS.values(), ids=WORDS.keys())
def test_the_printable_status(world: World, word: str) -> None:
    assert printable_status(world, next_start_failure(world)) == word


def derived(world: World) -> VirtualMachineStatus:
    status = derive_status(world, None)
    assert status is not None
    return status


def settled(world: World) -> VirtualMachineStatus:
    """The status that is written; a second pass has nothing to add to it."""
    status = derived(world)
    assert derive_status(dataclasses.replace(world, vm=with_status(world.vm, status), now=world.now + 1), None) is None
    return status


def with_status(vm: VirtualMachine, status: VirtualMachineStatus) -> VirtualMachine:
    return msgspec.structs.replace(vm, status=status)


def annotated(vmi: VirtualMachineInstance, **annotations: str | None) -> VirtualMachineInstance:
    names = {"generation": VM_GENERATION, "template": TEMPLATE_HASH, "metadata": TEMPLATE_METADATA_HASH}
    given = {names[name]: value for name, value in annotations.items() if value is not None}
    return msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations=given))


def failure_of(status: VirtualMachineStatus) -> tuple[str, str] | None:
    failure = conditions.find(status.conditions, "Failure")
    return None if failure is None else (failure.reason, failure.message)


# what is copied from the instance


def test_a_running_instance_is_mirrored() -> None:
    vmi = annotated(running(READY, a_condition("LiveMigratable", "False", "X")), generation="2")
    status = settled(vm_world(a_vm(), vmi))
    assert (status.created, status.ready, status.printable_status) == (True, True, "Running")
    assert (status.run_strategy, status.observed_generation, status.desired_generation) == ("Always", 2, 3)
    by_type = {condition.type: condition.status for condition in status.conditions}
    assert by_type == {"Ready": "True", "LiveMigratable": "False"}


@pytest.mark.parametrize(
    ("vmi", "is_created", "is_ready"),
    [
        (running(READY), True, True),
        (running(NOT_YET_READY), True, False),
        (running(), True, False),
        (FOREIGN, False, False),
    ],
    ids=["ready", "not ready", "no condition", "foreign"],
)
def test_a_machine_is_ready_when_its_instance_is(vmi: VirtualMachineInstance, is_created: bool, is_ready: bool) -> None:
    """Not as soon as there is one: a wait for `ready` would end before the guest runs."""
    status = settled(vm_world(a_vm(), vmi))
    assert (status.created, status.ready) == (is_created, is_ready)


@pytest.mark.parametrize(
    "theirs",
    [
        IMAGE_BACK_OFF,
        a_condition("Synchronized", "False", "ErrImagePull", "the registry does not answer"),
        a_condition("Synchronized", "True", "ErrImagePull", "no such image"),
    ],
    ids=["reason", "message", "status"],
)
def test_a_changed_condition_of_the_instance_is_copied(theirs: Any) -> None:
    status = settled(vm_world(a_vm(conditions=[NO_IMAGE]), scheduling(theirs)))
    copied = conditions.find(status.conditions, "Synchronized")
    assert copied is not None
    assert (copied.status, copied.reason, copied.message) == (theirs["status"], theirs["reason"], theirs["message"])


STALE = [
    a_condition("Synchronized", "False", "ShutdownTimedOut", "it did not go down in time"),
    a_condition("LiveMigratable", "False", "X"),
    a_condition("SoftwareEmulation", "True"),
    a_condition("RestartRequired", "True"),
    PAUSED,
    READY,
]


@pytest.mark.parametrize(
    ("vmi", "left"),
    [
        (None, ("False", "VMINotExists")),
        (FOREIGN, ("False", "VMINotExists")),
        (a_vmi("Running", owner=None, deleting=True), ("False", "VMINotExists")),
        (running(READY), ("True", "")),
        (a_vmi("Scheduled"), ("False", "VMIConditionMissing")),
    ],
    ids=["none", "foreign", "a departing orphan", "it lost them", "it has none"],
)
def test_conditions_that_the_instance_does_not_have_are_removed(vmi: Any, left: tuple[str, str]) -> None:
    """A stopped machine is not emulated, and its last shutdown is no trouble any more."""
    (ready,) = derived(vm_world(a_vm("Halted", conditions=STALE), vmi)).conditions
    assert (ready.type, ready.status, ready.reason) == ("Ready", *left)
    assert ready.last_transition_time == (STAMP if left[0] == "False" else None)


def test_the_status_of_a_new_instance_matches_its_first_own_status() -> None:
    """Otherwise every start would write the VM once more."""
    vm = with_status(a_vm(), settled(vm_world(a_vm(), a_vmi())))
    assert derive_status(vm_world(vm, scheduling(NOT_YET_READY)), None) is None


@pytest.mark.parametrize(
    ("world", "printable_status"),
    [
        (vm_world(a_vm(conditions=[READY], ready=True), running(READY, deleting=True)), "Stopping"),
        (vm_world(a_vm(conditions=[READY], ready=True), running(READY), is_delete_sent=True), "Stopping"),
        (
            vm_world(a_vm(deleting=True, conditions=[READY], ready=True), running(READY), is_delete_sent=True),
            "Terminating",
        ),
        (vm_world(a_vm(deleting=True, conditions=[READY], ready=True), running(READY, deleting=True)), "Terminating"),
    ],
    ids=[
        "its instance is being deleted",
        "the deletion was sent",
        "it is deleted, too",
        "it is deleted with its instance",
    ],
)
def test_a_machine_that_stops_is_not_ready_in_the_same_write(world: World, printable_status: str) -> None:
    """The instance says so next, and that costs no further write."""
    status = derived(world)
    ready = conditions.find(status.conditions, "Ready")
    assert ready is not None
    assert (status.printable_status, status.ready, ready.status, ready.reason) == (
        printable_status,
        False,
        "False",
        "PodTerminating",
    )
    going = running(a_condition("Ready", "False", "PodTerminating", "virt-launcher pod is terminating"), deleting=True)
    vm = msgspec.structs.replace(world.vm, status=status)
    assert derive_status(dataclasses.replace(world, vm=vm, vmi=going), None) is None


def test_deletion_freezes_nothing_that_is_still_observed() -> None:
    """Otherwise nobody learns what a machine waits for that does not go."""
    lost = a_condition("Synchronized", "False", "LauncherLost", "nothing proves that its guest ended")
    old = a_vm(deleting=True, created=True, ready=True, conditions=[READY, PAUSED], printableStatus="Running")
    status = derived(vm_world(old, a_vmi("Unknown", deleting=True, conditions=[lost])))
    assert [condition.reason for condition in status.conditions if condition.type == "Synchronized"] == ["LauncherLost"]
    assert "Paused" not in {condition.type for condition in status.conditions}

    gone = derived(vm_world(a_vm(deleting=True, created=True, ready=True, conditions=[READY])))
    assert (gone.created, gone.ready, gone.printable_status) == (False, False, "Terminating")
    assert [condition.reason for condition in gone.conditions] == ["VMINotExists"]


def test_a_deleted_machine_says_why_it_cannot_be_deleted_and_nothing_about_its_next_start() -> None:
    world = vm_world(a_vm(deleting=True), FOREIGN)
    assert failure_of(derived(world)) is None
    refused = derive_status(world, RefusedStep(DeleteVmi("x"), Forbidden("no")))
    assert refused is not None
    assert (failure_of(refused) or ("", ""))[1].startswith("no")


# the condition Failure


def test_a_failed_start_is_reported_until_the_next_one_begins() -> None:
    """The instance with the reason is deleted while the machine waits."""
    synchronized = a_condition("Synchronized", "False", "LauncherFailed", "not a disk image")
    expected = ("FailedStart", "LauncherFailed: not a disk image")
    status = settled(vm_world(a_vm(), a_vmi("Failed", conditions=[synchronized])))
    assert (failure_of(status), status.printable_status) == (expected, "CrashLoopBackOff")
    ending = a_vmi("Failed", deleting=True, conditions=[synchronized])
    status = derive_status(vm_world(with_status(a_vm(), status), ending), None) or status
    assert failure_of(status) == expected
    waiting = settled(vm_world(with_status(a_vm(), status)))
    assert (failure_of(waiting), waiting.printable_status) == (expected, "CrashLoopBackOff")
    assert {condition.type for condition in waiting.conditions} == {"Ready", "Failure"}
    starting = vm_world(with_status(a_vm(), waiting), a_vmi("Scheduling"))
    halted = vm_world(with_status(a_vm("Halted"), waiting))
    assert [failure_of(settled(world)) for world in (starting, halted)] == [None, None]


REFUSED = a_condition("Failure", "True", "FailedCreate", "quota exceeded")
FAILURES: dict[str, tuple[World, tuple[str, str] | None]] = {
    "a failed start without a reason": (
        vm_world(a_vm(), NEVER_RAN),
        ("FailedStart", "its instance ended before the guest ran"),
    ),
    "another failure, during the back-off": (vm_world(a_vm(conditions=[REFUSED], **LOOPING)), None),
    "a foreign instance": (
        vm_world(a_vm(), FOREIGN),
        (
            "FailedCreate",
            "cannot create the instance: another object owns an instance of this name; delete that one first",
        ),
    ),
    "a foreign instance, and it is halted": (vm_world(a_vm("Halted"), FOREIGN), None),
    "a guest that ran failed": (vm_world(a_vm(), a_vmi("Failed", ran=True)), None),
    "a guest that ran succeeded": (vm_world(a_vm("Once"), a_vmi("Succeeded", ran=True)), None),
    "a manual start failed": (vm_world(a_vm("Manual"), a_vmi("Failed", ran=True)), None),
}


@pytest.mark.parametrize(("world", "failure"), FAILURES.values(), ids=FAILURES.keys())
def test_the_condition_failure(world: World, failure: tuple[str, str] | None) -> None:
    assert failure_of(settled(world)) == failure


def test_a_refusal_is_reported_with_the_servers_message_until_it_is_over() -> None:
    status = derive_status(vm_world(a_vm()), RefusedStep(CreateVmi("x"), Forbidden("quota exceeded")))
    assert status is not None
    reason, message = failure_of(status) or ("", "")
    assert reason == "FailedCreate"
    assert message.startswith("quota exceeded; check the namespace's ResourceQuota")
    assert failure_of(derived(vm_world(with_status(a_vm(), status)))) is None


def test_an_unknown_strategy_is_reported_and_completes_no_request() -> None:
    """It comes from a newer API: anything that this version records would be a guess."""
    requests = {"stateChangeRequests": [{"action": "Stop", "uid": "older"}, {"action": "Start"}]}
    status = settled(vm_world(a_vm("WaitAsReceiver", runStrategy="Always", **requests, **LOOPING)))
    reason, message = failure_of(status) or ("", "")
    assert reason == "UnknownRunStrategy"
    assert "does not know run strategy 'WaitAsReceiver'" in message
    assert "choose one of Always, Halted" in message
    assert (status.run_strategy, len(status.state_change_requests)) == ("Always", 2)
    assert status.start_failure is not None
    _reason, message = failure_of(settled(vm_world(a_vm("W" * 10_000)))) or ("", "")
    assert len(message) < 300


# the condition RestartRequired

TEMPLATE, CHANGED = b'{"domain":{"memory":{"guest":"64Mi"}}}', b'{"domain":{"memory":{"guest":"65Mi"}}}'
SAME, OTHER = {"template": TEMPLATE}, {"template": CHANGED}
WAS_REQUIRED = {"conditions": STALE}


def made(vmi: VirtualMachineInstance) -> VirtualMachineInstance:
    return annotated(vmi, template=template_hash(TEMPLATE))


UNHASHED = annotated(running(READY), generation="1")
RESTARTS: dict[str, tuple[World, bool]] = {
    "running, changed": (vm_world(a_vm(), made(running(READY)), **OTHER), True),
    "pending, changed": (vm_world(a_vm(), made(a_vmi("Scheduling")), **OTHER), True),
    "manual, changed": (vm_world(a_vm("Manual"), made(running(READY)), **OTHER), True),
    "running, unchanged": (vm_world(a_vm(), made(running(READY)), **SAME), False),
    "running, changed back": (vm_world(a_vm(**WAS_REQUIRED), made(running(READY)), **SAME), False),
    "running, created by a version without hashes": (vm_world(a_vm(), UNHASHED, **OTHER), False),
    "stopping": (vm_world(a_vm(**WAS_REQUIRED), made(running(deleting=True)), **OTHER), False),
    "delete sent": (vm_world(a_vm(**WAS_REQUIRED), made(running()), **OTHER, is_delete_sent=True), False),
    "over": (vm_world(a_vm("Manual"), made(a_vmi("Succeeded", ran=True)), **OTHER), False),
    "no instance": (vm_world(a_vm("Halted", **WAS_REQUIRED), **OTHER), False),
}


@pytest.mark.parametrize(("world", "is_required"), RESTARTS.values(), ids=RESTARTS.keys())
def test_a_restart_is_required_while_the_template_differs_from_the_running_one(world: World, is_required: bool) -> None:
    condition = conditions.find(settled(world).conditions, "RestartRequired")
    assert (condition is not None) is is_required
    if condition is not None:
        assert (condition.status, condition.reason) == ("True", "")
        assert condition.message.startswith("a non-live-updatable field was changed in the template spec")


# requests, run strategy, generation

START = {"stateChangeRequests": [{"action": "Start"}]}
RESTART = {"stateChangeRequests": [{"action": "Stop", "uid": VMI_UID}, {"action": "Start"}]}
FAILED, SUCCEEDED = a_vmi("Failed", ran=True), a_vmi("Succeeded", ran=True)
FAILED_PAUSED = a_vmi("Failed", spec={"startStrategy": "Paused"})
REQUESTS: dict[str, tuple[VirtualMachine, VirtualMachineInstance | None, list[str]]] = {
    "a stop, it runs": (a_vm("Manual", **RESTART), running(), ["Stop", "Start"]),
    "a stop of an orphan, not adopted yet": (a_vm("Manual", **RESTART), running(owner=None), ["Stop", "Start"]),
    "a stop of a foreign one": (a_vm("Manual", **RESTART), running(owner="somebody"), ["Start"]),
    "a stop, it is gone": (a_vm("Manual", **RESTART), None, ["Start"]),
    "a start, it runs": (a_vm("Manual", **START), running(), []),
    "a start, it ran": (a_vm("Manual", **START), FAILED, []),
    "a restart, it ran": (a_vm("Manual", **RESTART), FAILED, ["Stop", "Start"]),
    "rerun, failed": (a_vm("RerunOnFailure"), FAILED, ["Stop", "Start"]),
    "rerun, failed after a start": (a_vm("RerunOnFailure", **START), FAILED, ["Stop", "Start"]),
    "rerun, succeeded": (a_vm("RerunOnFailure"), SUCCEEDED, []),
    "always, a paused start failed": (a_vm("Always"), FAILED_PAUSED, ["Stop", "Start"]),
    "manual, a paused start failed": (a_vm("Manual"), FAILED_PAUSED, []),
    "once, a paused start failed": (a_vm("Once"), FAILED_PAUSED, []),
}


@pytest.mark.parametrize(("vm", "vmi", "left"), REQUESTS.values(), ids=REQUESTS.keys())
def test_completed_requests_are_removed(
    vm: VirtualMachine, vmi: VirtualMachineInstance | None, left: list[str]
) -> None:
    assert [request.action for request in derived(vm_world(vm, vmi)).state_change_requests] == left


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
    """Recorded too early, RerunOnFailure would take its first start for a repeated one."""
    assert derived(vm_world(a_vm(strategy, runStrategy="Halted"), vmi)).run_strategy == recorded


MATCHES, DIFFERS = template_hash(TEMPLATE), template_hash(CHANGED)
RUNS: dict[str, Any] = {"before": 1, "created": True, "template": None, "metadata": None}
MALFORMED = ["", "0", "4", "-2", "2.0", " 2", "two", "²", "٢", "9" * 18, "9" * 20, "9" * 5_000]


@pytest.mark.parametrize(
    ("text", "instance", "observed"),
    [
        *[(text, {"template": MATCHES}, 3) for text in ("2", "0", "two", "")],
        *[("2", {"template": MATCHES, **status}, 3) for status in ({"phase": "Scheduling"}, {"deleting": True})],
        ("2", {"template": MATCHES, "phase": "Succeeded"}, 3),
        ("2", {"template": MATCHES, "owner": "another"}, 1),
        ("2", {"template": DIFFERS}, 2),
        ("2", {}, 2),
        ("3", {}, 3),
        ("1", {"template": DIFFERS, "before": 2}, 2),
        ("1", {"template": DIFFERS, "before": 2, "created": False}, 1),
        ("2", {"template": DIFFERS, "before": 4}, 2),
        ("2", {"template": MATCHES, "metadata": metadata_hash(ObjectMeta())}, 3),
        ("2", {"template": MATCHES, "metadata": metadata_hash(ObjectMeta(labels={"app": "web"}))}, 2),
        *[(text, {}, 1) for text in MALFORMED],
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_the_observed_generation(text: str, instance: dict[str, Any], observed: int) -> None:
    """The generation in the instance's annotation, which may be malformed; the newest if it has the VM's template with
    its labels.

    Otherwise a wait for observedGeneration after a change of the run strategy would never end. It does not decrease
    during a run: generation 2 may change only the strategy, and 3 the template. The VM has generation 3. before: the
    observed generation until now, with an instance (created) or without.
    """
    options = {**RUNS, **instance}
    before, created, made_from, metadata = (options.pop(name) for name in RUNS)
    vmi = annotated(a_vmi(**{"phase": "Running", **options}), generation=text, template=made_from, metadata=metadata)
    world = vm_world(a_vm(observedGeneration=before, created=created), vmi, template=TEMPLATE)
    assert derived(world).observed_generation == observed


@pytest.mark.parametrize(
    ("vmi", "named"),
    [
        (None, "former"),
        (a_vmi(), f"revision-start-vm-{VM_UID}-2"),
        (a_vmi("Scheduling", virtualMachineRevisionName="of the run"), "of the run"),
        (a_vmi("Running"), "former"),
        (a_vmi(owner="another"), "former"),
    ],
    ids=["no instance", "just created", "it names its own", "of a version without revisions", "of another owner"],
)
def test_the_revision_of_the_last_start_is_recorded(vmi: VirtualMachineInstance | None, named: str) -> None:
    """The next start deletes it. A new instance names it with its first status, so one write is saved."""
    own = None if vmi is None else annotated(vmi, generation="2")
    assert derived(vm_world(a_vm(startRevisionName="former"), own)).start_revision_name == named
