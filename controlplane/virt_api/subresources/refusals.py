# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a machine takes no start, stop or restart as it is now, and what leads on from there. Pure.

Each text begins with the words of upstream, which scripts and consoles look for, is true of the state it is given for,
and what it advises is taken in that state: a refusal whose remedy is refused in turn leaves a person nowhere.
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

EVIDENCE = 640
"""Characters of an instance's own words, which say what would be proof of its end."""
_RUNNING, _NOT_RUNNING = "VM is already running", "VM is not running"
_NO_START, _NO_RESTART = "does not support manual start requests", "does not support manual restart requests"
_BY_ITSELF = "it starts by itself; if it does not, its conditions say why"
_START_LATER = "start it when that is done"
_STOPPING = f"{_RUNNING}, and stopping; {_START_LATER}"
_ANEW = "stop it, then start it (its run strategy is Always from then on)"


@dataclass(frozen=True, slots=True)
class Machine:
    """A VM as a request meets it."""

    vm: VirtualMachine
    strategy: str
    vmi: VirtualMachineInstance | None
    """Its own; None when there is none, or another object controls the one there."""

    @property
    def alive(self) -> VirtualMachineInstance | None:
        """The instance if it runs, may run or is about to, on its way out or not."""
        return self.vmi if self.vmi is not None and is_alive(self.vmi.status.phase) else None

    @property
    def is_going(self) -> bool:
        return self.vmi is not None and self.vmi.metadata.deletion_timestamp is not None

    @property
    def pending(self) -> tuple[StateChangeRequest, ...]:
        """What is still to be carried out. What is done stands in nobody's way until it is taken off the queue."""
        queue = self.vm.status.state_change_requests
        if self.vmi is None:
            return pending(queue, uid=None, is_own=False)
        meta = self.vmi.metadata
        # One that nobody controls is adopted, and answers a start then, unless it is going.
        is_own = any(one.controller for one in meta.owner_references) or not self.is_going
        return pending(queue, uid=meta.uid, is_own=is_own)

    @property
    def asked(self) -> str:
        """What is being carried out, in a word; "" when nothing is."""
        actions = [one.action for one in self.pending]
        if not actions:
            return ""
        return "restart" if actions[0] == "Stop" and "Start" in actions else actions[0][:64].lower()

    @property
    def is_to_switch_on(self) -> bool:
        """It is halted, and about to be switched on by a paused start."""
        starts = [one for one in self.pending if one.action == "Start"]
        return self.strategy == HALTED and any(switches_on(one, self.vm.metadata.generation) for one in starts)

    @property
    def is_failed(self) -> bool:
        """Its run failed, and nobody has ended it."""
        return self.vmi is not None and self.vmi.status.phase == FAILED and not self.is_going

    @property
    def is_to_start(self) -> bool:
        """Nothing lives, and a start is queued or comes by itself."""
        if any(one.action == "Start" for one in self.pending):
            return True
        if self.vmi is None or self.is_going:
            return self.is_new_strategy
        return self.strategy == RERUN_ON_FAILURE and self.is_failed and not self.asked

    @property
    def is_new_strategy(self) -> bool:
        """Its strategy was not acted on yet, and starts it once by itself when it has no instance."""
        return self.strategy == RERUN_ON_FAILURE != self.vm.status.run_strategy


def why_no_start(machine: Machine) -> str | None:  # noqa: PLR0911 - a table
    """Say why a start is refused; None when it is not."""
    if machine.is_to_switch_on:
        return _busy(machine)
    if machine.strategy == HALTED:
        return _STOPPING if machine.alive else None
    if machine.asked and machine.strategy != ONCE:
        return _busy(machine)
    if machine.alive and not machine.is_going:
        return _running(machine, machine.alive)
    if machine.strategy == ONCE and machine.vmi is not None and not machine.is_going:
        return f"{ONCE} {_NO_START} and its one run is over; {_ANEW}"
    if machine.strategy in {ALWAYS, ONCE}:
        return f"{machine.strategy} {_NO_START}; {_BY_ITSELF}"
    if machine.alive:
        return _STOPPING
    if machine.strategy == RERUN_ON_FAILURE and machine.is_failed:
        return f"{RERUN_ON_FAILURE} does not support starting VM from failed state; {_BY_ITSELF}"
    return None


def why_no_restart(machine: Machine) -> str | None:
    """Say why a restart is refused; None when it is not."""
    if machine.is_to_switch_on:
        return _busy(machine)
    if machine.strategy == HALTED:
        then = f"VM is stopping; {_START_LATER}" if machine.alive else f"{_NOT_RUNNING}; start it"
        return f"{HALTED} {_NO_RESTART}; {then}"
    if machine.strategy == ONCE:
        ends = machine.vmi is None or machine.is_going
        return f"{ONCE} {_NO_RESTART}; {_BY_ITSELF if ends else _ANEW}"
    if machine.asked:
        return _busy(machine)
    if machine.vmi is None:
        return f"{_NOT_RUNNING}; {_BY_ITSELF if machine.strategy == ALWAYS else 'start it'}"
    return None


def why_no_stop(machine: Machine) -> str | None:
    """Say why a stop that shortens no grace period is refused; None when it is not."""
    if machine.is_to_switch_on and machine.alive is None:
        return None
    if machine.strategy == HALTED:
        if machine.alive is None:
            return _NOT_RUNNING
        hurry = ", which hurries it" if machine.alive.spec.grace_period_seconds > 0 else ""
        return f"{HALTED} only supports manual stop requests with a shorter graceperiod{hurry}; VM is stopping already"
    queues = machine.strategy in {MANUAL, RERUN_ON_FAILURE}
    return _NOT_RUNNING if queues and machine.alive is None and not machine.is_to_start else None


def doubt(machine: Machine) -> str:
    """Say what an instance that is Unknown waits for; "" of any other. Belongs to the end of every refusal."""
    if machine.alive is None or machine.alive.status.phase != UNKNOWN:
        return ""
    said = conditions.find(machine.alive.status.conditions, SYNCHRONIZED)
    because = said.message[:EVIDENCE] if said is not None and said.message else "its conditions may say why"
    return f". Its instance is Unknown: {because}"


def _running(machine: Machine, alive: VirtualMachineInstance) -> str:
    if alive.status.phase == UNKNOWN:
        anew = (
            _ANEW if machine.strategy == ONCE else "restart it to have it started again once it is known to have ended"
        )
        return f"the machine may still run and is never started twice; {anew}"
    return _RUNNING if alive.status.phase == RUNNING else f"{_RUNNING} or starting"


def _busy(machine: Machine) -> str:
    """Say what becomes of a machine that a request is being carried out for."""
    if machine.strategy == ALWAYS or machine.asked == "restart":
        then = _BY_ITSELF
    else:
        then = {"start": "stop takes it back", "stop": _START_LATER}.get(machine.asked, "wait for it")
    return f"a {machine.asked} of it is still being carried out; {then}"
