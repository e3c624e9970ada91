# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What start, stop and restart write: decided from a VM, its instance and the options. Pure.

Semantics by run strategy are KubeVirt's. Each writes a request only: the run strategy in the VM's spec, its queue of
state changes, or a shorter grace period of its instance. virt-controller acts on it. A request that virt-controller can
never act on is refused (refusals). In every state at least one of the three is accepted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubevirt_api.run_strategies import BUILT, HALTED, MANUAL, RERUN_ON_FAILURE

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import encode
from controlplane.api.objects.state_change_requests import start_request
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_api.subresources.options import RestartOptions, StartOptions, StopOptions
from controlplane.virt_api.subresources.refusals import (
    Machine,
    unknown_phase_note,
    why_no_restart,
    why_no_start,
    why_no_stop,
)

Json = dict[str, Any]

_START: Json = {"action": "Start"}
_STOP: Json = {"action": "Stop"}


class RefusedError(Exception):
    """The VM's state does not allow the request (409). The text says why, and what to do."""


class NotImplementedStrategyError(Exception):
    """The run strategy is not implemented (501). The text names it."""


@dataclass(frozen=True, slots=True)
class PatchInstance:
    """Shorten the grace period of the instance."""

    uid: str
    patch: Json


@dataclass(frozen=True, slots=True)
class PatchSpec:
    """Change the VM's spec."""

    patch: Json


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Queue state changes in the VM's status."""

    patch: Json


Write = PatchInstance | PatchSpec | PatchStatus


def decide_start(vm: VirtualMachine, vmi: VirtualMachineInstance | None, options: StartOptions) -> tuple[Write, ...]:
    """Choose the writes of a start. Raises RefusedError, NotImplementedStrategyError."""
    machine = Machine(vm, _built_strategy(vm), own_instance(vm, vmi))
    if machine.alive is None and _has(vm, "ManualRecoveryRequired"):
        raise RefusedError("its volumes need manual recovery before it can start; see the condition")
    _refuse(machine, why_no_start(machine))
    if machine.strategy == HALTED and not options.paused:
        return (_switch(vm, on=True),)
    if options.paused and vm.spec.template.spec.liveness_probe is not None:
        raise RefusedError("a paused guest passes no livenessProbe; start it unpaused, or remove the probe")
    generation = vm.metadata.generation if machine.strategy == HALTED else None
    start = encode(start_request(is_paused=options.paused, generation=generation))
    if machine.vmi is not None:
        return (_queue(_stop(machine.vmi), start),)
    return (_queue(start),)


def decide_stop(vm: VirtualMachine, vmi: VirtualMachineInstance | None, options: StopOptions) -> tuple[Write, ...]:
    """Choose the writes of a stop. Raises RefusedError."""
    machine = Machine(vm, _strategy(vm), own_instance(vm, vmi))
    live = machine.alive
    shorten = _shorten(live, options.grace_period)
    if machine.strategy == HALTED and shorten:
        return shorten
    _refuse(machine, why_no_stop(machine))
    if machine.strategy in {MANUAL, RERUN_ON_FAILURE} or machine.is_switching_on:
        if live is None or (machine.is_deleting and machine.is_new_strategy):
            return (*shorten, _withdraw(machine))
        return (*shorten, _queue(_stop(live)))
    return (*shorten, _switch(vm, on=False))


def decide_restart(
    vm: VirtualMachine, vmi: VirtualMachineInstance | None, options: RestartOptions
) -> tuple[Write, ...]:
    """Choose the writes of a restart. Raises RefusedError, NotImplementedStrategyError."""
    machine = Machine(vm, _built_strategy(vm), own_instance(vm, vmi))
    if _has(vm, "VolumesChange"):
        raise RefusedError("its volumes are being changed; wait until that is done")
    _refuse(machine, why_no_restart(machine))
    if machine.vmi is None:
        raise AssertionError("a restart without an instance was not refused")
    # 1 and not 0, as upstream: a grace period of 0 means "unset" to some readers.
    shorten = _shorten(machine.vmi, 1) if options.grace_period == 0 else ()
    return (*shorten, _queue(_stop(machine.vmi), _START))


def _refuse(machine: Machine, because: str | None) -> None:
    # While another request is pending upstream responds 500; a user's request must not look like a server's error.
    if because is not None:
        raise RefusedError(f"{because}{unknown_phase_note(machine)}")


def _strategy(vm: VirtualMachine) -> str:
    if vm.spec.running is not None and vm.spec.run_strategy is not None:
        raise RefusedError("it has both running and runStrategy; remove the deprecated running")
    return vm.run_strategy


def _built_strategy(vm: VirtualMachine) -> str:
    strategy = _strategy(vm)
    if strategy not in BUILT:
        raise NotImplementedStrategyError(f"run strategy {strategy[:64]} is not implemented by this control plane")
    return strategy


def own_instance(vm: VirtualMachine, vmi: VirtualMachineInstance | None) -> VirtualMachineInstance | None:
    """Return the instance unless another object controls it; one without a controller is going to be adopted."""
    owners = vmi.metadata.owner_references if vmi is not None else ()
    return None if any(owner.controller and owner.uid != vm.metadata.uid for owner in owners) else vmi


def _switch(vm: VirtualMachine, *, on: bool) -> PatchSpec:
    if vm.spec.run_strategy is None and vm.spec.running is not None:
        return PatchSpec({"spec": {"running": on}})
    return PatchSpec({"spec": {"runStrategy": "Always" if on else "Halted"}})


def _queue(*requests: Json) -> PatchStatus:
    """Replace the queue. A start also ends the back-off after failed starts."""
    status: Json = {"stateChangeRequests": list(requests)}
    if any(request["action"] == "Start" for request in requests):
        status["startFailure"] = None
    return PatchStatus({"status": status})


def _withdraw(machine: Machine) -> PatchStatus:
    """Cancel a start that has not begun. An instance that has ended is stopped too: its failure would start the next.

    Without an instance one may be about to be created: a stop without a UID applies to whichever exists then.
    """
    stop = _STOP if machine.vmi is None else _stop(machine.vmi)
    status: Json = {"stateChangeRequests": [stop], "startFailure": None}
    if machine.strategy == RERUN_ON_FAILURE:
        status["runStrategy"] = RERUN_ON_FAILURE  # a new strategy would start it once by itself
    return PatchStatus({"status": status})


def _stop(vmi: VirtualMachineInstance) -> Json:
    return {"action": "Stop", "uid": vmi.metadata.uid}


def _has(vm: VirtualMachine, condition: str) -> bool:
    return conditions.is_true(vm.status.conditions, condition)


def _shorten(vmi: VirtualMachineInstance | None, seconds: int | None) -> tuple[Write, ...]:
    """Return the patch of the instance's grace period; nothing when it would not become shorter."""
    if vmi is None or seconds is None or seconds >= vmi.spec.grace_period_seconds:
        return ()
    return (PatchInstance(vmi.metadata.uid, {"spec": {"terminationGracePeriodSeconds": seconds}}),)
