# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Buses and the small virtio devices."""

from __future__ import annotations

from libvirt_domain.model.device import BalloonStatistics, Controller, MemoryBalloon, Panic, Rng, RngBackend, Watchdog
from libvirt_domain.model.disk import Alias

from controlplane.api.objects.vmi.instance import VirtualMachineInstance

VIRTIO = "virtio-non-transitional"


def build_controllers(vmi: VirtualMachineInstance) -> tuple[Controller, ...]:
    """Return the controllers where libvirt's default is unsuitable: USB only when it is used, SCSI by virtio."""
    buses = {disk.bus for disk in vmi.spec.domain.devices.disks}
    made = [
        Controller(type="usb", index=0, model="qemu-xhci" if "usb" in buses else "none"),
        Controller(type="virtio-serial", index=0, model=VIRTIO),
    ]
    if "scsi" in buses:
        made.append(Controller(type="scsi", index=0, model=VIRTIO))
    return tuple(made)


BALLOON_PERIOD_SECONDS = 10
"""As upstream. The metrics of a guest's memory are not newer."""


def build_rng(vmi: VirtualMachineInstance) -> Rng | None:
    """Return the random number generator, if declared."""
    if vmi.spec.domain.devices.rng is None:
        return None
    return Rng(model=VIRTIO, backend=RngBackend(model="random", source="/dev/urandom"))


def build_memory_balloon(vmi: VirtualMachineInstance) -> MemoryBalloon:
    """Return the balloon. Free pages that the guest reports go back to the node."""
    if vmi.spec.domain.devices.autoattach_mem_balloon is False:
        return MemoryBalloon(model="none")
    return MemoryBalloon(
        model=VIRTIO, free_page_reporting=True, statistics=BalloonStatistics(period=BALLOON_PERIOD_SECONDS)
    )


def build_watchdog(vmi: VirtualMachineInstance) -> Watchdog | None:
    """Return the watchdog, if declared. The default action is a reset."""
    watchdog = vmi.spec.domain.devices.watchdog
    if watchdog is None:
        return None
    action = "" if watchdog.i6300esb is None else watchdog.i6300esb.action
    return Watchdog(model="i6300esb", action=action or "reset", alias=Alias(name=f"ua-{watchdog.name}"))


def build_panics(vmi: VirtualMachineInstance) -> tuple[Panic, ...]:
    """Return the panic devices."""
    return tuple(Panic(model=device.built_model) for device in vmi.spec.domain.devices.panic_devices)
