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

from controlplane.api.objects.guest_memory import BLOCK_BYTES, GuestMemory
from controlplane.domain.builders.facts import NotBuildableError

_UNIT = "b"


def build_memory(memory: GuestMemory) -> Memory:
    """Return the initial memory plus the device's: older versions of libvirt require the sum."""
    if memory.guest <= 0:
        raise NotBuildableError("spec.domain.memory.guest", "the size of the guest's memory is needed, e.g. 1Gi")
    return Memory(unit=_UNIT, size=memory.guest + memory.room)


def build_max_memory(memory: GuestMemory) -> MaxMemory | None:
    """Return the most memory that the guest can get, if that is more than the initial size."""
    return MaxMemory(slots=0, unit=_UNIT, size=memory.most) if memory.room else None


def build_numa(memory: GuestMemory, vcpus: int) -> Numa | None:
    """Return the NUMA cell that libvirt requires where memory can be added. vcpus: the most that the guest can have."""
    if not memory.room:
        return None
    cell = Cell(id=0, cpus="0" if vcpus == 1 else f"0-{vcpus - 1}", memory=memory.guest, unit=_UNIT)
    return Numa(cells=(cell,))


def build_memory_device(memory: GuestMemory) -> MemoryDevice | None:
    """Return the device for more memory."""
    return virtio_mem(memory.room, 0) if memory.room else None


def virtio_mem(size: int, requested: int) -> MemoryDevice:
    """Return a virtio-mem device. size, requested: bytes."""
    target = Target(
        size=Size(unit=_UNIT, size=size),
        node=0,
        block=Block(unit=_UNIT, size=BLOCK_BYTES),
        requested=Requested(unit=_UNIT, size=requested),
    )
    return MemoryDevice(model="virtio-mem", target=target)
