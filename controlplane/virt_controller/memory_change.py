# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory that a running guest is to get or to give back: what is said of it, and what is done. Pure.

As with virtual CPUs it is a Pod that was made for it, in which virt-handler has the guest take it, or give it back.
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
    """Say that the guest is to have other memory than it was asked to have; None when it was asked for that."""
    told, domain = vmi.status.memory, vmi.spec.domain
    if vmi.status.phase != RUNNING or told is None or told.guest_requested is None or not most_bytes(domain):
        return None
    has, wanted = amount_in_bytes(told.guest_requested), guest_bytes(domain)
    if has == wanted:
        return None
    text = f"the guest is to have {quantity.from_bytes(wanted)} of memory and not {quantity.from_bytes(has)}"
    return Condition(
        type=condition_types.HOT_MEMORY_CHANGE, status="True", message=f"{text}: it is changed by a migration"
    )


def reason_to_migrate_for_memory(vmi: VirtualMachineInstance, pod: Pod | None) -> str | None:
    """Say why the guest is to leave the Pod that it is in; None: it is not, or its memory is changed where it is."""
    change = memory_change(vmi)
    if change is None or (pod is not None and pod.guest_bytes == guest_bytes(vmi.spec.domain)):
        return None
    return change.message
