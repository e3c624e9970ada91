# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of a machine: disks, interfaces, and what is attached without asking. Types only."""

from __future__ import annotations

from controlplane.api.meta import Empty, Node


class DiskTarget(Node, frozen=True, kw_only=True):
    """An ordinary disk."""

    bus: str = ""
    """How the guest sees it: virtio, sata, scsi or usb; sata if not set."""
    readonly: bool = False
    """Refuse the guest's writes."""


class CdromTarget(Node, frozen=True, kw_only=True):
    """An optical drive."""

    bus: str = ""
    """How the guest sees it: sata or scsi; sata if not set."""
    readonly: bool | None = None
    """True if not set."""
    tray: str = ""
    """State of the tray: closed (default) or open."""


class Disk(Node, frozen=True, kw_only=True):
    """A disk; its data comes from the volume of the same name."""

    name: str
    """Name of the disk and of its volume."""
    disk: DiskTarget | None = None
    """Attach as an ordinary disk (default)."""
    cdrom: CdromTarget | None = None
    """Attach as an optical drive."""
    boot_order: int | None = None
    """Place in the boot order, from 1; unique over disks and interfaces."""
    serial: str = ""
    """Serial number that the guest sees."""
    cache: str = ""
    """Host cache mode: none, writethrough or writeback."""


class Port(Node, frozen=True, kw_only=True):
    """A port that is forwarded to the guest."""

    name: str = ""
    """Name of the port."""
    protocol: str = ""
    """TCP (default) or UDP."""
    port: int
    """Port number, 1 to 65535."""


class Interface(Node, frozen=True, kw_only=True):
    """A network interface; it is attached to the network of the same name."""

    name: str
    """Name of the interface and of its network."""
    masquerade: Empty | None = None
    """The guest gets a private address; traffic is translated to the Pod's address."""
    model: str = ""
    """How the guest sees it: virtio (default), e1000, e1000e, rtl8139."""
    mac_address: str = ""
    """Address that the guest sees; derived from the machine if not set."""
    ports: tuple[Port, ...] = ()
    """Ports that are forwarded; all if none is listed."""
    boot_order: int | None = None
    """Place in the boot order, from 1; unique over disks and interfaces."""


class DeviceSpec(Node, frozen=True, kw_only=True):
    """Disks, interfaces and other devices."""

    disks: tuple[Disk, ...] = ()
    """Disks; each needs a volume of the same name."""
    interfaces: tuple[Interface, ...] = ()
    """Network interfaces; each needs a network of the same name."""
    rng: Empty | None = None
    """Give the guest entropy of the host."""
    autoattach_pod_interface: bool | None = None
    """False: no interface on the Pod network unless one is listed. True if not set."""
    autoattach_serial_console: bool | None = None
    """False: no serial console. True if not set."""
    autoattach_graphics_device: bool | None = None
    """False: no graphics device. True if not set."""
    autoattach_mem_balloon: bool | None = None
    """False: no memory balloon. True if not set."""
    network_interface_multiqueue: bool | None = None
    """One queue pair per virtual CPU on virtio interfaces."""
    block_multi_queue: bool | None = None
    """One queue per virtual CPU on virtio disks."""
