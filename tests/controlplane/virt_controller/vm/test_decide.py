# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about a VM, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import VM_FINALIZER

from controlplane.virt_controller.vm.decide import ORPHAN_FINALIZER, decide
from controlplane.virt_controller.vm.world import World
from tests.controlplane.virt_controller.builders import STAMP, VMI_UID, a_vm, a_vmi, vm_world

START, STOP = {"action": "Start"}, {"action": "Stop", "uid": VMI_UID}
STALE_STOP = {"action": "Stop", "uid": "an older one"}
COUNTED = {"startFailure": {"consecutiveFailCount": 1, "lastFailedVMIUID": VMI_UID, "retryAfterTimestamp": STAMP}}
ORPHANING = (VM_FINALIZER, ORPHAN_FINALIZER)


def asked(*requests: dict[str, Any]) -> dict[str, Any]:
    return {"stateChangeRequests": list(requests)}


RUNNING, GOING = a_vmi("Running", ran=True), a_vmi("Running", ran=True, deleting=True)
SUCCEEDED, FAILED = a_vmi("Succeeded", ran=True), a_vmi("Failed", ran=True)
NEVER_RAN = a_vmi("Failed")
ORPHAN, FOREIGN = a_vmi("Running", owner=None), a_vmi("Running", owner="somebody")

