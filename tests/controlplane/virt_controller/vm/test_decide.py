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
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.decide import ORPHAN_FINALIZER, decide
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import STAMP, VM_UID, VMI_UID, a_condition, a_vm, a_vmi, vm_world

START, STOP = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}
STALE_STOP = {"action": "Stop", "uid": "an older one"}
COUNTED = {"startFailure": {"consecutiveFailCount": 1, "lastFailedVMIUID": VMI_UID, "retryAfterTimestamp": STAMP}}
COUNTED_BEFORE = {"startFailure": {**COUNTED["startFailure"], "lastFailedVMIUID": "the one before"}}
ACTED_ON = {"runStrategy": "RerunOnFailure"}
ORPHANING = (VM_FINALIZER, ORPHAN_FINALIZER)


def also_owned(vmi: VirtualMachineInstance) -> VirtualMachineInstance:
    """Add the VM as a second owner that is no controller."""
    listed = (OwnerReference(kind="VirtualMachine", name="web", uid=VM_UID), *vmi.metadata.owner_references)
    return msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, owner_references=listed))


def asked(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"stateChangeRequests": list(requests)}


RUNNING, GOING = a_vmi("Running", ran=True), a_vmi("Running", ran=True, deleting=True)
SUCCEEDED, FAILED = a_vmi("Succeeded", ran=True), a_vmi("Failed", ran=True)
NEVER_RAN = a_vmi("Failed")
ORPHAN, FOREIGN = a_vmi("Running", owner=None), a_vmi("Running", owner="somebody")
LISTED, LISTED_FOREIGN = also_owned(ORPHAN), also_owned(FOREIGN)
PAUSED_START = {"action": "Start", "data": {"paused": "true"}}
PAUSED_NOW = {"action": "Start", "data": {"paused": "true", "generation": "3"}}
UNPAUSED_START = {"action": "Start", "data": {"paused": "false"}}
ODD_START = {"action": "Start", "data": {"onTheMoon": "yes"}}

