# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the VMI controller about a run: failed attempts, an evicted Pod, and the end that virt-controller wrote."""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.phase import BEFORE_HAND_OVER
from controlplane.api.objects.resources import VIRTUAL_MACHINE, Key
from controlplane.api.objects.vmi.end_events import end_events
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vmi.disruption import POD_DELETED
from controlplane.virt_controller.vmi.next_attempt import explain_next_attempt
from controlplane.virt_controller.vmi.world import World

EVICTED = "Evicted"


def record_failed_attempt_events(events: Events, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Record an Event on the VMI and its VM if this status records another failed attempt.

    Normal: the run goes on.
    """
    if len(status.failed_attempts) <= len(world.vmi.status.failed_attempts):
        return
    trouble, occurrence = explain_next_attempt(world, status.failed_attempts), str(status.failed_attempts[-1].attempt)
    for regarding in _vmi_and_vm(world.vmi):
        if trouble is not None:
            events.record(regarding, "Normal", trouble.reason, trouble.message, occurrence=occurrence)


def record_disruption_event(events: Events, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Record an Event on the VMI and its VM if this status says first that the launcher Pod was evicted or deleted."""
    before, now = (
        conditions.find(listed, condition_types.DISRUPTION_TARGET)
        for listed in (world.vmi.status.conditions, status.conditions)
    )
    if now is None or before is not None:
        return
    reason = now.reason if now.reason == POD_DELETED else EVICTED
    because = "" if reason == now.reason else f" ({now.reason})"
    message = f"{now.message}{because}; the run strategy decides what is next"
    for regarding in _vmi_and_vm(world.vmi):
        events.record(regarding, "Normal", reason, f"The {message}", occurrence=_pod_uid(world))


def record_end_events(events: Events, regarding: Regarding, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Record that this status ended the run, as virt-handler does for the ends that it writes.

    A run that ends before the hand-over records nothing: its guest was never started.
    """
    before = world.vmi.status.phase
    if status.phase == before or before in BEFORE_HAND_OVER:
        return
    for end in end_events(status):
        events.record(regarding, "Warning" if end.is_warning else "Normal", end.reason, end.message)


def _pod_uid(world: World) -> str:
    """Distinguish the Pods of one run, which may be evicted one after the other."""
    return "" if world.source is None else world.source.uid


def _vmi_and_vm(vmi: VirtualMachineInstance) -> list[Regarding]:
    owner, regarding = controller_of(vmi.metadata), [Regarding.of(vmi)]
    if owner is not None and owner.kind == VIRTUAL_MACHINE.kind:
        regarding.append(Regarding(VIRTUAL_MACHINE, Key(vmi.metadata.namespace, owner.name), owner.uid))
    return regarding
