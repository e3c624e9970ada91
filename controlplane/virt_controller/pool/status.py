# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a VirtualMachinePool is, in the words of its status: pure."""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.pool import VirtualMachinePoolStatus
from controlplane.api.objects.selector import render
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.pool.world import Action, BeginBatch, CreateVm, DeleteVm, World
from controlplane.virt_controller.reporting.refusals import explain_refusal


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachinePoolStatus | None:
    """Compute the status; None when the written one is right already."""
    new = _derive(world, problem)
    return None if new == world.pool.status else new


def begun(world: World, action: BeginBatch) -> VirtualMachinePoolStatus:
    """Compute the status by which machines are begun."""
    status = _derive(world, None)
    return msgspec.structs.replace(status, batches=status.batches + 1, begun=action.numbers)


def refusal(problem: RefusedStep[Action]) -> tuple[str, str]:
    """Return reason and message of what was refused, for the condition and for the Event."""
    text = explain_refusal(problem.error, is_create=isinstance(problem.step, CreateVm))
    match problem.step:
        case CreateVm() | BeginBatch():
            return condition_types.FAILED_SCALE_OUT, text
        case DeleteVm(is_update=False):
            return condition_types.FAILED_SCALE_IN, text
    return condition_types.FAILED_UPDATE, text


def _derive(world: World, problem: RefusedStep[Action] | None) -> VirtualMachinePoolStatus:
    spec, old = world.pool.spec, world.pool.status
    stamp = format_timestamp(world.now)
    listed = old.conditions
    ours = {
        condition_types.REPLICA_PAUSED: ("SuccessfulPaused", "Pool controller is paused") if spec.paused else None,
        condition_types.REPLICA_FAILURE: _failure(world, problem),
    }
    for kind, told in ours.items():
        if told is None:
            listed = conditions.remove(listed, kind)
        else:
            listed = conditions.put(listed, Condition(type=kind, status="True", reason=told[0], message=told[1]), stamp)
    return msgspec.structs.replace(
        old,
        replicas=len(world.counted),
        ready_replicas=sum(one.is_ready for one in world.counted),
        label_selector=render(spec.selector),
        conditions=listed,
        begun=old.begun if world.unmade else (),
    )


def _failure(world: World, problem: RefusedStep[Action] | None) -> tuple[str, str] | None:
    if problem is not None:
        return refusal(problem)
    return (condition_types.FAILED_SCALE_OUT, "; ".join(world.problems)) if world.problems else None
