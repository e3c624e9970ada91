# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to tell about a write that the API server refused: pure. The server's words, and what a person can do."""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.condition_types import FAILED_CREATE, FAILED_UPDATE

from controlplane.engine.errors import ApiError, Forbidden, Invalid, Throttled, Unjudged
from controlplane.engine.plan import Problem
from controlplane.virt_controller.vm.world import Action, CreateVmi, DeleteVmi


@dataclass(frozen=True, slots=True)
class Refusal:
    condition: str
    """Reason of the condition Failure, as upstream names it."""
    event: str
    """Reason of the Event."""
    message: str


def explain(problem: Problem[Action]) -> Refusal:
    """Put a refusal into words."""
    message = str(problem.error)
    remedy = _remedy(problem)
    text = f"{message}; {remedy}" if remedy else message
    match problem.step:
        case CreateVmi():
            return Refusal(FAILED_CREATE, FAILED_CREATE, text)
        case DeleteVmi():
            return Refusal("FailedDelete", "FailedDelete", text)
    return Refusal("FailedUpdateError", FAILED_UPDATE, text)


def _remedy(problem: Problem[Action]) -> str:
    error: ApiError = problem.error
    match error:
        case Forbidden():
            return "look at the namespace's ResourceQuota, and at what virt-controller's account may do"
        case Invalid() if isinstance(problem.step, CreateVmi):
            return "correct spec.template"
        case Invalid():
            return "compare the installed CRDs with the control plane's version"
        case Unjudged():
            return "look at the Pods behind that webhook, or at its configuration"
        case Throttled():
            return "it is tried again by itself"
    return ""
