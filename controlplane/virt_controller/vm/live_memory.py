# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changed memory of a template for a running guest: the patch of its VMI, or why there is none. Pure."""

from __future__ import annotations

from typing import Any

from kubevirt_api import condition_types

from controlplane.api.objects import conditions, quantity
from controlplane.api.objects.guest_memory import amount_in_bytes, guest_bytes, most_bytes, refuse_room
from controlplane.api.objects.vmi.domain import Resources
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceSpec

Json = dict[str, Any]


def added_memory(own: VirtualMachineInstance, wanted: VirtualMachineInstanceSpec) -> int:
    """Return by how many bytes the template's memory is larger than the VMI's; negative if it is smaller."""
    return _memory_of(wanted) - _memory_of(own.spec)


def refuse_memory(own: VirtualMachineInstance, wanted: VirtualMachineInstanceSpec) -> str:
    """Return why the guest does not get the template's memory while it runs; "" if it does or has it."""
    if not added_memory(own, wanted):
        return ""
    requested, maximum = _memory_of(wanted), most_bytes(own.spec.domain)
    status = own.status.memory
    boot = 0 if status is None else amount_in_bytes(status.guest_at_boot)
    migratable = conditions.find(own.status.conditions, condition_types.LIVE_MIGRATABLE)
    reasons = {
        "it is changed by a migration, and it cannot be migrated": migratable is not None
        and migratable.status == "False",
        "it was started without room for more": not maximum or (status is not None and status.guest_requested is None),
        "its memory at boot is unknown": not boot,
        f"it can have {quantity.from_bytes(maximum)} at most while it runs (maxGuest)": requested > maximum,
        f"it booted with {quantity.from_bytes(boot)}, and no less is possible while it runs": requested < boot,
    }
    first = next((reason for reason, applies in reasons.items() if applies), "")
    return first or refuse_room(requested, maximum)


def with_memory(own: VirtualMachineInstance, wanted: VirtualMachineInstanceSpec, named: Resources) -> Json:
    """Return the domain patch with the new memory. Memory requests and limits change by the same amount."""
    added, current = added_memory(own, wanted), own.spec.domain.resources
    guest = wanted.domain.memory.guest if wanted.domain.memory else None
    amounts = (("requests", current.requests, named.requests), ("limits", current.limits, named.limits))
    resources = {
        field: {"memory": quantity.from_bytes(max(quantity.to_bytes(old["memory"]) + added, 0))}
        for field, old, of_template in amounts
        if "memory" in old and of_template.get("memory")
    }
    return {"memory": {"guest": guest}, **({"resources": resources} if resources else {})}


def merged(first: Json, other: Json) -> Json:
    """Merge two patches recursively."""
    result = dict(first)
    for field, value in other.items():
        old = result.get(field)
        result[field] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def has_other_memory(own: VirtualMachineInstance) -> bool:
    """Tell whether the VMI's memory was changed since it was created."""
    status = own.status.memory
    return (
        status is not None
        and status.guest_at_boot is not None
        and amount_in_bytes(status.guest_at_boot) != _memory_of(own.spec)
    )


def _memory_of(spec: VirtualMachineInstanceSpec) -> int:
    try:
        return guest_bytes(spec.domain)
    except ValueError:  # validation reports the error
        return 0
