# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory hotplug: the condition HotMemoryChange, and the reason to migrate. Pure.

As with virtual CPUs, the memory of a guest changes only in a Pod that was sized for the change.
"""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import amount_in_bytes, guest_bytes, most_bytes
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance


def memory_change(vmi: VirtualMachineInstance) -> Condition | None:
    """Return HotMemoryChange while the memory requested of a running guest differs from its spec."""
    current, domain = vmi.status.memory, vmi.spec.domain
    if vmi.status.phase != RUNNING or current is None or current.guest_requested is None or not most_bytes(domain):
        return None
    requested, wanted = amount_in_bytes(current.guest_requested), guest_bytes(domain)
    if requested == wanted:
        return None
    text = f"the guest is to have {quantity.from_bytes(wanted)} of memory and not {quantity.from_bytes(requested)}"
    return Condition(
        type=condition_types.HOT_MEMORY_CHANGE, status="True", message=f"{text}: it is changed by a migration"
    )


def memory_migration_reason(vmi: VirtualMachineInstance, pod: Pod | None) -> str | None:
    """Return why the guest has to migrate. None: no change, or its Pod already has the wanted size."""
    change = memory_change(vmi)
    if change is None or (pod is not None and pod.guest_bytes == guest_bytes(vmi.spec.domain)):
        return None
    return change.message