TABLE: dict[str, tuple[World, list[str]]] = {
    # Always
    "Always, none: create": (vm_world(a_vm()), ["CreateVmi"]),
    "Always, alive: leave": (vm_world(a_vm(), RUNNING), []),
    "Always, going: wait": (vm_world(a_vm(), GOING), []),
    "Always, delete sent: wait": (vm_world(a_vm(**asked(STOP)), RUNNING, is_delete_sent=True), []),
    "Always, succeeded: delete": (vm_world(a_vm(), SUCCEEDED), ["DeleteVmi"]),
    "Always, failed after running: delete": (vm_world(a_vm(), FAILED), ["DeleteVmi"]),
    "Always, failed before running: record first": (vm_world(a_vm(), NEVER_RAN), ["WriteStatus", "DeleteVmi"]),
    "Always, ended by a person before running: wait": (vm_world(a_vm(), a_vmi("Failed", deleting=True)), []),
    "Always, an unknown phase: leave": (vm_world(a_vm(), a_vmi("WaitingForSync")), []),
    "Always, failed before running, after another: record first": (
        vm_world(a_vm(**COUNTED_BEFORE), NEVER_RAN),
        ["WriteStatus", "DeleteVmi"],
    ),
    "Always, failed start recorded: delete": (vm_world(a_vm(**COUNTED), NEVER_RAN), ["DeleteVmi"]),
    "Always, restart asked: delete": (vm_world(a_vm(**asked(STOP, START)), RUNNING), ["DeleteVmi"]),
    "Always, stop of an older instance: leave": (vm_world(a_vm(**asked(STALE_STOP)), RUNNING), []),
    # Halted
    "Halted, none: nothing": (vm_world(a_vm("Halted")), []),
    "Halted, none, start asked: drop": (vm_world(a_vm("Halted", **asked(START))), ["DropRequest"]),
    "Halted, none, restart asked: drop": (vm_world(a_vm("Halted", **asked(STOP, START))), ["DropRequest"]),
    "Halted, alive, restart asked: delete": (vm_world(a_vm("Halted", **asked(STOP, START)), RUNNING), ["DeleteVmi"]),
    "Halted, alive: delete": (vm_world(a_vm("Halted"), RUNNING), ["DeleteVmi"]),
    "Halted, final: delete": (vm_world(a_vm("Halted"), SUCCEEDED), ["DeleteVmi"]),
    "Halted, going: wait": (vm_world(a_vm("Halted"), GOING), []),
    # Manual
    "Manual, none: nothing": (vm_world(a_vm("Manual")), []),
    "Manual, none, start asked: create": (vm_world(a_vm("Manual", **asked(START))), ["CreateVmi"]),
    "Manual, none, restart asked: create": (vm_world(a_vm("Manual", **asked(STOP, START))), ["CreateVmi"]),
    "Manual, none, any stop done, start asked: trim first": (
        vm_world(a_vm("Manual", **asked({"action": "Stop"}, START))),
        ["WriteStatus", "CreateVmi"],
    ),
    "Manual, alive: leave": (vm_world(a_vm("Manual"), RUNNING), []),
    "Manual, alive, stop asked: delete": (vm_world(a_vm("Manual", **asked(STOP)), RUNNING), ["DeleteVmi"]),
    "Manual, alive, start asked: done already": (vm_world(a_vm("Manual", **asked(START)), RUNNING), []),
    "Manual, final: keep": (vm_world(a_vm("Manual"), FAILED), []),
    "Manual, final, start asked: done already": (vm_world(a_vm("Manual", **asked(START)), FAILED), []),
    "Manual, final, another start asked: delete": (
        vm_world(a_vm("Manual", **asked(STOP, START)), FAILED),
        ["DeleteVmi"],
    ),
    "Manual, going, start asked: wait": (vm_world(a_vm("Manual", **asked(START)), GOING), []),
    "Manual, alive, start answered, stop asked: trim first": (
        vm_world(a_vm("Manual", **asked(START, STOP)), RUNNING),
        ["WriteStatus", "DeleteVmi"],
    ),
    # RerunOnFailure
    "Rerun, fresh: create": (vm_world(a_vm("RerunOnFailure")), ["CreateVmi"]),
    "Rerun, acted on before: nothing": (vm_world(a_vm("RerunOnFailure", runStrategy="RerunOnFailure")), []),
    "Rerun, acted on before, start asked: create": (
        vm_world(a_vm("RerunOnFailure", **asked(START), **ACTED_ON)),
        ["CreateVmi"],
    ),
    "Rerun, just switched to: create": (vm_world(a_vm("RerunOnFailure", runStrategy="Halted")), ["CreateVmi"]),
    "Rerun, switched to from Always: create": (vm_world(a_vm("RerunOnFailure", runStrategy="Always")), ["CreateVmi"]),
    "Rerun, succeeded: delete": (vm_world(a_vm("RerunOnFailure", **ACTED_ON), SUCCEEDED), ["DeleteVmi"]),
    "Rerun, just switched to, succeeded: record first": (
        vm_world(a_vm("RerunOnFailure"), SUCCEEDED),
        ["WriteStatus", "DeleteVmi"],
    ),
    "Rerun, just switched to, stop asked: record first": (
        vm_world(a_vm("RerunOnFailure", **asked(STOP)), RUNNING),
        ["WriteStatus", "DeleteVmi"],
    ),
    "Rerun, failed: ask for the next first": (vm_world(a_vm("RerunOnFailure"), FAILED), ["WriteStatus", "DeleteVmi"]),
    "Rerun, acted on before, failed: ask for the next first": (
        vm_world(a_vm("RerunOnFailure", **ACTED_ON), FAILED),
        ["WriteStatus", "DeleteVmi"],
    ),
    "Rerun, failed, stop asked: delete": (
        vm_world(a_vm("RerunOnFailure", **asked(STOP), **ACTED_ON), FAILED),
        ["DeleteVmi"],
    ),
    "Rerun, failed and another asked: delete": (
        vm_world(a_vm("RerunOnFailure", **asked(STOP, START), **ACTED_ON), FAILED),
        ["DeleteVmi"],
    ),
    "Rerun, start answered, failed: ask for the next first": (
        vm_world(a_vm("RerunOnFailure", **asked(START), **ACTED_ON), FAILED),
        ["WriteStatus", "DeleteVmi"],
    ),
    "Rerun, start answered, succeeded: trim first": (
        vm_world(a_vm("RerunOnFailure", **asked(START), **ACTED_ON), SUCCEEDED),
        ["WriteStatus", "DeleteVmi"],
    ),
    # Once
    "Once, none: create": (vm_world(a_vm("Once")), ["CreateVmi"]),
    "Once, final: keep": (vm_world(a_vm("Once"), SUCCEEDED), []),
    "Once, failed: keep": (vm_world(a_vm("Once"), FAILED), []),
    "Once, none, start asked: create": (vm_world(a_vm("Once", **asked(START))), ["CreateVmi"]),
    "Once, final, start asked: done already": (vm_world(a_vm("Once", **asked(START)), SUCCEEDED), []),
    "Once, alive, stop asked: drop": (vm_world(a_vm("Once", **asked(STOP)), RUNNING), ["DropRequest"]),
    # requests that no strategy can carry out
    "Manual, paused start asked: create": (vm_world(a_vm("Manual", **asked(PAUSED_START))), ["CreateVmi"]),
    "Manual, start not paused asked: create": (vm_world(a_vm("Manual", **asked(UNPAUSED_START))), ["CreateVmi"]),
    "Manual, start with an unknown option asked: drop": (vm_world(a_vm("Manual", **asked(ODD_START))), ["DropRequest"]),
    "Rerun, paused start asked: create": (vm_world(a_vm("RerunOnFailure", **asked(PAUSED_START))), ["CreateVmi"]),
    "Halted, paused start asked: drop": (vm_world(a_vm("Halted", **asked(PAUSED_START))), ["DropRequest"]),
    "Halted, paused start asked when it was so: switch on": (
        vm_world(a_vm("Halted", **asked(PAUSED_NOW))),
        ["SetRunStrategyAlways"],
    ),
    "Halted, the same, an instance goes: wait": (vm_world(a_vm("Halted", **asked(STOP, PAUSED_NOW)), GOING), []),
    "Always, failed paused start: ask for the next first": (
        vm_world(a_vm(**COUNTED), a_vmi("Failed", spec={"startStrategy": "Paused"})),
        ["WriteStatus", "DeleteVmi"],
    ),
    "Manual, nonsense asked: drop": (vm_world(a_vm("Manual", **asked({"action": "Dance"}))), ["DropRequest"]),
    # a strategy of a newer API
    "unknown strategy, none: nothing": (vm_world(a_vm("WaitAsReceiver")), []),
    "unknown strategy, alive: leave": (vm_world(a_vm("WaitAsReceiver"), RUNNING), []),
    "unknown strategy, final: leave": (vm_world(a_vm("WaitAsReceiver"), FAILED), []),
    "unknown strategy, orphan: leave": (vm_world(a_vm("WaitAsReceiver"), ORPHAN), []),
    "unknown strategy, start asked: leave": (vm_world(a_vm("WaitAsReceiver", **asked(START))), []),
    "unknown strategy, stop asked: leave": (vm_world(a_vm("WaitAsReceiver", **asked(STOP)), RUNNING), []),
    "unknown strategy, deleted: delete it": (vm_world(a_vm("WaitAsReceiver", deleting=True), RUNNING), ["DeleteVmi"]),
    # ownership
    "an orphan is adopted": (vm_world(a_vm(), ORPHAN), ["AdoptVmi"]),
    "an orphan is adopted before it is stopped": (vm_world(a_vm("Halted"), ORPHAN), ["AdoptVmi"]),
    "a departing orphan is waited for": (vm_world(a_vm(), a_vmi(owner=None, deleting=True)), []),
    "somebody else's is left alone": (vm_world(a_vm(), FOREIGN), []),
    "one that merely lists the VM as owner is an orphan": (vm_world(a_vm(), LISTED), ["AdoptVmi"]),
    "one that merely lists the VM as owner is somebody else's": (vm_world(a_vm("Halted"), LISTED_FOREIGN), []),
    "somebody else's is not stopped": (vm_world(a_vm("Halted"), FOREIGN), []),
    # finalizer and deletion
    "the finalizer comes first": (vm_world(a_vm(finalizers=())), ["AddFinalizer"]),
    "deleted, none: let go": (vm_world(a_vm(deleting=True)), ["RemoveFinalizer"]),
    "deleted, own: delete it": (vm_world(a_vm(deleting=True), RUNNING), ["DeleteVmi"]),
    "deleted, own going: wait": (vm_world(a_vm(deleting=True), GOING), []),
    "deleted, foreign: let go": (vm_world(a_vm(deleting=True), FOREIGN), ["RemoveFinalizer"]),
    "deleted, cut loose: let go": (vm_world(a_vm(deleting=True), ORPHAN), ["RemoveFinalizer"]),
    "deleted with orphan: set it free": (vm_world(a_vm(deleting=True, finalizers=ORPHANING), RUNNING), ["ReleaseVmi"]),
    "deleted with orphan, own going: set it free all the same": (
        vm_world(a_vm(deleting=True, finalizers=ORPHANING), GOING),
        ["ReleaseVmi"],
    ),
    "deleted with orphan, free: go": (vm_world(a_vm(deleting=True, finalizers=ORPHANING), ORPHAN), ["RemoveFinalizer"]),
    "deleted, no finalizer of ours: nothing": (vm_world(a_vm(deleting=True, finalizers=()), RUNNING), []),
    "deleted, finalizers of others only: nothing": (vm_world(a_vm(deleting=True, finalizers=("x/y",)), RUNNING), []),
}


