# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole domain."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, children, element, leaf
from .clock import Clock
from .console import Channel, Console, Graphics, Serial, Video
from .cpu import Cpu, MaxMemory, Memory, VcpuCount
from .device import Controller, MemoryBalloon, Panic, Rng, Watchdog
from .disk import Disk
from .interface import Interface
from .machine import Features, Os, SysInfo
from .memory import MemoryDevice
from .metadata import Metadata


@element
class Devices:
    """All devices of the domain."""

    TAG: ClassVar[str] = "devices"
    controllers: tuple[Controller, ...] = children()
    disks: tuple[Disk, ...] = children()
    interfaces: tuple[Interface, ...] = children()
    serials: tuple[Serial, ...] = children()
    consoles: tuple[Console, ...] = children()
    channels: tuple[Channel, ...] = children()
    graphics: tuple[Graphics, ...] = children()
    videos: tuple[Video, ...] = children()
    rng: Rng | None = child(default=None)
    memory_device: MemoryDevice | None = child(default=None)
    memory_balloon: MemoryBalloon = child()
    watchdog: Watchdog | None = child(default=None)
    panics: tuple[Panic, ...] = children()


@element
class Domain:
    """A domain as libvirt defines it."""

    TAG: ClassVar[str] = "domain"
    type: str = attribute()
    name: str = leaf()
    uuid: str = leaf()
    metadata: Metadata = child()
    max_memory: MaxMemory | None = child(default=None)
    memory: Memory = child()
    vcpu: VcpuCount = child()
    sysinfo: SysInfo = child()
    os: Os = child()
    features: Features = child()
    cpu: Cpu = child()
    clock: Clock = child()
    on_poweroff: str = leaf()
    on_reboot: str = leaf()
    on_crash: str = leaf()
    devices: Devices = child()
