# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ready condition of a VMI: one function for both writers, so that neither corrects the other. Pure.

virt-controller says it at all times. virt-handler says it in the very write that moves the phase, which saves one.
"""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import AFTER_HAND_OVER, RUNNING, SCHEDULED
from controlplane.api.objects.pod import Pod

POD_CONDITION_MISSING = "PodConditionMissing"


def readiness(phase: str, pod: Pod | None, *, is_paused: bool = False) -> Condition:
    """Return the condition for a VMI in this phase. pod: its launcher's; None without one.

    A paused guest answers nobody, whatever its Pod says.
    """
    if phase != RUNNING and (phase not in AFTER_HAND_OVER or phase == SCHEDULED):
        return _false(condition_types.GUEST_NOT_RUNNING, "Guest VM is not reported as running")
    if pod is None:
        return _false(condition_types.POD_NOT_EXISTS, "virt-launcher pod is gone")
    if pod.is_deleting:
        return _false(condition_types.POD_TERMINATING, "virt-launcher pod is terminating")
    if phase != RUNNING:
        return _false(condition_types.GUEST_NOT_RUNNING, "Guest VM is not reported as running")
    if is_paused:
        return _false(condition_types.PAUSED, "Guest VM is paused")
    return _as_its_pod(pod)


def _as_its_pod(pod: Pod) -> Condition:
    theirs = conditions.find(pod.status.conditions, condition_types.READY)
    if theirs is None:
        return _false(POD_CONDITION_MISSING, "virt-launcher pod is missing the Ready condition")
    is_ours = pod.waits_for == {condition_types.UNPAUSED}
    if is_ours and theirs.reason == condition_types.READINESS_GATES_NOT_READY:
        return Condition(type=condition_types.READY, status="True")  # the guest moved there; Services learn of it now
    return Condition(type=condition_types.READY, status=theirs.status, reason=theirs.reason, message=theirs.message)


def _false(reason: str, message: str) -> Condition:
    return Condition(type=condition_types.READY, status="False", reason=reason, message=message)
