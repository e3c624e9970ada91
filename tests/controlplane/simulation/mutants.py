# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bugs are planted where. The simulation must find every one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from controlplane.domain import agent as agent_words
from controlplane.domain.state import State
from controlplane.engine import reconcile as engine
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.engine.work_queue import WorkQueue
from controlplane.kube.cache import Store
from controlplane.virt_controller.quarantine import decide as quarantine_decide
from controlplane.virt_controller.replicaset.memory import Memories as SetMemories
from controlplane.virt_controller.vm import reconciler as vm_module
from controlplane.virt_controller.vm import world as vm_world
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi import controller_state, next_attempt, status
from controlplane.virt_controller.vmi import decide as vmi_decide
from controlplane.virt_controller.vmi import reconciler as vmi_module
from controlplane.virt_controller.vmi import world as vmi_world
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.launchers.agent import Agent
from controlplane.virt_handler.launchers.freeze import Freeze
from controlplane.virt_handler.node_recovery import orphans
from controlplane.virt_handler.node_recovery.recovery import NodeRecovery
from controlplane.virt_handler.vmi import decide as handler_decide
from controlplane.virt_handler.vmi import liveness as verdict
from controlplane.virt_handler.vmi import reconciler as handler_module
from controlplane.virt_handler.vmi import world as handler_world
from controlplane.virt_handler.vmi.controller_state import ControllerState as HandlerMemories
from tests.controlplane.simulation import (
    planted,
    planted_agents,
    planted_attempts,
    planted_lateness,
    planted_memory,
    planted_returns,
)
from tests.controlplane.simulation.controller import vm_reconciler, vmi_reconciler
from tests.controlplane.simulation.run import Failure, Simulation


@dataclass(frozen=True, slots=True)
class Mutant:
    vms: type[VmReconciler] = VmReconciler
    vmis: type[VmiReconciler] = VmiReconciler
    handler: type[handler_module.VmiReconciler] = handler_module.VmiReconciler
    swapped: tuple[tuple[Any, str, Any], ...] = ()
    """(module or class, name, what is there instead)."""

    def build(self, **parts: Any) -> tuple[VmReconciler, VmiReconciler]:
        return vm_reconciler(self.vms, **parts), vmi_reconciler(self.vmis, **parts)


def failure_of(mutant: Mutant, seed: int, steps: int) -> str | None:
    """Run with the bug in place; return how it was found, or None."""
    with _swapped(mutant.swapped):
        try:
            Simulation(seed, mutant.build, mutant.handler).run(steps)
        except Failure as failure:
            return str(failure)
    return None


@contextmanager
def _swapped(swaps: tuple[tuple[Any, str, Any], ...]) -> Iterator[None]:
    before = [(where, name, where.__dict__[name]) for where, name, _unused in swaps]
    try:
        for where, name, instead in swaps:
            setattr(where, name, instead)
        yield
    finally:
        for where, name, was in before:
            setattr(where, name, was)


