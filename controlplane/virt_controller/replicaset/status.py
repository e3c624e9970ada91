# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a VirtualMachineInstanceReplicaSet is, in the words of its status: pure."""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSetStatus
from controlplane.api.objects.selector import render
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.replicaset.world import Action, BeginBatch, CreateVmi, DeleteVmi, World
from controlplane.virt_controller.reporting.refusals import explain_refusal

HELD_BACK = (
    "instances ended before they ran; those that replace them wait, ever longer while none comes to run, 300 s at most;"
    " Events of the instances say why they ended"
)


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceReplicaSetStatus | None:
    """Compute the status; None when the written one is right already."""
    new = _derive(world, problem)
    return None if new == world.replica_set.status else new


def begun(world: World, action: BeginBatch) -> VirtualMachineInstanceReplicaSetStatus:
    """Compute the status by which a batch is begun."""
    status = _derive(world, None)
    return msgspec.structs.replace(status, batches=status.batches + 1, batch_size=action.size)


def refusal(problem: RefusedStep[Action]) -> tuple[str, str]:
    """Return reason and message of what was refused, for the condition and for the Event."""
    text = explain_refusal(problem.error, is_create=isinstance(problem.step, CreateVmi))
    match problem.step:
        case CreateVmi() | BeginBatch():
            return condition_types.FAILED_CREATE, text
        case DeleteVmi():
            return condition_types.FAILED_DELETE, text
    return condition_types.FAILED_UPDATE, text


def _derive(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceReplicaSetStatus:
    spec, old, active = world.replica_set.spec, world.replica_set.status, world.active
    stamp = format_timestamp(world.now)
    listed = old.conditions
    ours = {
        condition_types.REPLICA_PAUSED: ("Paused", "Controller got paused") if spec.paused else None,
        condition_types.REPLICA_FAILURE: _failure(world, problem),
    }
    for kind, told in ours.items():
        if told is None:
            listed = conditions.remove(listed, kind)
        else:
            listed = conditions.put(listed, Condition(type=kind, status="True", reason=told[0], message=told[1]), stamp)
    return msgspec.structs.replace(
        old,
        replicas=len(active),
        ready_replicas=sum(one.is_ready for one in active),
        label_selector=render(spec.selector),
        conditions=listed,
        batch_size=old.batch_size if world.unmade else 0,
    )


def _failure(world: World, problem: RefusedStep[Action] | None) -> tuple[str, str] | None:
    if problem is not None:
        return refusal(problem)
    if world.problems:
        return condition_types.FAILED_CREATE, "; ".join(world.problems)
    return (condition_types.FAILED_CREATE, HELD_BACK) if world.held_back else None
