# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports about refused writes: every kind of refusal, on every step."""

from __future__ import annotations

import pytest

from controlplane.api.objects.vm import StateChangeRequest
from controlplane.engine.errors import ApiError, Forbidden, Invalid, Throttled, WebhookFailed
from controlplane.engine.plan import RefusedStep, WriteStatus
from controlplane.virt_controller.vm.world import (
    Action,
    AddFinalizer,
    AdoptDataVolume,
    AdoptVmi,
    CreateDataVolume,
    CreateVmi,
    DeleteVmi,
    DropRequest,
)
from controlplane.virt_controller.vm.write_failure import explain_write_failure

STEPS: dict[str, tuple[Action | WriteStatus, str, str]] = {
    "create": (CreateVmi("x"), "FailedCreate", "FailedCreate"),
    "delete": (DeleteVmi("x"), "FailedDelete", "FailedDelete"),
    "make a DataVolume": (CreateDataVolume("disk", "x"), "FailedDataVolumeCreate", "FailedDataVolumeCreate"),
    "adopt a DataVolume": (AdoptDataVolume("disk", "x"), "FailedDataVolumeCreate", "FailedDataVolumeCreate"),
    "adopt": (AdoptVmi("x"), "FailedUpdateError", "FailedUpdate"),
    "finalizer": (AddFinalizer("x"), "FailedUpdateError", "FailedUpdate"),
    "drop": (DropRequest(StateChangeRequest(action="Start"), (), "x"), "FailedUpdateError", "FailedUpdate"),
    "status": (WriteStatus("x"), "FailedUpdateError", "FailedUpdate"),
}
REMEDIES = {
    Forbidden: "ResourceQuota",
    Invalid: "CRDs",
    Throttled: "virt-controller retries it",
    WebhookFailed: "serve that webhook",
}


@pytest.mark.parametrize("kind", REMEDIES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_refusal_is_reported_with_the_servers_message_and_a_remedy(step: str, kind: type[ApiError]) -> None:
    action, condition, event = STEPS[step]
    report = explain_write_failure(RefusedStep(action, kind("cannot do it: no")))
    assert (report.condition, report.event) == (condition, event)
    remedy = "correct spec.template" if (step, kind) == ("create", Invalid) else REMEDIES[kind]
    assert report.message.startswith("cannot do it: no; ")
    assert remedy in report.message
