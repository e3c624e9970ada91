# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a replica set or pool. Pure."""

from __future__ import annotations

from typing import Any

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.selector import render
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.members.world import (
    BeginBatch,
    CreateMember,
    DeleteMember,
    ReasonAndMessage,
    Reasons,
    SetWorld,
)
from controlplane.virt_controller.reporting.refusals import explain_refusal


def derive_status(world: SetWorld[Any, Any], problem: RefusedStep[Any] | None) -> Any:
    """Return the status to write; None if the written status is right."""
    status = _derive(world, problem)
    return None if status == world.owner.status else status


def status_of_batch(world: SetWorld[Any, Any], action: BeginBatch) -> Any:
    """Return the status that begins a batch."""
    status = _derive(world, None)
    return msgspec.structs.replace(status, batches=status.batches + 1, **{world.batch_field: action.batch})


def explain(reasons: Reasons, problem: RefusedStep[Any]) -> ReasonAndMessage:
    """Return reason and message of a refused action, for the condition and the Event."""
    text = explain_refusal(problem.error, made_of="spec.template" if isinstance(problem.step, CreateMember) else "")
    match problem.step:
        case CreateMember() | BeginBatch():
            return reasons.create, text
        case DeleteMember(is_update=False):
            return reasons.delete, text
    return condition_types.FAILED_UPDATE, text


def _derive(world: SetWorld[Any, Any], problem: RefusedStep[Any] | None) -> Any:
    old = world.owner.status
    batch = getattr(old, world.batch_field)
    return msgspec.structs.replace(
        old,
        replicas=len(world.counted),
        ready_replicas=sum(member.is_ready for member in world.counted),
        label_selector=render(world.owner.spec.selector),
        conditions=_conditions(world, problem),
        # The batch is open until the cache has all of its names.
        **{world.batch_field: batch if world.unmade else type(batch)()},
    )


def _conditions(world: SetWorld[Any, Any], problem: RefusedStep[Any] | None) -> conditions.Conditions:
    """Set or remove ReplicaPaused and ReplicaFailure."""
    timestamp = format_timestamp(world.now)
    listed: conditions.Conditions = world.owner.status.conditions
    wanted = {
        condition_types.REPLICA_PAUSED: world.reasons.paused if world.owner.spec.paused else None,
        condition_types.REPLICA_FAILURE: _failure(world, problem),
    }
    for kind, content in wanted.items():
        if content is None:
            listed = conditions.remove(listed, kind)
        else:
            condition = Condition(type=kind, status="True", reason=content[0], message=content[1])
            listed = conditions.put(listed, condition, timestamp)
    return listed


def _failure(world: SetWorld[Any, Any], problem: RefusedStep[Any] | None) -> ReasonAndMessage | None:
    if problem is not None:
        return explain(world.reasons, problem)
    text = "; ".join(world.problems) or world.warning
    return (world.reasons.create, text) if text else None
