# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the power verbs of an instance demand of it before its node is asked. Pure.

virt-handler judges by the guest itself; what is written of it may be a moment old. So only what cannot be otherwise is
refused here, but for a dry run, which nobody else judges.
"""

from __future__ import annotations

from kubevirt_api.condition_types import PAUSED, PAUSED_BY_USER

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import RUNNING, SCHEDULED
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.links.handler import Guest, Verb

NOT_RUNNING = "VMI is not running"


class PowerRefusedError(Exception):
    """The instance's state does not allow it. The text says why."""

    def __init__(self, why: str, code: int = 409) -> None:
        super().__init__(why)
        self.code = code


def find_guest(vmi: VirtualMachineInstance, verb: Verb) -> Guest:
    """Name the guest that a verb is for. PowerRefusedError when nothing runs that could obey."""
    status = vmi.status
    if verb == "reset":
        if status.phase not in (RUNNING, SCHEDULED):
            raise PowerRefusedError(NOT_RUNNING, 400)  # upstream's code
    elif status.phase != RUNNING:
        raise PowerRefusedError(NOT_RUNNING)
    liveness = vmi.spec.liveness_probe
    if verb == "pause" and liveness is not None and liveness.handlers != ("guestAgentPing",):
        raise PowerRefusedError("Pausing VMIs with LivenessProbe is currently not supported", 403)  # upstream's words
    return name_guest(vmi)


def name_guest(vmi: VirtualMachineInstance) -> Guest:
    """Name the guest of an instance. PowerRefusedError when nothing runs."""
    status = vmi.status
    pods = [uid for uid, node in status.active_pods.items() if node == status.node_name]
    if not status.node_name or len(pods) != 1:
        raise PowerRefusedError(NOT_RUNNING)
    return Guest(status.node_name, vmi.metadata.uid, pods[0])


def judge_dry(vmi: VirtualMachineInstance, verb: Verb) -> None:
    """Judge by what is written of a guest. PowerRefusedError."""
    paused = conditions.find(vmi.status.conditions, PAUSED)
    is_held = paused is not None and (paused.status, paused.reason) == ("True", PAUSED_BY_USER)
    if verb == "pause" and is_held:
        raise PowerRefusedError("VMI is already paused")
    if verb == "unpause" and not is_held:
        raise PowerRefusedError("VMI is not paused")
