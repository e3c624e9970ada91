# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ready condition of a VMI: one function for both writers, so that they agree. Pure.

virt-controller always sets it. virt-handler sets it when it changes the phase, which saves a second write.
"""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import AFTER_HAND_OVER, RUNNING, SCHEDULED
from controlplane.api.objects.pod import Pod

POD_CONDITION_MISSING = "PodConditionMissing"
TERMINATING = Condition(
    type=condition_types.READY,
    status="False",
    reason=condition_types.POD_TERMINATING,
    message="virt-launcher pod is terminating",
)


def readiness(phase: str, pod: Pod | None, *, is_paused: bool = False, is_deleting: bool = False) -> Condition:
    """Return the condition for a VMI in this phase. pod: its launcher Pod, if it exists. is_deleting: the VMI is.

    A paused guest is not ready even when its Pod is: it answers no request. Nor is one that is to stop, from the
    deletion of its VMI on, which is followed by that of its Pod.
    """
    if phase != RUNNING and (phase not in AFTER_HAND_OVER or phase == SCHEDULED):
        return _false(condition_types.GUEST_NOT_RUNNING, "Guest VM is not reported as running")
    if pod is None:
        return _false(condition_types.POD_NOT_EXISTS, "virt-launcher pod is gone")
    if pod.is_deleting or is_deleting:
        return TERMINATING
    if phase != RUNNING:
        return _false(condition_types.GUEST_NOT_RUNNING, "Guest VM is not reported as running")
    if is_paused:
        return _false(condition_types.PAUSED, "Guest VM is paused")
    return _as_its_pod(pod)


def _as_its_pod(pod: Pod) -> Condition:
    pod_ready = conditions.find(pod.status.conditions, condition_types.READY)
    if pod_ready is None:
        return _false(POD_CONDITION_MISSING, "virt-launcher pod is missing the Ready condition")
    waits_for_guest = pod.waits_for == {condition_types.UNPAUSED}
    if waits_for_guest and pod_ready.reason == condition_types.READINESS_GATES_NOT_READY:
        return Condition(
            type=condition_types.READY, status="True"
        )  # the guest has arrived in this Pod; its readiness gate opens next
    return Condition(
        type=condition_types.READY, status=pod_ready.status, reason=pod_ready.reason, message=pod_ready.message
    )


def _false(reason: str, message: str) -> Condition:
    return Condition(type=condition_types.READY, status="False", reason=reason, message=message)
