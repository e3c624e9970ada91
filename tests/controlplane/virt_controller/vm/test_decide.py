# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions about a VM, as a table."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import TEMPLATE_HASH, VM_FINALIZER
from kubevirt_api.run_strategies import BUILT, HALTED

from controlplane.api.objects.meta import OwnerReference
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.decide import ORPHAN_FINALIZER, decide
from controlplane.virt_controller.vm.world import CreateVmi
from tests.controlplane.virt_controller.builders import NOW, STAMP, VM_UID, VMI_UID, a_condition, a_vm, a_vmi, vm_world

START, STOP = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}
STALE_STOP = {"action": "Stop", "uid": "an older one"}
ANY_STOP = {"action": "Stop"}
COUNTED = {"startFailure": {"consecutiveFailCount": 1, "lastFailedVMIUID": VMI_UID, "retryAfterTimestamp": STAMP}}
COUNTED_BEFORE = {"startFailure": {**COUNTED["startFailure"], "lastFailedVMIUID": "the one before"}}
RERUN, ACTED_ON = "RerunOnFailure", {"runStrategy": "RerunOnFailure"}
ORPHANING = (VM_FINALIZER, ORPHAN_FINALIZER)


def also_owned(vmi: VirtualMachineInstance) -> VirtualMachineInstance:
    """Add the VM as a second owner that is no controller."""
    listed = (OwnerReference(kind="VirtualMachine", name="web", uid=VM_UID), *vmi.metadata.owner_references)
    return msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, owner_references=listed))


RUNNING, GOING = a_vmi("Running", ran=True), a_vmi("Running", ran=True, deleting=True)
SUCCEEDED, FAILED = a_vmi("Succeeded", ran=True), a_vmi("Failed", ran=True)
NEVER_RAN = a_vmi("Failed")
DISRUPTED = a_condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "launcher Pod p on node n was evicted")
EVICTED = a_vmi("Succeeded", ran=True, conditions=[DISRUPTED])
FAILED_PAUSED = a_vmi("Failed", spec={"startStrategy": "Paused"})
ORPHAN, FOREIGN = a_vmi("Running", owner=None), a_vmi("Running", owner="somebody")
LISTED, LISTED_FOREIGN = also_owned(ORPHAN), also_owned(FOREIGN)
PAUSED_START = {"action": "Start", "data": {"paused": "true"}}
PAUSED_NOW = {"action": "Start", "data": {"paused": "true", "generation": "3"}}
UNPAUSED_START = {"action": "Start", "data": {"paused": "false"}}
ODD_START = {"action": "Start", "data": {"onTheMoon": "yes"}}
ALWAYS, HALTED_VM, MANUAL, ONCE, NEWER = (
    a_vm(strategy) for strategy in ("Always", "Halted", "Manual", "Once", "WaitAsReceiver")
)


def queued(strategy: str, *requests: dict[str, Any], **status: Any) -> VirtualMachine:
    return a_vm(strategy, stateChangeRequests=list(requests), **status)


