# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a run whose end virt-controller has written: the same that virt-handler says of those it writes."""

from __future__ import annotations

from controlplane.api.objects.phase import BEFORE_HAND_OVER
from controlplane.api.objects.vmi.end import explain_end
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vmi.world import World


def tell_end(events: Events, regarding: Regarding, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Tell that this status has ended the run; of one whose guest was never to start nothing has stopped."""
    before = world.vmi.status.phase
    if status.phase == before or before in BEFORE_HAND_OVER:
        return
    for end in explain_end(status):
        events.record(regarding, "Warning" if end.is_warning else "Normal", end.reason, end.message)
