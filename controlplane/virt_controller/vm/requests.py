# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts and stops that were asked for: those that nobody will ever carry out, and the one we ask for. Pure.

A request waits in the VM's status until it is done. One that can never be done would wait for ever and keep others out,
so it is dropped, and its author is told why. virt-api refuses such requests; a strategy may change while one waits, and
virt-api can be bypassed.
"""

from __future__ import annotations

from kubevirt_api.run_strategies import HALTED, ONCE, RERUN_ON_FAILURE

from controlplane.api.objects.phase import FAILED, is_final
from controlplane.api.objects.vm import StateChangeRequest
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vm.world import World


def why_drop(world: World) -> str | None:  # noqa: PLR0911 - a table
    """Say why the first request can never be carried out; None when it can, or when there is none."""
    request = next(iter(world.pending_requests), None)
    if request is None:
        return None
    match request.action, world.vm.run_strategy:
        case "Start", _ if asked := _unbuilt(request):
            return f"starting with {asked} is not built in this version"
        case "Start", "Halted":
            return f"run strategy is {HALTED}; start the machine again, or change the strategy"
        case "Start", "Once" if _is_over(world):
            return f"run strategy is {ONCE} and its one run is over"
        case "Stop", "Once":
            return f"run strategy is {ONCE}; switch to {HALTED} to stop the machine"
        case "Start" | "Stop", _:
            return None
    return "no such request is known to this version; known are Start and Stop"


def asks_again(world: World, own: VirtualMachineInstance) -> bool:
    """Tell whether a failed run is to be followed by another that nobody has asked for yet."""
    failed = own.status.phase == FAILED and not world.is_stopping
    return failed and world.vm.run_strategy == RERUN_ON_FAILURE and not world.pending_requests


def has_stale_stop(world: World) -> bool:
    """Tell whether a stop is done that names no instance: left in the queue, it would stop the next one, too."""
    queue = world.vm.status.state_change_requests
    done = queue[: len(queue) - len(world.pending_requests)]
    return any(one.action == "Stop" and one.uid is None for one in done)


def _unbuilt(request: StateChangeRequest) -> str:
    """List the options that ask for something: to ignore one would be to start what nobody asked for."""
    asked = {name: value for name, value in request.data.items() if value.lower() != "false"}
    return ", ".join(f"{name[:64]}={value[:64]}" for name, value in sorted(asked.items())[:8])


def _is_over(world: World) -> bool:
    return world.own is not None and is_final(world.own.status.phase) and not world.is_stopping