@pytest.mark.parametrize(("world", "actions"), TABLE.values(), ids=TABLE.keys())
def test_each_world_has_its_actions(world: World, actions: list[str]) -> None:
    plan = decide(world)
    assert [type(step).__name__ for step in plan.steps] == actions
    assert all(step.because for step in plan.steps)


@pytest.mark.parametrize("strategy", sorted({*BUILT, "WaitAsReceiver"} - {HALTED}))
@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "Scheduled", "Running", "Unknown", "WaitingForSync"])
def test_a_changed_template_stops_nothing(strategy: str, phase: str) -> None:
    """It takes effect at the next start; until then the machine runs, with the condition RestartRequired."""
    made_from_another = {TEMPLATE_HASH: "another", "kubevirt.io/vm-generation": "1"}
    vmi = a_vmi(phase, ran=True)
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, annotations=made_from_another))
    assert decide(vm_world(a_vm(strategy, runStrategy=strategy), vmi)).steps == ()


def test_the_reason_of_a_failed_run_is_in_the_event_of_its_deletion() -> None:
    failure = a_condition("Synchronized", "False", "LauncherFailed", "not a disk image")
    (step,) = decide(vm_world(a_vm(), a_vmi("Failed", ran=True, conditions=[failure]))).steps
    assert step.because == "run strategy is Always and the instance failed (LauncherFailed: not a disk image)"


