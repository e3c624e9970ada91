# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Conditions of a set's status, and the message for a refused action. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.members.world import BeginBatch, CreateMember, DeleteMember, SetWorld
from controlplane.virt_controller.reporting.refusals import explain_refusal

ReasonAndMessage = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Reasons that differ between replica sets and pools, as in KubeVirt."""

    create: str
    delete: str
    paused: ReasonAndMessage

    def refusal(self, problem: RefusedStep[Any]) -> ReasonAndMessage:
        """Return reason and message of a refused action, for the condition and the Event."""
        text = explain_refusal(problem.error, is_create=isinstance(problem.step, CreateMember))
        match problem.step:
            case CreateMember() | BeginBatch():
                return self.create, text
            case DeleteMember(is_update=False):
                return self.delete, text
        return condition_types.FAILED_UPDATE, text

    def conditions(
        self, world: SetWorld[Any, Any], problem: RefusedStep[Any] | None, warning: str = ""
    ) -> conditions.Conditions:
        """Set or remove ReplicaPaused and ReplicaFailure. warning: a failure without a refused action."""
        timestamp = format_timestamp(world.now)
        listed: conditions.Conditions = world.owner.status.conditions
        wanted = {
            condition_types.REPLICA_PAUSED: self.paused if world.owner.spec.paused else None,
            condition_types.REPLICA_FAILURE: self._failure(world, problem, warning),
        }
        for kind, content in wanted.items():
            if content is None:
                listed = conditions.remove(listed, kind)
            else:
                condition = Condition(type=kind, status="True", reason=content[0], message=content[1])
                listed = conditions.put(listed, condition, timestamp)
        return listed

    def _failure(
        self, world: SetWorld[Any, Any], problem: RefusedStep[Any] | None, warning: str
    ) -> ReasonAndMessage | None:
        if problem is not None:
            return self.refusal(problem)
        text = "; ".join(world.problems) or warning
        return (self.create, text) if text else None
