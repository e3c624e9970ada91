# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the VMI controller about a run: an attempt that failed, and the end that virt-controller wrote."""

from __future__ import annotations

from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.phase import BEFORE_HAND_OVER
from controlplane.api.objects.resources import VIRTUAL_MACHINE, Key
from controlplane.api.objects.vmi.end_events import end_events
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vmi.next_attempt import explain_next_attempt
from controlplane.virt_controller.vmi.world import World


def record_failed_attempt_events(events: Events, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Record an Event on the VMI and its VM if this status records another failed attempt."""
    if len(status.failed_attempts) <= len(world.vmi.status.failed_attempts):
        return
    trouble, occurrence = explain_next_attempt(world, status.failed_attempts), str(status.failed_attempts[-1].attempt)
    for regarding in _vmi_and_vm(world.vmi):
        if trouble is not None:
            events.record(regarding, "Warning", trouble.reason, trouble.message, occurrence=occurrence)


def record_end_events(events: Events, regarding: Regarding, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Record that this status ended the run, as virt-handler does for the ends that it writes.

    A run that ends before the hand-over records nothing: its guest was never started.
    """
    before = world.vmi.status.phase
    if status.phase == before or before in BEFORE_HAND_OVER:
        return
    for end in end_events(status):
        events.record(regarding, "Warning" if end.is_warning else "Normal", end.reason, end.message)


def _vmi_and_vm(vmi: VirtualMachineInstance) -> list[Regarding]:
    owner, regarding = controller_of(vmi.metadata), [Regarding.of(vmi)]
    if owner is not None and owner.kind == VIRTUAL_MACHINE.kind:
        regarding.append(Regarding(VIRTUAL_MACHINE, Key(vmi.metadata.namespace, owner.name), owner.uid))
    return regarding
