# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource requests and limits of a launcher Pod: CPU, memory, devices. Pure. The figures were measured.

In addition to the guest's memory, a Pod needs memory for libvirtd and the supervisor (38 MiB alone on a node, 18 MiB
shared), QEMU's state, its page tables, and under emulation the translation buffer, whose size the domain sets.
"""

from __future__ import annotations

from kubevirt_api.names import KVM_DEVICE, TUN_DEVICE

from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import GuestMemory, guest_memory
from controlplane.api.objects.kubevirt import DeveloperConfiguration
from controlplane.api.objects.vmi.domain import DomainSpec
from controlplane.virt_controller.vmi.disk_space import REQUEST_BYTES, DiskSpace

MIB = 1024 * 1024
FIXED_OVERHEAD = 64 * MIB
OVERHEAD_PER_VCPU = 8 * MIB
TCG_TRANSLATION_BUFFER = 128 * MIB
"""Must equal tb-cache, which virt-handler writes into the domain."""
PAGE_TABLE_RATIO = 512
ROOM_RATIO = 4096
"""QEMU's bookkeeping for memory that a guest could get: 1/10,700 of it was measured, 1/8,000 during a migration."""
LIMIT_MARGIN = 256 * MIB
"""Margin between measured use and the limit, at which the kernel kills QEMU. A healthy guest must never reach it."""
LIMIT_MARGIN_PER_DISK = 64 * MIB
"""QEMU caches metadata of an overlay and its backing image, up to 32 MiB each."""


def overhead_bytes(domain: DomainSpec, memory: GuestMemory, *, is_emulated: bool) -> int:
    """Return the memory that the Pod needs in addition to the guest's, in bytes."""
    buffer = TCG_TRANSLATION_BUFFER if is_emulated else 0
    bookkeeping = memory.guest // PAGE_TABLE_RATIO + memory.room // ROOM_RATIO
    return FIXED_OVERHEAD + OVERHEAD_PER_VCPU * domain.vcpus + bookkeeping + buffer


def describe_overhead(domain: DomainSpec, developer: DeveloperConfiguration) -> str:
    """Return the memory that a Pod of this domain needs in addition to the guest's, as an amount for the status."""
    return quantity.from_bytes(overhead_bytes(domain, guest_memory(domain), is_emulated=developer.use_emulation))


def build_resources(
    domain: DomainSpec,
    memory: GuestMemory,
    developer: DeveloperConfiguration,
    space: DiskSpace,
    current_bytes: int = 0,
) -> dict[str, dict[str, str]]:
    """Build the compute container's `resources`: the user's values plus the overhead.

    current_bytes: memory that a migrated guest has now, if that is more than its spec has.
    """
    requested, is_emulated = domain.resources, developer.use_emulation
    overhead = overhead_bytes(domain, memory, is_emulated=is_emulated)
    requests = {
        "cpu": _cpu_request(domain, developer),
        "memory": str(_memory_request(domain, memory) + (0 if requested.overcommit_guest_overhead else overhead)),
        "ephemeral-storage": str(REQUEST_BYTES),
    }
    largest = max(_memory_limit(domain, memory), _with_margin(domain, current_bytes))
    limits = {"memory": str(largest + overhead), "ephemeral-storage": str(space.pod)}
    if "cpu" in requested.limits:
        limits["cpu"] = str(requested.limits["cpu"])
    if not is_emulated:
        limits[KVM_DEVICE] = "1"
    if domain.devices.interfaces:
        limits[TUN_DEVICE] = "1"
    return {"requests": requests, "limits": limits}


def _memory_limit(domain: DomainSpec, memory: GuestMemory) -> int:
    """Return the user's limit; without one, a limit that kills a broken QEMU before it uses up its node's memory."""
    limit = domain.resources.limits.get("memory")
    if limit is not None:
        return quantity.to_bytes(limit)
    return _with_margin(domain, max(memory.guest, _memory_request(domain, memory)))


def _with_margin(domain: DomainSpec, size: int) -> int:
    margin = LIMIT_MARGIN + LIMIT_MARGIN_PER_DISK * len(domain.devices.disks)
    return size + margin if size else 0


def _cpu_request(domain: DomainSpec, developer: DeveloperConfiguration) -> str:
    requested = domain.resources
    cpu = requested.requests.get("cpu", requested.limits.get("cpu"))
    if cpu is not None:
        return str(cpu)
    return quantity.from_milli(max(1, domain.vcpus * 1000 // max(1, developer.cpu_allocation_ratio)))


def _memory_request(domain: DomainSpec, memory: GuestMemory) -> int:
    request = domain.resources.requests.get("memory")
    if request is not None:
        return quantity.to_bytes(request)
    return memory.guest
