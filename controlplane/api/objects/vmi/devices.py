# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Devices of a machine: disks, interfaces, and devices that are attached by default. Types only."""

from __future__ import annotations

from typing import Annotated

from controlplane.api.objects.meta import Empty, Node
from controlplane.api.schema.bounds import LABEL, BootOrder, InterfaceName, VolumeName, bounded, one_of

DEFAULT_BUS = "sata"


class DiskTarget(Node, frozen=True, kw_only=True):
    """An ordinary disk."""

    bus: Annotated[str, one_of("virtio", "sata", "scsi", "usb")] = ""
    """How the guest sees it: virtio, sata, scsi or usb; sata if not set."""
    readonly: bool = False
    """Refuse the guest's writes."""


class CdromTarget(Node, frozen=True, kw_only=True):
    """An optical drive."""

    bus: Annotated[str, one_of("sata", "scsi", "usb")] = ""
    """How the guest sees it: sata, scsi or usb; sata if not set."""
    readonly: bool | None = None
    """True if not set."""
    tray: Annotated[str, one_of("closed", "open")] = ""
    """State of the tray: closed (default) or open."""


class Disk(Node, frozen=True, kw_only=True):
    """A disk; its data comes from the volume of the same name."""

    name: VolumeName
    """Name of the disk and of its volume."""
    disk: DiskTarget | None = None
    """Attach as an ordinary disk (default)."""
    cdrom: CdromTarget | None = None
    """Attach as an optical drive."""
    boot_order: BootOrder | None = None
    """Place in the boot order, from 1; unique over disks and interfaces."""
    serial: Annotated[str, bounded("letters, digits and any of _.+-", pattern="[A-Za-z0-9_.+-]+", max_length=256)] = ""
    """Serial number that the guest sees."""
    cache: Annotated[str, one_of("none", "writethrough", "writeback")] = ""
    """Host cache mode: none, writethrough or writeback."""
    shareable: bool = False
    """Several machines write to the claim at once: their guests need a file system for that. Its cache mode is none."""

    @property
    def bus(self) -> str:
        """Where the guest finds it: as declared, or the default."""
        declared = (self.cdrom.bus if self.cdrom else "") or (self.disk.bus if self.disk else "")
        return declared or DEFAULT_BUS

    @property
    def is_read_only(self) -> bool:
        """Tell whether the disk refuses the guest's writes. Its volume may refuse them as well."""
        if self.cdrom is not None:
            return self.cdrom.readonly is not False
        return self.disk is not None and self.disk.readonly


class Port(Node, frozen=True, kw_only=True):
    """A port that is forwarded to the guest."""

    name: Annotated[
        str,
        bounded("a port name: lower-case letters, digits and '-'", pattern=LABEL, max_length=63),
    ] = ""
    """Name of the port."""
    protocol: Annotated[str, one_of("TCP", "UDP")] = ""
    """TCP (default) or UDP."""
    port: Annotated[int, bounded(minimum=1, maximum=65535)]
    """Port number, 1 to 65535."""


class Interface(Node, frozen=True, kw_only=True):
    """A network interface; it is attached to the network of the same name."""

    name: InterfaceName
    """Name of the interface and of its network."""
    masquerade: Empty | None = None
    """The guest gets a private address; traffic is translated to the Pod's address."""
    model: Annotated[str, one_of("virtio", "e1000", "e1000e", "rtl8139", unbuilt=("igb", "ne2k_pci", "pcnet"))] = ""
    """How the guest sees it: virtio (default), e1000, e1000e, rtl8139."""
    mac_address: Annotated[
        str,
        bounded(
            "a MAC address, e.g. 02:12:34:56:78:9a", pattern="[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}", max_length=17
        ),
    ] = ""
    """Address that the guest sees; derived from the machine if not set."""
    ports: Annotated[tuple[Port, ...], bounded(max_items=256)] = ()
    """Ports that are forwarded; all if none is listed."""
    boot_order: BootOrder | None = None
    """Place in the boot order, from 1; unique over disks and interfaces."""


class PanicDevice(Node, frozen=True, kw_only=True):
    """A device by which the guest's kernel says that it has panicked, which ends the run: it has failed."""

    model: Annotated[str, one_of("isa", "hyperv", "pvpanic")] = ""
    """How the guest sees it: isa (default), pvpanic (on the PCI bus) or hyperv (for Windows)."""

    @property
    def built_model(self) -> str:
        """The model that the guest gets."""
        return self.model or "isa"


class I6300esbWatchdog(Node, frozen=True, kw_only=True):
    """Intel's watchdog on the PCI bus."""

    action: Annotated[str, one_of("reset", "poweroff", "shutdown")] = ""
    """What happens to a guest that lets it expire: reset (default) boots it again, poweroff ends its run, which has
    failed, shutdown presses its power button."""


class Watchdog(Node, frozen=True, kw_only=True):
    """A watchdog, which expires when the guest has begun to serve it and does so no more."""

    name: InterfaceName
    """Name of the watchdog."""
    i6300esb: I6300esbWatchdog | None = None
    """Intel's watchdog on the PCI bus (default)."""


class DeviceSpec(Node, frozen=True, kw_only=True):
    """Disks, interfaces and other devices."""

    disks: Annotated[tuple[Disk, ...], bounded(max_items=256)] = ()
    """Disks; each needs a volume of the same name."""
    interfaces: Annotated[tuple[Interface, ...], bounded(max_items=32)] = ()
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
    panic_devices: Annotated[tuple[PanicDevice, ...], bounded(max_items=8)] = ()
    """Devices by which the guest's kernel says that it has panicked; one of each model."""
    watchdog: Watchdog | None = None
    """A watchdog."""
