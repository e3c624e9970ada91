# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a launcher Pod asks of its node, and what it may take: CPU, memory, devices. Pure; the figures were measured.

The guest's memory is not all: libvirtd and the supervisor (38 MiB alone on a node, 18 MiB in company), QEMU's own
state, its page tables, and under emulation the buffer of translated code, whose size the domain fixes.
"""

from __future__ import annotations

from kubevirt_api.names import KVM_DEVICE, TUN_DEVICE

from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import guest_bytes, room_bytes
from controlplane.api.objects.kubevirt import DeveloperConfiguration
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.virt_controller.vmi.disk_space import REQUEST_BYTES, DiskSpace

MIB = 1024 * 1024
FIXED_OVERHEAD = 64 * MIB
OVERHEAD_PER_VCPU = 8 * MIB
TCG_TRANSLATION_BUFFER = 128 * MIB
"""Must be what virt-handler writes as tb-cache into the domain."""
PAGE_TABLE_RATIO = 512
ROOM_RATIO = 4096
"""Of memory that a guest could come to have QEMU keeps books: 1/10,700 of it was measured, 1/8,000 while it is sent."""
LIMIT_MARGIN = 256 * MIB
"""Between what was measured and what ends QEMU: a good guest must never come near."""
LIMIT_MARGIN_PER_DISK = 64 * MIB
"""QEMU caches the tables of an overlay and of the image below it, at most 32 MiB of each."""


def overhead_bytes(domain: DomainSpec, *, is_emulated: bool) -> int:
    """Return the memory that the Pod needs beside the guest's."""
    guest = guest_bytes(domain)
    buffer = TCG_TRANSLATION_BUFFER if is_emulated else 0
    room = room_bytes(domain) // ROOM_RATIO
    return FIXED_OVERHEAD + OVERHEAD_PER_VCPU * domain.vcpus + guest // PAGE_TABLE_RATIO + room + buffer


def build_resources(
    domain: DomainSpec, developer: DeveloperConfiguration, space: DiskSpace, held_bytes: int = 0
) -> dict[str, dict[str, str]]:
    """Build the compute container's `resources`. What the user asked for is kept, with the overhead on top.

    held_bytes: memory of a guest that comes here by a migration, which it may have more of than it is to have.
    """
    asked, is_emulated = domain.resources, developer.use_emulation
    overhead = overhead_bytes(domain, is_emulated=is_emulated)
    requests = {
        "cpu": _cpu_request(domain, developer),
        "memory": str(_memory_request(domain) + overhead),
        "ephemeral-storage": str(REQUEST_BYTES),
    }
    most = max(_memory_limit(domain), _with_margin(domain, held_bytes))
    limits = {"memory": str(most + overhead), "ephemeral-storage": str(space.pod)}
    if "cpu" in asked.limits:
        limits["cpu"] = str(asked.limits["cpu"])
    if not is_emulated:
        limits[KVM_DEVICE] = "1"
    if domain.devices.interfaces:
        limits[TUN_DEVICE] = "1"
    return {"requests": requests, "limits": limits}


def _memory_limit(domain: DomainSpec) -> int:
    """Return the user's; else one that ends a QEMU that has gone wrong before it takes its node's memory."""
    asked = domain.resources.limits.get("memory")
    if asked is not None:
        return quantity.to_bytes(asked)
    return _with_margin(domain, max(guest_bytes(domain), _memory_request(domain)))


def _with_margin(domain: DomainSpec, size: int) -> int:
    margin = LIMIT_MARGIN + LIMIT_MARGIN_PER_DISK * len(domain.devices.disks)
    return size + margin if size else 0


def _cpu_request(domain: DomainSpec, developer: DeveloperConfiguration) -> str:
    asked = domain.resources
    named = asked.requests.get("cpu", asked.limits.get("cpu"))
    if named is not None:
        return str(named)
    return quantity.from_milli(max(1, domain.vcpus * 1000 // max(1, developer.cpu_allocation_ratio)))


def _memory_request(domain: DomainSpec) -> int:
    asked = domain.resources.requests.get("memory")
    if asked is not None:
        return quantity.to_bytes(asked)
    return guest_bytes(domain)