TABLE: dict[str, tuple[World, list[str]]] = {
    # Always
    "Always, none: create": (vm_world(a_vm()), ["CreateVmi"]),
    "Always, alive: leave": (vm_world(a_vm(), RUNNING), []),
    "Always, going: wait": (vm_world(a_vm(), GOING), []),
    "Always, delete sent: wait": (vm_world(a_vm(**asked(STOP)), RUNNING, is_delete_sent=True), []),
    "Always, succeeded: delete": (vm_world(a_vm(), SUCCEEDED), ["DeleteVmi"]),
    "Always, failed after running: delete": (vm_world(a_vm(), FAILED), ["DeleteVmi"]),
    "Always, failed before running: record first": (vm_world(a_vm(), NEVER_RAN), []),
    "Always, failed start recorded: delete": (vm_world(a_vm(**COUNTED), NEVER_RAN), ["DeleteVmi"]),
    "Always, restart asked: delete": (vm_world(a_vm(**asked(STOP, START)), RUNNING), ["DeleteVmi"]),
    "Always, stop of an older instance: leave": (vm_world(a_vm(**asked(STALE_STOP)), RUNNING), []),
    # Halted
    "Halted, none: nothing": (vm_world(a_vm("Halted")), []),
    "Halted, none, start asked: nothing": (vm_world(a_vm("Halted", **asked(START))), []),
    "Halted, alive: delete": (vm_world(a_vm("Halted"), RUNNING), ["DeleteVmi"]),
    "Halted, final: delete": (vm_world(a_vm("Halted"), SUCCEEDED), ["DeleteVmi"]),
    "Halted, going: wait": (vm_world(a_vm("Halted"), GOING), []),
    # Manual
    "Manual, none: nothing": (vm_world(a_vm("Manual")), []),
    "Manual, none, start asked: create": (vm_world(a_vm("Manual", **asked(START))), ["CreateVmi"]),
    "Manual, none, restart asked: create": (vm_world(a_vm("Manual", **asked(STOP, START))), ["CreateVmi"]),
    "Manual, alive: leave": (vm_world(a_vm("Manual"), RUNNING), []),
    "Manual, alive, stop asked: delete": (vm_world(a_vm("Manual", **asked(STOP)), RUNNING), ["DeleteVmi"]),
    "Manual, alive, start asked: done already": (vm_world(a_vm("Manual", **asked(START)), RUNNING), []),
    "Manual, final: keep": (vm_world(a_vm("Manual"), FAILED), []),
    "Manual, final, start asked: delete": (vm_world(a_vm("Manual", **asked(START)), FAILED), ["DeleteVmi"]),
    # RerunOnFailure
    "Rerun, fresh: create": (vm_world(a_vm("RerunOnFailure")), ["CreateVmi"]),
    "Rerun, acted on before: nothing": (vm_world(a_vm("RerunOnFailure", runStrategy="RerunOnFailure")), []),
    "Rerun, just switched to: create": (vm_world(a_vm("RerunOnFailure", runStrategy="Halted")), ["CreateVmi"]),
    "Rerun, succeeded: delete": (vm_world(a_vm("RerunOnFailure"), SUCCEEDED), ["DeleteVmi"]),
    "Rerun, failed: ask for the next first": (vm_world(a_vm("RerunOnFailure"), FAILED), []),
    "Rerun, failed and asked: delete": (vm_world(a_vm("RerunOnFailure", **asked(START)), FAILED), ["DeleteVmi"]),
    # Once
    "Once, none: create": (vm_world(a_vm("Once")), ["CreateVmi"]),
    "Once, final: keep": (vm_world(a_vm("Once"), SUCCEEDED), []),
    # whose it is
    "an orphan is adopted": (vm_world(a_vm(), ORPHAN), ["AdoptVmi"]),
    "an orphan is adopted before it is stopped": (vm_world(a_vm("Halted"), ORPHAN), ["AdoptVmi"]),
    "a departing orphan is waited for": (vm_world(a_vm(), a_vmi(owner=None, deleting=True)), []),
    "somebody else's is left alone": (vm_world(a_vm(), FOREIGN), []),
    "somebody else's is not stopped": (vm_world(a_vm("Halted"), FOREIGN), []),
    # finalizer and deletion
    "the finalizer comes first": (vm_world(a_vm(finalizers=())), ["AddFinalizer"]),
    "deleted, none: let go": (vm_world(a_vm(deleting=True)), ["RemoveFinalizer"]),
    "deleted, own: delete it": (vm_world(a_vm(deleting=True), RUNNING), ["DeleteVmi"]),
    "deleted, own going: wait": (vm_world(a_vm(deleting=True), GOING), []),
    "deleted, foreign: let go": (vm_world(a_vm(deleting=True), FOREIGN), ["RemoveFinalizer"]),
    "deleted, cut loose: let go": (vm_world(a_vm(deleting=True), ORPHAN), ["RemoveFinalizer"]),
    "deleted with orphan: set it free": (vm_world(a_vm(deleting=True, finalizers=ORPHANING), RUNNING), ["ReleaseVmi"]),
    "deleted with orphan, free: go": (
        vm_world(a_vm(deleting=True, finalizers=ORPHANING), ORPHAN),
        ["RemoveFinalizer"],
    ),
    "deleted, no finalizer of ours: nothing": (vm_world(a_vm(deleting=True, finalizers=()), RUNNING), []),
}


@pytest.mark.parametrize(("world", "actions"), TABLE.values(), ids=TABLE.keys())
def test_the_next_step(world: World, actions: list[str]) -> None:
    plan = decide(world)
    assert [type(one).__name__ for one in plan.steps] == actions
    assert all(one.because for one in plan.steps)


@pytest.mark.parametrize(("strategy", "seconds"), [("Always", 40.0), ("RerunOnFailure", 40.0), ("Once", None)], ids=str)
def test_a_start_that_failed_delays_the_next(strategy: str, seconds: float | None) -> None:
    failure = {"consecutiveFailCount": 3, "lastFailedVMIUID": "x", "retryAfterTimestamp": "2026-01-01T00:00:40Z"}
    plan = decide(vm_world(a_vm(strategy, startFailure=failure)))
    assert plan.look_again_in == seconds
    assert bool(plan.steps) is (seconds is None)


def test_the_delay_ends() -> None:
    failure = {"consecutiveFailCount": 3, "lastFailedVMIUID": "x", "retryAfterTimestamp": STAMP}
    assert decide(vm_world(a_vm(startFailure=failure))).steps
