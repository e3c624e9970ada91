# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next actions for a VirtualMachine: pure, a table by run strategy.

A start creates the VMI, a stop deletes it; the node shuts the guest down gracefully. One action at a time: its effect
enqueues the VM again.
"""

from __future__ import annotations

from kubevirt_api.condition_types import DISRUPTION_TARGET, SYNCHRONIZED
from kubevirt_api.names import VM_FINALIZER
from kubevirt_api.run_strategies import ALWAYS, HALTED, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import FAILED, SUCCEEDED, is_final
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.plan import Plan, WriteStatus
from controlplane.virt_controller.vm import data_volumes
from controlplane.virt_controller.vm.live_change import find_change
from controlplane.virt_controller.vm.start_failure import is_failed_start, is_recorded, seconds_to_wait
from controlplane.virt_controller.vm.state_change_requests import (
    has_answered_start,
    has_stale_stop,
    is_next_paused,
    needs_pod,
    needs_rerun_request,
    why_drop,
)
from controlplane.virt_controller.vm.world import (
    Action,
    AddFinalizer,
    AdoptVmi,
    ChangeVmi,
    ConfirmPod,
    ConfirmVmi,
    CreateVmi,
    DeleteVmi,
    DropRequest,
    Ownership,
    ReleaseVmi,
    RemoveFinalizer,
    SetRunStrategyAlways,
    World,
)

ORPHAN_FINALIZER = "orphan"
"""The API server sets it on an object that is deleted with propagation Orphan."""

WORDS = 400
"""Characters of a message of the VMI in an Event, which has two at most. An Event's limit is 1024."""


def decide(world: World) -> Plan[Action]:
    """Choose the next actions."""
    if world.is_vm_deleting:
        return _end(world)
    if not world.is_strategy_known:
        return Plan()  # an unknown strategy does nothing; the status reports it
    first = _first(world)
    if first is not None:
        return Plan((first,))
    plan: Plan[Action] = Plan() if world.own is None else _with_instance(world, world.own)
    if plan.steps:
        return plan  # before DataVolumes: a refused one must not keep the machine from stopping
    step = data_volumes.next_data_volume_action(world, is_to_run=world.own is not None or why_start(world) is not None)
    if step is not None:
        return Plan((step,))
    return _without_instance(world) if world.own is None else plan


def _first(world: World) -> Action | None:
    """Return the action that has to come before any start or stop; None if there is none."""
    if VM_FINALIZER not in world.vm.metadata.finalizers:
        return AddFinalizer(because="its instance must be deleted before it")
    if world.claim is Ownership.ORPHAN and world.vmi is not None and world.vmi.metadata.deletion_timestamp is None:
        return AdoptVmi(because="an instance of its name has no owner")
    if world.is_in_doubt:
        return ConfirmVmi(because="the cached instance is older than the request")
    because = why_drop(world)
    if because is None:
        return None
    dropped, *remaining = world.pending_requests
    return DropRequest(dropped, tuple(remaining), because)


def why_start(world: World) -> str | None:
    """Return why a missing VMI has to be created; None if it does not."""
    match world.vm.run_strategy:
        case "Always":
            return f"run strategy is {ALWAYS} and no instance exists"
        case "Once":
            return f"run strategy is {ONCE} and no instance exists"
        case "RerunOnFailure" if world.vm.status.run_strategy != RERUN_ON_FAILURE:
            return f"run strategy became {RERUN_ON_FAILURE}"
        case "Manual" | "RerunOnFailure" if world.wants_start:
            return "a start was requested"
    return None


