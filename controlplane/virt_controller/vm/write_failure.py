# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a refused write is reported: the server's message, and what an administrator can do. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.condition_types import FAILED_CREATE, FAILED_DATA_VOLUME_CREATE, FAILED_DELETE, FAILED_UPDATE

from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.reporting.refusals import explain_refusal
from controlplane.virt_controller.vm.world import Action, AdoptDataVolume, CreateDataVolume, CreateVmi, DeleteVmi


@dataclass(frozen=True, slots=True)
class WriteFailure:
    condition: str
    """Reason of the condition Failure, as in KubeVirt."""
    event: str
    """Reason of the Event."""
    message: str


def explain_write_failure(problem: RefusedStep[Action]) -> WriteFailure:
    """Describe a refused action."""
    if isinstance(problem.step, CreateDataVolume | AdoptDataVolume):
        message = explain_refusal(problem.error)
        return WriteFailure(FAILED_DATA_VOLUME_CREATE, FAILED_DATA_VOLUME_CREATE, message)
    message = explain_refusal(problem.error, made_of="spec.template" if isinstance(problem.step, CreateVmi) else "")
    match problem.step:
        case CreateVmi():
            return WriteFailure(FAILED_CREATE, FAILED_CREATE, message)
        case DeleteVmi():
            return WriteFailure(FAILED_DELETE, FAILED_DELETE, message)
    return WriteFailure("FailedUpdateError", FAILED_UPDATE, message)
