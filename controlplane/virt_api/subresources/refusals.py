# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a VM refuses a start, stop or restart in its present state, and what to do instead. Pure.

Each text begins with upstream's words, which scripts and consoles look for. Its remedy works in that state.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.condition_types import SYNCHRONIZED
from kubevirt_api.run_strategies import ALWAYS, HALTED, MANUAL, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import FAILED, RUNNING, UNKNOWN, is_alive
from controlplane.api.objects.state_change_requests import pending, switches_on
from controlplane.api.objects.vm import StateChangeRequest, VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

MESSAGE_LIMIT = 640
"""Characters of the instance's message, which says how its end can be proven."""
_RUNNING, _NOT_RUNNING = "VM is already running", "VM is not running"
_NO_START, _NO_RESTART = "does not support manual start requests", "does not support manual restart requests"
_BY_ITSELF = "it starts by itself; if it does not, its conditions say why"
_START_LATER = "start it when that is done"
_STOPPING = f"{_RUNNING}, and stopping; {_START_LATER}"
_STOP_THEN_START = "stop it, then start it (its run strategy is Always from then on)"


@dataclass(frozen=True, slots=True)
class Machine:
    """A VM, its run strategy and its instance."""

    vm: VirtualMachine
    strategy: str
    vmi: VirtualMachineInstance | None
    """Its own; None when there is none, or another object controls it."""

    @property
    def alive(self) -> VirtualMachineInstance | None:
        """The instance unless its phase is final, also while it is being deleted."""
        return self.vmi if self.vmi is not None and is_alive(self.vmi.status.phase) else None

    @property
    def is_deleting(self) -> bool:
        return self.vmi is not None and self.vmi.metadata.deletion_timestamp is not None

    @property
    def pending(self) -> tuple[StateChangeRequest, ...]:
        """The requests that are not carried out yet. One that is done may still be in the queue."""
        queue = self.vm.status.state_change_requests
        if self.vmi is None:
            return pending(queue, uid=None, is_own=False)
        meta = self.vmi.metadata
        # An instance without a controller is going to be adopted unless it is being deleted.
        is_own = any(owner.controller for owner in meta.owner_references) or not self.is_deleting
        return pending(queue, uid=meta.uid, is_own=is_own)

    @property
    def pending_action(self) -> str:
        """The action that is being carried out, e.g. "restart"; "" when none is."""
        actions = [request.action for request in self.pending]
        if not actions:
            return ""
        return "restart" if actions[0] == "Stop" and "Start" in actions else actions[0][:64].lower()

    @property
    def is_switching_on(self) -> bool:
        """It is halted, and a pending paused start is about to change its run strategy."""
        starts = [request for request in self.pending if request.action == "Start"]
        return self.strategy == HALTED and any(switches_on(start, self.vm.metadata.generation) for start in starts)

    @property
    def is_failed(self) -> bool:
        """Its instance failed and still exists."""
        return self.vmi is not None and self.vmi.status.phase == FAILED and not self.is_deleting

    @property
    def will_start(self) -> bool:
        """A start is pending, or follows from the run strategy. Meaningful only without a live instance."""
        if any(request.action == "Start" for request in self.pending):
            return True
        if self.vmi is None or self.is_deleting:
            return self.is_new_strategy
        return self.strategy == RERUN_ON_FAILURE and self.is_failed and not self.pending_action

    @property
    def is_new_strategy(self) -> bool:
        """virt-controller has not acted on RerunOnFailure yet; it then starts a VM without an instance once."""
        return self.strategy == RERUN_ON_FAILURE != self.vm.status.run_strategy


def why_no_start(machine: Machine) -> str | None:  # noqa: PLR0911 - a table
    """Return why a start is refused; None when it is not."""
    if machine.is_switching_on:
        return _busy(machine)
    if machine.strategy == HALTED:
        return _STOPPING if machine.alive else None
    if machine.pending_action and machine.strategy != ONCE:
        return _busy(machine)
    if machine.alive and not machine.is_deleting:
        return _running(machine, machine.alive)
    if machine.strategy == ONCE and machine.vmi is not None and not machine.is_deleting:
        return f"{ONCE} {_NO_START} and its one run is over; {_STOP_THEN_START}"
    if machine.strategy in {ALWAYS, ONCE}:
        return f"{machine.strategy} {_NO_START}; {_BY_ITSELF}"
    if machine.alive:
        return _STOPPING
    if machine.strategy == RERUN_ON_FAILURE and machine.is_failed:
        return f"{RERUN_ON_FAILURE} does not support starting VM from failed state; {_BY_ITSELF}"
    return None


def why_no_restart(machine: Machine) -> str | None:
    """Return why a restart is refused; None when it is not."""
    if machine.is_switching_on:
        return _busy(machine)
    if machine.strategy == HALTED:
        then = f"VM is stopping; {_START_LATER}" if machine.alive else f"{_NOT_RUNNING}; start it"
        return f"{HALTED} {_NO_RESTART}; {then}"
    if machine.strategy == ONCE:
        ends = machine.vmi is None or machine.is_deleting
        return f"{ONCE} {_NO_RESTART}; {_BY_ITSELF if ends else _STOP_THEN_START}"
    if machine.pending_action:
        return _busy(machine)
    if machine.vmi is None:
        return f"{_NOT_RUNNING}; {_BY_ITSELF if machine.strategy == ALWAYS else 'start it'}"
    return None


def why_no_stop(machine: Machine) -> str | None:
    """Return why a stop that shortens no grace period is refused; None when it is not."""
    if machine.is_switching_on and machine.alive is None:
        return None
    if machine.strategy == HALTED:
        if machine.alive is None:
            return _NOT_RUNNING
        hurry = ", which hurries it" if machine.alive.spec.grace_period_seconds > 0 else ""
        return f"{HALTED} only supports manual stop requests with a shorter graceperiod{hurry}; VM is stopping already"
    queues = machine.strategy in {MANUAL, RERUN_ON_FAILURE}
    return _NOT_RUNNING if queues and machine.alive is None and not machine.will_start else None


def unknown_phase_note(machine: Machine) -> str:
    """Return the end of a refusal: what an instance in phase Unknown waits for; "" in any other phase."""
    if machine.alive is None or machine.alive.status.phase != UNKNOWN:
        return ""
    condition = conditions.find(machine.alive.status.conditions, SYNCHRONIZED)
    because = (
        condition.message[:MESSAGE_LIMIT]
        if condition is not None and condition.message
        else "its conditions may say why"
    )
    return f". Its instance is Unknown: {because}"


def _running(machine: Machine, alive: VirtualMachineInstance) -> str:
    if alive.status.phase == UNKNOWN:
        then = (
            _STOP_THEN_START
            if machine.strategy == ONCE
            else "restart it to have it started again once it is known to have ended"
        )
        return f"the machine may still run and is never started twice; {then}"
    return _RUNNING if alive.status.phase == RUNNING else f"{_RUNNING} or starting"


def _busy(machine: Machine) -> str:
    """Return what is being carried out, and what to do meanwhile."""
    if machine.strategy == ALWAYS or machine.pending_action == "restart":
        then = _BY_ITSELF
    else:
        then = {"start": "stop takes it back", "stop": _START_LATER}.get(machine.pending_action, "wait for it")
    return f"a {machine.pending_action} of it is still being carried out; {then}"
