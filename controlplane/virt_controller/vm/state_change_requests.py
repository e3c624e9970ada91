# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts and stops that were asked for: those that nobody will ever carry out, and the one we ask for. Pure.

A request waits in the VM's status until it is done. One that can never be done would wait for ever and keep others out,
so it is dropped, and its author is told why. virt-api refuses such requests; a strategy may change while one waits, and
virt-api can be bypassed.
"""

from __future__ import annotations

from kubevirt_api.run_strategies import ALWAYS, HALTED, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects.phase import FAILED
from controlplane.api.objects.state_change_requests import GENERATION, PAUSED, asks_paused, start_request, switches_on
from controlplane.api.objects.vm import StateChangeRequest
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import World


def why_drop(world: World) -> str | None:
    """Say why the first request can never be carried out; None when it can, or when there is none."""
    request = next(iter(world.pending_requests), None)
    if request is None:
        return None
    match request.action, world.vm.run_strategy:
        case "Start", _ if asked := _unbuilt(request):
            return f"starting with {asked} is not built in this version"
        case "Start", "Halted" if not switches_on(request, world.vm.metadata.generation):
            return f"run strategy is {HALTED}; start the machine again, or change the strategy"
        case "Stop", "Once":
            return f"run strategy is {ONCE}; switch to {HALTED} to stop the machine"
        case "Start" | "Stop", _:
            return None
    return "no such request is known to this version; known are Start and Stop"


def needs_rerun_request(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether a failed run is to be followed by another that nobody has asked for yet.

    Under Always it follows without being asked for, unless it has to be said that it is to be paused as well.
    """
    if own.status.phase != FAILED or world.is_stopping or world.pending_requests:
        return False
    strategy = world.vm.run_strategy
    return strategy == RERUN_ON_FAILURE or (strategy == ALWAYS and _is_owed_paused(world, own))


def rerun_requests(world: World, own: VirtualMachineInstance) -> tuple[StateChangeRequest, ...]:
    """Ask for another run than that of an instance. A start alone would be answered by the one that is there."""
    start = start_request(is_paused=_is_owed_paused(world, own))
    return StateChangeRequest(action="Stop", uid=own.metadata.uid), start


def is_next_paused(world: World) -> bool:
    """Tell whether the next run was asked for as one whose guest waits for an unpause."""
    return world.wants_start and asks_paused(world.pending_requests[0])


def _is_owed_paused(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether a paused start was asked for, and its run ended before there was a guest to be unpaused."""
    is_own_wish = world.vm.spec.template.spec.is_start_paused  # then each run is, and nothing needs to be said
    return own.spec.is_start_paused and not own.has_run and not is_own_wish


def has_stale_stop(world: World) -> bool:
    """Tell whether a stop is done that names no instance: left in the queue, it would stop the next one, too."""
    return any(request.action == "Stop" and request.uid is None for request in _done(world))


def has_answered_start(world: World) -> bool:
    """Tell whether a start is done: left in the queue when its instance goes, it would bring another."""
    return any(request.action == "Start" for request in _done(world))


def _done(world: World) -> tuple[StateChangeRequest, ...]:
    queue = world.vm.status.state_change_requests
    return queue[: len(queue) - len(world.pending_requests)]


def _unbuilt(request: StateChangeRequest) -> str:
    """List the options that ask for something: to ignore one would be to start what nobody asked for."""
    understood = {GENERATION} | ({PAUSED} if asks_paused(request) else set())
    options = request.data.items()
    asked = {name: value for name, value in options if value.lower() != "false" and name not in understood}
    return ", ".join(f"{name[:64]}={value[:64]}" for name, value in sorted(asked.items())[:8])
