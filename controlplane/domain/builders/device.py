# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Buses and the small virtio devices."""

from __future__ import annotations

from libvirt_domain.model.device import Controller, MemoryBalloon, Panic, Rng, RngBackend, Watchdog
from libvirt_domain.model.disk import Alias

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.disk import bus_of

VIRTIO = "virtio-non-transitional"


def build_controllers(vmi: VirtualMachineInstance) -> tuple[Controller, ...]:
    """Return the buses that libvirt would choose otherwise: no USB that nobody uses, SCSI by virtio."""
    buses = {bus_of(disk) for disk in vmi.spec.domain.devices.disks}
    made = [
        Controller(type="usb", index=0, model="qemu-xhci" if "usb" in buses else "none"),
        Controller(type="virtio-serial", index=0, model=VIRTIO),
    ]
    if "scsi" in buses:
        made.append(Controller(type="scsi", index=0, model=VIRTIO))
    return tuple(made)


def build_rng(vmi: VirtualMachineInstance) -> Rng | None:
    """Return the source of randomness, if asked for."""
    if vmi.spec.domain.devices.rng is None:
        return None
    return Rng(model=VIRTIO, backend=RngBackend(model="random", source="/dev/urandom"))


def build_memory_balloon(vmi: VirtualMachineInstance) -> MemoryBalloon:
    """Return the balloon; free pages go back to the node as the guest reports them. Nobody reads its statistics."""
    if vmi.spec.domain.devices.autoattach_mem_balloon is False:
        return MemoryBalloon(model="none")
    return MemoryBalloon(model=VIRTIO, free_page_reporting=True)


def build_watchdog(vmi: VirtualMachineInstance) -> Watchdog | None:
    """Return the watchdog, if asked for; what lets it expire is reset unless something else is said."""
    asked = vmi.spec.domain.devices.watchdog
    if asked is None:
        return None
    action = "" if asked.i6300esb is None else asked.i6300esb.action
    return Watchdog(model="i6300esb", action=action or "reset", alias=Alias(name=f"ua-{asked.name}"))


def build_panics(vmi: VirtualMachineInstance) -> tuple[Panic, ...]:
    """Return the panic devices."""
    return tuple(Panic(model=one.built_model) for one in vmi.spec.domain.devices.panic_devices)
