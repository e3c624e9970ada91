# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory: the initial size, and the most that a guest can get while it runs (docs/adr/0017).

The device for more memory exists from the start, with nothing requested. A guest without room for more memory has none
of this in its domain.
"""

from __future__ import annotations

from libvirt_domain.model.cpu import Cell, MaxMemory, Memory, Numa
from libvirt_domain.model.memory import Block, MemoryDevice, Requested, Size, Target

from controlplane.api.objects.guest_memory import BLOCK_BYTES, guest_bytes, most_bytes, room_bytes
from controlplane.api.objects.vmi.domain import Cpu as CpuSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import NotBuildableError

_UNIT = "b"


def build_memory(vmi: VirtualMachineInstance) -> Memory:
    """Return the initial memory plus the device's: older versions of libvirt require the sum."""
    size = guest_bytes(vmi.spec.domain)
    if size <= 0:
        raise NotBuildableError("spec.domain.memory.guest", "the size of the guest's memory is needed, e.g. 1Gi")
    return Memory(unit=_UNIT, size=size + room_bytes(vmi.spec.domain))


def build_max_memory(vmi: VirtualMachineInstance) -> MaxMemory | None:
    """Return the most memory that the guest can get, if that is more than the initial size."""
    return MaxMemory(slots=0, unit=_UNIT, size=most_bytes(vmi.spec.domain)) if room_bytes(vmi.spec.domain) else None


def build_numa(vmi: VirtualMachineInstance) -> Numa | None:
    """Return the NUMA cell that libvirt requires where memory can be added."""
    if not room_bytes(vmi.spec.domain):
        return None
    cpus = (vmi.spec.domain.cpu or CpuSpec()).most_vcpus
    cell = Cell(id=0, cpus="0" if cpus == 1 else f"0-{cpus - 1}", memory=guest_bytes(vmi.spec.domain), unit=_UNIT)
    return Numa(cells=(cell,))


def build_memory_device(vmi: VirtualMachineInstance) -> MemoryDevice | None:
    """Return the device for more memory."""
    room = room_bytes(vmi.spec.domain)
    return virtio_mem(room, 0) if room else None


def virtio_mem(size: int, requested: int) -> MemoryDevice:
    """Return a virtio-mem device. size, requested: bytes."""
    target = Target(
        size=Size(unit=_UNIT, size=size),
        node=0,
        block=Block(unit=_UNIT, size=BLOCK_BYTES),
        requested=Requested(unit=_UNIT, size=requested),
    )
    return MemoryDevice(model="virtio-mem", target=target)