TABLE: dict[str, tuple[VirtualMachine, VirtualMachineInstance | None, str]] = {
    # VM, instance, steps
    "Always, none": (ALWAYS, None, "CreateVmi"),
    "Always, alive": (ALWAYS, RUNNING, ""),
    "Always, going": (ALWAYS, GOING, ""),
    "Always, succeeded": (ALWAYS, SUCCEEDED, "DeleteVmi"),
    "Always, failed after running": (ALWAYS, FAILED, "DeleteVmi"),
    "Always, failed before running": (ALWAYS, NEVER_RAN, "WriteStatus DeleteVmi"),
    "Always, ended by a user before running": (ALWAYS, a_vmi("Failed", deleting=True), ""),
    "Always, an unknown phase": (ALWAYS, a_vmi("WaitingForSync"), ""),
    "Always, failed before running, after another": (a_vm(**COUNTED_BEFORE), NEVER_RAN, "WriteStatus DeleteVmi"),
    "Always, failed start recorded": (a_vm(**COUNTED), NEVER_RAN, "DeleteVmi"),
    "Always, failed paused start": (a_vm(**COUNTED), FAILED_PAUSED, "WriteStatus DeleteVmi"),
    "Always, restart": (queued("Always", STOP, START), RUNNING, "DeleteVmi"),
    "Always, stop of an older instance": (queued("Always", STALE_STOP), RUNNING, ""),
    "Halted, none": (HALTED_VM, None, ""),
    "Halted, none, start": (queued("Halted", START), None, "DropRequest"),
    "Halted, none, restart": (queued("Halted", STOP, START), None, "DropRequest"),
    "Halted, alive, restart": (queued("Halted", STOP, START), RUNNING, "DeleteVmi"),
    "Halted, alive": (HALTED_VM, RUNNING, "DeleteVmi"),
    "Halted, final": (HALTED_VM, SUCCEEDED, "DeleteVmi"),
    "Halted, going": (HALTED_VM, GOING, ""),
    "Halted, paused start of a former generation": (queued("Halted", PAUSED_START), None, "DropRequest"),
    "Halted, paused start": (queued("Halted", PAUSED_NOW), None, "SetRunStrategyAlways"),
    "Halted, paused restart, going": (queued("Halted", STOP, PAUSED_NOW), GOING, ""),
    "Manual, none": (MANUAL, None, ""),
    "Manual, none, start": (queued("Manual", START), None, "CreateVmi"),
    "Manual, none, restart": (queued("Manual", STOP, START), None, "CreateVmi"),
    "Manual, none, any stop done, start": (queued("Manual", ANY_STOP, START), None, "WriteStatus CreateVmi"),
    "Manual, alive": (MANUAL, RUNNING, ""),
    "Manual, alive, stop": (queued("Manual", STOP), RUNNING, "DeleteVmi"),
    "Manual, alive, start": (queued("Manual", START), RUNNING, ""),
    "Manual, alive, start answered, stop": (queued("Manual", START, STOP), RUNNING, "WriteStatus DeleteVmi"),
    "Manual, final": (MANUAL, FAILED, ""),
    "Manual, final, start": (queued("Manual", START), FAILED, ""),
    "Manual, final, restart": (queued("Manual", STOP, START), FAILED, "DeleteVmi"),
    "Manual, going, start": (queued("Manual", START), GOING, ""),
    "Manual, paused start": (queued("Manual", PAUSED_START), None, "CreateVmi"),
    "Manual, unpaused start": (queued("Manual", UNPAUSED_START), None, "CreateVmi"),
    "Manual, start with an unknown option": (queued("Manual", ODD_START), None, "DropRequest"),
    "Manual, unknown request": (queued("Manual", {"action": "Dance"}), None, "DropRequest"),
    "Rerun, fresh": (a_vm(RERUN), None, "CreateVmi"),
    "Rerun, acted on before": (a_vm(RERUN, **ACTED_ON), None, ""),
    "Rerun, acted on before, start": (queued(RERUN, START, **ACTED_ON), None, "CreateVmi"),
    "Rerun, switched to from Halted": (a_vm(RERUN, runStrategy="Halted"), None, "CreateVmi"),
    "Rerun, switched to from Always": (a_vm(RERUN, runStrategy="Always"), None, "CreateVmi"),
    "Rerun, succeeded": (a_vm(RERUN, **ACTED_ON), SUCCEEDED, "ConfirmPod"),
    "Rerun, just switched to, succeeded": (a_vm(RERUN), SUCCEEDED, "ConfirmPod"),
    "Rerun, evicted": (a_vm(RERUN, **ACTED_ON), EVICTED, "WriteStatus DeleteVmi"),
    "Rerun, evicted, stop": (queued(RERUN, STOP, **ACTED_ON), EVICTED, "DeleteVmi"),
    "Rerun, evicted, still alive": (a_vm(RERUN, **ACTED_ON), a_vmi("Running", ran=True, conditions=[DISRUPTED]), ""),
    "Rerun, just switched to, stop": (queued(RERUN, STOP), RUNNING, "WriteStatus DeleteVmi"),
    "Rerun, failed": (a_vm(RERUN), FAILED, "WriteStatus DeleteVmi"),
    "Rerun, acted on before, failed": (a_vm(RERUN, **ACTED_ON), FAILED, "WriteStatus DeleteVmi"),
    "Rerun, failed, stop": (queued(RERUN, STOP, **ACTED_ON), FAILED, "DeleteVmi"),
    "Rerun, failed, restart": (queued(RERUN, STOP, START, **ACTED_ON), FAILED, "DeleteVmi"),
    "Rerun, start answered, failed": (queued(RERUN, START, **ACTED_ON), FAILED, "WriteStatus DeleteVmi"),
    "Rerun, start answered, succeeded": (queued(RERUN, START, **ACTED_ON), SUCCEEDED, "ConfirmPod"),
    "Rerun, paused start": (queued(RERUN, PAUSED_START), None, "CreateVmi"),
    "Once, none": (ONCE, None, "CreateVmi"),
    "Once, succeeded": (ONCE, SUCCEEDED, ""),
    "Once, evicted": (ONCE, EVICTED, ""),
    "Manual, evicted": (MANUAL, EVICTED, ""),
    "Once, failed": (ONCE, FAILED, ""),
    "Once, none, start": (queued("Once", START), None, "CreateVmi"),
    "Once, final, start": (queued("Once", START), SUCCEEDED, ""),
    "Once, alive, stop": (queued("Once", STOP), RUNNING, "DropRequest"),
    "unknown strategy, none": (NEWER, None, ""),
    "unknown strategy, alive": (NEWER, RUNNING, ""),
    "unknown strategy, final": (NEWER, FAILED, ""),
    "unknown strategy, orphan": (NEWER, ORPHAN, ""),
    "unknown strategy, start": (queued("WaitAsReceiver", START), None, ""),
    "unknown strategy, stop": (queued("WaitAsReceiver", STOP), RUNNING, ""),
    "unknown strategy, deleted": (a_vm("WaitAsReceiver", deleting=True), RUNNING, "DeleteVmi"),
    # ownership
    "an orphan": (ALWAYS, ORPHAN, "AdoptVmi"),
    "an orphan of a halted VM": (HALTED_VM, ORPHAN, "AdoptVmi"),
    "a departing orphan": (ALWAYS, a_vmi(owner=None, deleting=True), ""),
    "foreign": (ALWAYS, FOREIGN, ""),
    "foreign, halted VM": (HALTED_VM, FOREIGN, ""),
    "an orphan that lists the VM as owner": (ALWAYS, LISTED, "AdoptVmi"),
    "a foreign one that lists the VM as owner": (HALTED_VM, LISTED_FOREIGN, ""),
    # finalizer and deletion
    "no finalizer": (a_vm(finalizers=()), None, "AddFinalizer"),
    "deleted, none": (a_vm(deleting=True), None, "RemoveFinalizer"),
    "deleted, own": (a_vm(deleting=True), RUNNING, "DeleteVmi"),
    "deleted, own going": (a_vm(deleting=True), GOING, ""),
    "deleted, foreign": (a_vm(deleting=True), FOREIGN, "RemoveFinalizer"),
    "deleted, orphan": (a_vm(deleting=True), ORPHAN, "RemoveFinalizer"),
    "orphaning, own": (a_vm(deleting=True, finalizers=ORPHANING), RUNNING, "ReleaseVmi"),
    "orphaning, own going": (a_vm(deleting=True, finalizers=ORPHANING), GOING, "ReleaseVmi"),
    "orphaning, released": (a_vm(deleting=True, finalizers=ORPHANING), ORPHAN, "RemoveFinalizer"),
    "deleted, no finalizer": (a_vm(deleting=True, finalizers=()), RUNNING, ""),
    "deleted, only foreign finalizers": (a_vm(deleting=True, finalizers=("x/y",)), RUNNING, ""),
}