MUTANTS: dict[str, Mutant] = {
    "random Pod names": Mutant(vmis=planted.RandomPodNames),
    "no attempt written before the create": Mutant(vmis=planted.NoAttemptWritten),
    "VMI's finalizer dropped before its Pod is gone": Mutant(vmis=planted.LetsGoTooEarly),
    "VMI's finalizer never dropped": Mutant(vmis=planted.NeverLetsGo),
    "VMI's finalizer not set": Mutant(vmis=planted.TakesNoHold),
    "a live run's Pod deleted": Mutant(vmis=planted.KillsPodsOfLiveRuns),
    "Pod deleted by name with a fresh UID": Mutant(vmis=planted.DeletesByName),
    "absence of Pods believed without a quorum read": Mutant(vmis=planted.BelievesItsCache),
    "every Node taken for gone": Mutant(swapped=((controller_state.VmiState, "judge_node", planted.every_node_gone),)),
    "404 of a Pod taken for death": Mutant(swapped=((vmi_world, "weigh_evidence", planted.dead_when_absent),)),
    "Pod that only mentions the VMI taken for its own": Mutant(
        swapped=((vmi_module, "is_controlled", planted.mentioned),)
    ),
    "a second attempt's Pod granted": Mutant(vmis=planted.GrantsAgain),
    "VMI's status written without resourceVersion": Mutant(vmis=planted.StatusOfVmiBlindly),
    "VMI's status written all the time": Mutant(vmis=planted.StatusAllTheTime),
    "VMI deleted without resourceVersion": Mutant(vms=planted.StopsOrphans),
    "no alarm for the back-off": Mutant(vms=planted.SleepsThroughTheBackOff),
    "VM's status written without resourceVersion": Mutant(vms=planted.StatusOfVmBlindly),
    "VM's finalizer dropped without a quorum read": Mutant(vms=planted.LetsGoOfVmBlindly),
    "adoption without reading the VM": Mutant(vms=planted.AdoptsBlindly),
    "VMI that only mentions the VM taken for its own": Mutant(
        swapped=((vm_world, "ownership_of", planted.any_owner), (vm_module, "ownership_of", planted.any_owner))
    ),
    "instance replaced when the VM changes": Mutant(vms=planted.RestartsOnChange),
    "Once runs again": Mutant(vms=planted.StartsOnceAgain),
    "Manual starts unasked": Mutant(vms=planted.StartsUnasked),
    "requests dropped silently": Mutant(vms=planted.ForgetsRequests),
    "tried again for ever": Mutant(swapped=((next_attempt, "max_further_attempts", planted_attempts.without_end),)),
    "a machine's own fault tried on another node": Mutant(
        swapped=(
            (status, "find_retriable_failure", planted_attempts.whatever_it_was),
            (vmi_decide, "find_retriable_failure", planted_attempts.whatever_it_was),
        )
    ),
    "a node marked for one machine": Mutant(swapped=((quarantine_decide, "MACHINES", 1),)),
    "nodes never marked": Mutant(swapped=((quarantine_decide, "WINDOW_SECONDS", 0.0),)),
    "start without a grant": Mutant(handler=planted.StartsWithoutGrant),
    "start in whatever state": Mutant(
        swapped=(
            (handler_module, "refuse_start", planted.never_refused),
            (handler_decide, "refuse_start", planted.never_refused),
        )
    ),
    "guest ended whose VMI is not seen": Mutant(handler=planted.EndsOrphansUnasked),
    "nobody asked whose a node's guests are": Mutant(swapped=((NodeRecovery, "_ask", planted_returns.asks_nobody),)),
    "a silence of the node forgotten": Mutant(
        swapped=(
            (NodeRecovery, "_is_to_ask", property(lambda clearing: clearing._asked_at is None)),
            (NodeRecovery, "_silent_in", lambda _unused: 60.0),
        )
    ),
    "virt-handler writes without resourceVersion": Mutant(handler=planted.HandlerWritesBlindly),
    "lost contact taken for death": Mutant(
        swapped=((verdict, "judge", planted.dead_when_silent), (handler_decide, "judge", planted.dead_when_silent))
    ),
    "node searched too briefly": Mutant(swapped=((handler_world.Traces, "is_clean", property(lambda _unused: True)),)),
    "Running from a provisional look": Mutant(swapped=((State, "is_starting", property(lambda _unused: False)),)),
    "an agent's word without bounds": Mutant(swapped=((agent_words, "text", planted_agents.unbounded),)),
    "an agent that is gone remembered": Mutant(swapped=((Agent, "_tell", planted_agents.remembered),)),
    "no end of a freeze": Mutant(swapped=((Freeze, "_left", planted_agents.never_over),)),
    "thawed at once": Mutant(swapped=((Freeze, "_left", planted_agents.over_at_once),)),
    "an alarm forgotten": Mutant(swapped=((WorkQueue, "finish", planted_lateness.alarm_forgotten),)),
    "a change put off until the alarm": Mutant(swapped=((WorkQueue, "add", planted_lateness.put_off),)),
    "Pods and VMIs deleted again and again": Mutant(
        swapped=((ReadYourWritesCache, "is_delete_sent", planted_lateness.never_sent),)
    ),
    "an older answer after a newer one": Mutant(
        swapped=((ReadYourWritesCache, "_take", planted_memory.whichever_comes_last),)
    ),
    "NotFound not taken for an answer": Mutant(
        swapped=((ReadYourWritesCache, "note_absence", planted_memory.nothing_noted),)
    ),
    "what is gone brought back by an answer": Mutant(
        swapped=((ReadYourWritesCache, "asking", planted_memory.without_memory),)
    ),
    "an older state in a cache": Mutant(swapped=((Store, "_is_passed", planted_memory.never_passed),)),
    "steps in vain given up": Mutant(swapped=((engine, "_without_progress", planted_memory.content),)),
    "a machine taken for the former one of its name": Mutant(
        swapped=((controller_state.ControllerState, "of", planted_memory.of_whoever_has_the_name),)
    ),
    "a set current after a lost answer": Mutant(swapped=((SetMemories, "note_writing", planted_memory.nothing_noted),)),
    "an orphan down while it is started": Mutant(
        swapped=((orphans, "_is_down", planted_memory.down_while_it_is_started),)
    ),
    "an orphan ended too early": Mutant(swapped=((handler_decide, "ORPHAN_SECONDS", 15.0),)),
    "an orphan never ended": Mutant(swapped=((HandlerMemories, "orphaned_since", planted_memory.since_now),)),
    "final phases left again": Mutant(
        swapped=((status, "is_final", lambda _unused: False), (status, "is_allowed_transition", lambda *_unused: True))
    ),
}
