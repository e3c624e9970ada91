# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What power verbs require of a VMI before its virt-handler is asked. Pure.

virt-handler decides by the guest itself; a VMI's status may be outdated. So only what is certain is refused here. A dry
run never reaches virt-handler, so it is decided here.
"""

from __future__ import annotations

from controlplane.api.objects.phase import RUNNING, SCHEDULED
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.links.handler import Guest, Verb

NOT_RUNNING = "VMI is not running"


class PowerRefusedError(Exception):
    """The VMI's state does not allow the verb. The text says why."""

    def __init__(self, why: str, code: int = 409) -> None:
        super().__init__(why)
        self.code = code


def guest_for(vmi: VirtualMachineInstance, verb: Verb) -> Guest:
    """Return the guest that a verb is for. PowerRefusedError when the VMI's phase or probes do not allow it."""
    status = vmi.status
    if verb == "reset":
        if status.phase not in (RUNNING, SCHEDULED):
            raise PowerRefusedError(NOT_RUNNING, 400)  # upstream's code
    elif status.phase != RUNNING:
        raise PowerRefusedError(NOT_RUNNING)
    liveness = vmi.spec.liveness_probe
    if verb == "pause" and liveness is not None and liveness.handlers != ("guestAgentPing",):
        raise PowerRefusedError("Pausing VMIs with LivenessProbe is currently not supported", 403)  # upstream's words
    return guest_of(vmi)


def guest_of(vmi: VirtualMachineInstance) -> Guest:
    """Return the guest of a VMI. PowerRefusedError when it has none."""
    status = vmi.status
    pods = [uid for uid, node in status.active_pods.items() if node == status.node_name]
    if not status.node_name or len(pods) != 1:
        raise PowerRefusedError(NOT_RUNNING)
    return Guest(status.node_name, vmi.metadata.uid, pods[0])


def check_dry_run(vmi: VirtualMachineInstance, verb: Verb) -> None:
    """Check a verb against the VMI's conditions. PowerRefusedError."""
    if verb == "pause" and vmi.is_user_pause_reported:
        raise PowerRefusedError("VMI is already paused")
    if verb == "unpause" and not vmi.is_user_pause_reported:
        raise PowerRefusedError("VMI is not paused")
