# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queued start and stop requests: which are impossible, and the restart that this controller queues. Pure.

A request stays in the VM's status until it is done. One that can never be done would block the queue, so it is dropped
with an Event. virt-api refuses such requests, but the strategy may change meanwhile, and virt-api can be bypassed.
"""

from __future__ import annotations

from kubevirt_api.run_strategies import ALWAYS, HALTED, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects.phase import FAILED, SUCCEEDED
from controlplane.api.objects.state_change_requests import GENERATION, PAUSED, asks_paused, start_request, switches_on
from controlplane.api.objects.vm import StateChangeRequest
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import World


def why_drop(world: World) -> str | None:
    """Return why the first request can never be carried out; None if it can, or if there is no request."""
    request = next(iter(world.pending_requests), None)
    if request is None:
        return None
    match request.action, world.vm.run_strategy:
        case "Start", _ if options := _unbuilt(request):
            return f"a start with {options} is not implemented in this version"
        case "Start", "Halted" if not switches_on(request, world.vm.metadata.generation):
            return f"run strategy is {HALTED}; start the machine again, or change the strategy"
        case "Stop", "Once":
            return f"run strategy is {ONCE}; switch to {HALTED} to stop the machine"
        case "Start" | "Stop", _:
            return None
    return "this version does not know such a request; it knows Start and Stop"


def needs_rerun_request(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether a failed or evicted run needs a request for the next run, and there is none yet.

    Under Always the next run needs no request, unless it has to begin paused.
    """
    if world.is_stopping or world.pending_requests:
        return False
    phase, strategy = own.status.phase, world.vm.run_strategy
    if strategy == RERUN_ON_FAILURE:
        return phase == FAILED or (phase == SUCCEEDED and world.was_evicted)
    return strategy == ALWAYS and phase == FAILED and _must_begin_paused(world, own)


def needs_pod(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether only the launcher Pod shows if another run follows: the VMI may not say yet that it was evicted.

    A guest that obeyed the power button in time has succeeded. Whether it did is no reason to stay off.
    """
    is_open = own.status.phase == SUCCEEDED and world.is_pod_evicted is None and not world.was_evicted
    return is_open and world.vm.run_strategy == RERUN_ON_FAILURE and not world.pending_requests


def rerun_requests(world: World, own: VirtualMachineInstance) -> tuple[StateChangeRequest, ...]:
    """Build the requests for another run. While this VMI exists, a start alone would count as done."""
    start = start_request(is_paused=_must_begin_paused(world, own))
    return StateChangeRequest(action="Stop", uid=own.metadata.uid), start


def is_next_paused(world: World) -> bool:
    """Tell whether the next run was requested to begin paused."""
    return world.wants_start and asks_paused(world.pending_requests[0])


def _must_begin_paused(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether a paused start was requested and its run ended before there was a guest to unpause."""
    is_always_paused = world.vm.spec.template.spec.is_start_paused  # then every run begins paused
    return own.spec.is_start_paused and not own.has_run and not is_always_paused


def has_stale_stop(world: World) -> bool:
    """Tell whether a stop without a UID is done: if it stayed in the queue, it would stop the next VMI, too."""
    return any(request.action == "Stop" and request.uid is None for request in _done(world))


def has_answered_start(world: World) -> bool:
    """Tell whether a start is done: if it stayed in the queue, it would start another VMI after this one."""
    return any(request.action == "Start" for request in _done(world))


def _done(world: World) -> tuple[StateChangeRequest, ...]:
    queue = world.vm.status.state_change_requests
    return queue[: len(queue) - len(world.pending_requests)]


def _unbuilt(request: StateChangeRequest) -> str:
    """Return the options that this version does not know. A start that ignores one would not be what was requested."""
    supported = {GENERATION} | ({PAUSED} if asks_paused(request) else set())
    options = request.data.items()
    unknown = {name: value for name, value in options if value.lower() != "false" and name not in supported}
    return ", ".join(f"{name[:64]}={value[:64]}" for name, value in sorted(unknown.items())[:8])