def test_a_failed_run_is_deleted_because_it_failed_although_a_restart_is_queued() -> None:
    """The stop that names it is our own; the Event has to say why the machine was restarted."""
    (step,) = decide(vm_world(a_vm("RerunOnFailure", **asked(STOP, START), **ACTED_ON), FAILED)).steps
    assert step.because == "run strategy is RerunOnFailure and the instance failed"


def test_a_long_failure_message_leaves_room_in_the_event() -> None:
    failure = a_condition("Synchronized", "False", "LauncherFailed", "x" * 10_000)
    (step,) = decide(vm_world(a_vm(), a_vmi("Failed", ran=True, conditions=[failure]))).steps
    assert len(step.because) < 700


def test_a_stop_stays_queued_while_its_instance_is_about_to_be_adopted() -> None:
    orphan = vm_world(a_vm("Manual", **asked(STOP)), ORPHAN)
    assert [request.action for request in orphan.pending_requests] == ["Stop"]
    assert vm_world(a_vm("Manual", **asked(STOP)), FOREIGN).pending_requests == ()


@pytest.mark.parametrize(("strategy", "seconds"), [("Always", 40.0), ("RerunOnFailure", 40.0), ("Once", None)], ids=str)
def test_a_failed_start_delays_the_next(strategy: str, seconds: float | None) -> None:
    failure = {"consecutiveFailCount": 3, "lastFailedVMIUID": "x", "retryAfterTimestamp": "2026-01-01T00:00:40Z"}
    plan = decide(vm_world(a_vm(strategy, startFailure=failure)))
    assert plan.requeue_after == seconds
    assert bool(plan.steps) is (seconds is None)


def test_the_delay_ends() -> None:
    failure = {"consecutiveFailCount": 3, "lastFailedVMIUID": "x", "retryAfterTimestamp": STAMP}
    assert decide(vm_world(a_vm(startFailure=failure))).steps
