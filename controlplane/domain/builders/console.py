# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial console, agent channel and VNC. On unless switched off, as upstream."""

from __future__ import annotations

from libvirt_domain.model.console import (
    AGENT_CHANNEL,
    Channel,
    ChannelTarget,
    Console,
    Graphics,
    Listen,
    Log,
    Serial,
    SerialSource,
    SerialTarget,
    Video,
    VideoModel,
)

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain import layout


def build_serials(vmi: VirtualMachineInstance) -> tuple[Serial, ...]:
    """Return the serial port, with a log. It is a socket, as upstream: QEMU polls a pty every second.

    A connected client must read: otherwise QEMU waits, and the guest's console with it.
    """
    if not _has_serial(vmi):
        return ()
    log = Log(file=layout.SERIAL_LOG, append=True)
    source = SerialSource(mode="bind", path=layout.SERIAL_SOCKET)
    return (Serial(type="unix", source=source, log=log, target=SerialTarget(type="isa-serial", port=0)),)


def build_consoles(vmi: VirtualMachineInstance) -> tuple[Console, ...]:
    """Make the serial port the guest's console."""
    return (Console(type="pty", target=SerialTarget(type="serial", port=0)),) if _has_serial(vmi) else ()


def build_channels() -> tuple[Channel, ...]:
    """Return the channel of the guest's agent. It is always there, as upstream."""
    return (Channel(type="unix", target=ChannelTarget(type="virtio", name=AGENT_CHANNEL)),)


def build_graphics(vmi: VirtualMachineInstance) -> tuple[Graphics, ...]:
    """Return a VNC server on a socket in the launcher's directory, reachable only through virt-handler."""
    if not _has_graphics(vmi):
        return ()
    return (Graphics(type="vnc", listen=Listen(type="socket", socket=layout.VNC_SOCKET)),)


def build_videos(vmi: VirtualMachineInstance) -> tuple[Video, ...]:
    """Return the graphics card that the firmware supports. 16 MiB are enough for VNC."""
    if not _has_graphics(vmi):
        return ()
    firmware = vmi.spec.domain.firmware
    is_efi = bool(firmware and firmware.bootloader and firmware.bootloader.efi is not None)
    model = VideoModel(type="bochs", heads=1) if is_efi else VideoModel(type="vga", vram=16384, heads=1)
    return (Video(model=model),)


def _has_serial(vmi: VirtualMachineInstance) -> bool:
    return vmi.spec.domain.devices.autoattach_serial_console is not False


def _has_graphics(vmi: VirtualMachineInstance) -> bool:
    return vmi.spec.domain.devices.autoattach_graphics_device is not False