@pytest.mark.parametrize(("vm", "vmi", "actions"), TABLE.values(), ids=TABLE.keys())
def test_each_world_has_its_actions(vm: VirtualMachine, vmi: VirtualMachineInstance | None, actions: str) -> None:
    plan = decide(vm_world(vm, vmi))
    assert " ".join(type(step).__name__ for step in plan.steps) == actions
    assert all(step.because for step in plan.steps)


@pytest.mark.parametrize(
    ("status", "is_evicted", "actions"),
    [
        (ACTED_ON, False, "DeleteVmi"),
        ({}, False, "WriteStatus DeleteVmi"),
        ({**ACTED_ON, "stateChangeRequests": [START]}, False, "WriteStatus DeleteVmi"),
        (ACTED_ON, True, "WriteStatus DeleteVmi"),
    ],
    ids=["it shut down", "it shut down, the strategy is new", "it shut down, its start is answered", "it was evicted"],
)
def test_the_pod_of_a_run_that_succeeded_says_if_another_follows(
    status: dict[str, Any], is_evicted: bool, actions: str
) -> None:
    """The guest may have obeyed the power button before anybody noted the eviction."""
    plan = decide(vm_world(a_vm(RERUN, **status), SUCCEEDED, is_pod_evicted=is_evicted))
    assert " ".join(type(step).__name__ for step in plan.steps) == actions
    end = "was evicted" if is_evicted else "succeeded"
    assert plan.steps[-1].because == f"run strategy is {RERUN} and the instance {end}"


@pytest.mark.parametrize(("start", "is_paused"), [(START, False), (PAUSED_START, True), (UNPAUSED_START, False)])
def test_a_run_begins_paused_if_its_start_asks_for_it(start: dict[str, Any], is_paused: bool) -> None:
    (step,) = decide(vm_world(queued("Manual", start))).steps
    assert isinstance(step, CreateVmi)
    assert step.is_paused is is_paused