def why_stop(world: World, own: VirtualMachineInstance) -> str | None:
    """Return why the VMI has to be deleted; None if it stays.

    A failed run is deleted because it failed, even if a stop is queued: this controller may have queued that stop.
    """
    phase, strategy = own.status.phase, world.vm.run_strategy
    match strategy:
        case "Halted":
            return f"run strategy is {HALTED}"
        case "RerunOnFailure" if phase == SUCCEEDED:
            end = "was evicted" if world.was_evicted else "succeeded"
            return f"run strategy is {RERUN_ON_FAILURE} and the instance {end}"
        case "RerunOnFailure" if phase == FAILED:
            return f"run strategy is {RERUN_ON_FAILURE} and the instance failed"
        case "Always" if is_final(phase):
            return f"run strategy is {ALWAYS} and the instance {phase.lower()}"
        case "Always" | "RerunOnFailure" | "Manual" if world.wants_stop:
            return "a stop was requested"
    return None


def _without_instance(world: World) -> Plan[Action]:
    if world.vm.run_strategy == HALTED and world.wants_start:  # other starts of a halted machine are dropped
        return Plan((SetRunStrategyAlways(because="a paused start of the halted machine was requested"),))
    because = why_start(world)
    if because is None or world.claim is not Ownership.NONE:
        # A foreign or terminating VMI has the name. The status reports it; its deletion enqueues the VM.
        return Plan()
    delay = seconds_to_wait(world)
    if delay > 0:
        return Plan(requeue_after=delay)
    if not data_volumes.is_ready(world):
        return Plan()  # their changes enqueue the VM
    create = CreateVmi(because, is_paused=is_next_paused(world))
    if has_stale_stop(world):
        return Plan((WriteStatus("a stop that is done must not stop the next instance"), create))
    return Plan((create,))


def _with_instance(world: World, own: VirtualMachineInstance) -> Plan[Action]:
    because = why_stop(world, own)
    if world.is_stopping:
        return Plan()
    if needs_pod(world, own):
        return Plan(
            (ConfirmPod(because="a run that was evicted is followed by another, a guest that shut down is not"),)
        )
    if because is None:
        patch = find_change(world)
        return Plan() if patch is None else Plan((ChangeVmi(patch, because="its template has changed"),))
    delete = DeleteVmi(f"{because}{_end_text(own)}")
    first = _record_first(world, own)
    return Plan((delete,) if first is None else (WriteStatus(first), delete))


def _record_first(world: World, own: VirtualMachineInstance) -> str | None:
    """Return what the status has to record before the VMI is deleted; None if nothing. Only the VMI shows it."""
    if is_failed_start(world, own) and not is_recorded(world, own):
        return "the failed start is counted before its instance is deleted"
    if needs_rerun_request(world, own):
        return "the next run is requested before the failed instance is deleted"
    if has_answered_start(world):
        return "the start that created this instance must not create another"
    if world.vm.run_strategy == RERUN_ON_FAILURE != world.vm.status.run_strategy:
        return "the strategy has taken effect: the next start is not its first"
    return None


def _end(world: World) -> Plan[Action]:
    finalizers = world.vm.metadata.finalizers
    if VM_FINALIZER not in finalizers:
        return Plan()
    if ORPHAN_FINALIZER in finalizers and world.own is not None:
        # The garbage collector cannot do this. While it discovers a new kind, it may see the VM before the VMI, find
        # nothing to orphan, and then delete the VMI because its owner is gone.
        return Plan((ReleaseVmi(because="its VM is deleted and orphans it"),))
    if world.own is None:
        return Plan((RemoveFinalizer(because="it is deleted and has no instance"),))
    if world.is_stopping:
        return Plan()
    return Plan((DeleteVmi(because="its VM is deleted"),))


def _end_text(own: VirtualMachineInstance) -> str:
    """Return why a run ended: its VMI, which reports that, is about to be deleted."""
    kinds = (DISRUPTION_TARGET, SYNCHRONIZED) if own.status.phase == FAILED else (DISRUPTION_TARGET,)
    found = (conditions.find(own.status.conditions, kind) for kind in kinds)
    causes = [f"{condition.reason}: {condition.message[:WORDS]}" for condition in found if condition is not None]
    return f" ({'; '.join(causes)})" if causes else ""
