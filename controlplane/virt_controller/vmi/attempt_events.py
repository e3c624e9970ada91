# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said, as it happens, of a run that is tried again: to who looks at the instance, and at its machine."""

from __future__ import annotations

from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vmi.further_attempt import explain
from controlplane.virt_controller.vmi.world import World


def tell_attempts(events: Events, world: World, status: VirtualMachineInstanceStatus) -> None:
    """Tell of the attempt that this status has given up."""
    if len(status.failed_attempts) <= len(world.vmi.status.failed_attempts):
        return
    trouble, occurrence = explain(world, status.failed_attempts), str(status.failed_attempts[-1].attempt)
    for one in _those_who_look(world.vmi):
        if trouble is not None:
            events.record(one, "Warning", trouble.reason, trouble.message, occurrence=occurrence)


def _those_who_look(vmi: VirtualMachineInstance) -> list[Regarding]:
    meta, owner = vmi.metadata, controller_of(vmi.metadata)
    found = [Regarding(VIRTUAL_MACHINE_INSTANCE, Key(meta.namespace, meta.name), meta.uid)]
    if owner is not None and owner.kind == VIRTUAL_MACHINE.kind:
        found.append(Regarding(VIRTUAL_MACHINE, Key(meta.namespace, owner.name), owner.uid))
    return found
