# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans about members as text."""

from __future__ import annotations

from typing import Any

from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.members.world import BeginBatch, ConfirmMember, ConfirmSet, CreateMember


def actions_of(plan: Plan[Any]) -> list[str]:
    """Return each action as its type and the member, name or batch that it is about."""
    steps = (step.actions if isinstance(step, IndependentActions) else (step,) for step in plan.steps)
    return [f"{type(action).__name__} {_about(action)}".rstrip() for actions in steps for action in actions]


def _about(action: Any) -> str:
    match action:
        case BeginBatch(batch=tuple() as numbers):
            return ",".join(map(str, numbers))
        case BeginBatch():
            return str(action.batch)
        case ConfirmMember() | CreateMember():
            return action.name
        case ConfirmSet():
            return ""
    return str(action.member.metadata.name)