def test_an_instance_that_may_be_outdated_is_read_before_a_request_counts_as_done() -> None:
    (step,) = decide(vm_world(queued("Manual", START), RUNNING, is_instance_known=False)).steps
    assert type(step).__name__ == "ConfirmVmi"


def test_an_instance_whose_delete_was_sent_is_waited_for() -> None:
    assert decide(vm_world(queued("Always", STOP), RUNNING, is_delete_sent=True)).steps == ()


@pytest.mark.parametrize("strategy", sorted({*BUILT, "WaitAsReceiver"} - {HALTED}))
@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "Scheduled", "Running", "Unknown", "WaitingForSync"])
def test_a_changed_template_stops_nothing(strategy: str, phase: str) -> None:
    """It takes effect at the next start; until then the machine runs, with the condition RestartRequired."""
    made_from_another = {TEMPLATE_HASH: "another", "kubevirt.io/vm-generation": "1"}
    vmi = a_vmi(phase, ran=True)
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations=made_from_another))
    assert decide(vm_world(a_vm(strategy, runStrategy=strategy), vmi)).steps == ()


WHY = "(EvictionByEvictionAPI: launcher Pod p on node n was evicted)"
LATE = a_condition("Synchronized", "False", "ShutdownTimedOut", "it did not obey")
NO_NETWORK = a_condition("Synchronized", "False", "NetworkNotReady", "no eth0")
LAUNCHER_FAILED = a_condition("Synchronized", "False", "LauncherFailed", "not a disk image")


@pytest.mark.parametrize(
    ("vm", "vmi", "because"),
    [
        (
            ALWAYS,
            a_vmi("Failed", ran=True, conditions=[LAUNCHER_FAILED]),
            "run strategy is Always and the instance failed (LauncherFailed: not a disk image)",
        ),
        (queued(RERUN, STOP, START, **ACTED_ON), FAILED, "run strategy is RerunOnFailure and the instance failed"),
        (
            queued(RERUN, STOP, START, **ACTED_ON),
            EVICTED,
            f"run strategy is {RERUN} and the instance was evicted {WHY}",
        ),
        (ALWAYS, EVICTED, f"run strategy is Always and the instance succeeded {WHY}"),
        (
            ALWAYS,
            a_vmi("Succeeded", ran=True, conditions=[LATE]),
            "run strategy is Always and the instance succeeded",
        ),
        (
            ALWAYS,
            a_vmi("Failed", ran=True, conditions=[LATE, DISRUPTED]),
            f"run strategy is Always and the instance failed {WHY[:-1]}; ShutdownTimedOut: it did not obey)",
        ),
        (
            ALWAYS,
            a_vmi("Succeeded", ran=True, conditions=[NO_NETWORK]),
            "run strategy is Always and the instance succeeded",
        ),
    ],
    ids=[
        "with a reason",
        "although a restart is queued, which is our own",
        "evicted",
        "evicted, Always",
        "succeeded after a trouble",
        "evicted, late",
        "a trouble that did not end it",
    ],
)
def test_the_failure_of_a_run_is_in_the_event_of_its_deletion(
    vm: VirtualMachine, vmi: VirtualMachineInstance, because: str
) -> None:
    (step,) = decide(vm_world(vm, vmi)).steps
    assert step.because == because


def test_a_long_failure_message_leaves_room_in_the_event() -> None:
    failure, evicted = (
        a_condition(kind, "True", "LauncherFailed", "x" * 10_000) for kind in ("Synchronized", "DisruptionTarget")
    )
    (step,) = decide(vm_world(a_vm(), a_vmi("Failed", ran=True, conditions=[failure, evicted]))).steps
    assert len(step.because) < 950


@pytest.mark.parametrize(("strategy", "seconds"), [("Always", 40.0), ("RerunOnFailure", 40.0), ("Once", None)], ids=str)
def test_a_failed_start_delays_the_next(strategy: str, seconds: float | None) -> None:
    failure = {"consecutiveFailCount": 3, "lastFailedVMIUID": "x", "retryAfterTimestamp": "2026-01-01T00:00:40Z"}
    plan = decide(vm_world(a_vm(strategy, startFailure=failure)))
    assert plan.requeue_after == seconds
    assert bool(plan.steps) is (seconds is None)


def test_the_delay_ends() -> None:
    failure = {"consecutiveFailCount": 3, "lastFailedVMIUID": "x", "retryAfterTimestamp": STAMP}
    assert decide(vm_world(a_vm(startFailure=failure), now=NOW - 0.5)).requeue_after == 0.5
    assert decide(vm_world(a_vm(startFailure=failure))).steps
