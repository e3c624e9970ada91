# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks and CD-ROMs, backed by files or devices."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, element, flag, leaf


@element
class Boot:
    """A device's position in the boot order, from 1."""

    TAG: ClassVar[str] = "boot"
    order: int = attribute()


@element
class DiskDriver:
    """How QEMU treats the image."""

    TAG: ClassVar[str] = "driver"
    name: str = attribute()
    type: str = attribute()
    cache: str = attribute()
    error_policy: str = attribute()
    discard: str | None = attribute(default=None)


@element
class FileSource:
    """The image file."""

    TAG: ClassVar[str] = "source"
    file: str = attribute()


@element
class DeviceSource:
    """The block device."""

    TAG: ClassVar[str] = "source"
    device: str = attribute("dev")


@element
class Format:
    """The image's format."""

    TAG: ClassVar[str] = "format"
    type: str = attribute()


@element
class EndOfChain:
    """The image above has no backing file. libvirt then does not probe for one."""

    TAG: ClassVar[str] = "backingStore"


@element
class BackingStore:
    """The read-only image under an overlay."""

    TAG: ClassVar[str] = "backingStore"
    type: str = attribute()
    format: Format = child()
    source: FileSource = child()
    below: EndOfChain = child()


@element
class DiskTarget:
    """The disk's name and bus in the guest."""

    TAG: ClassVar[str] = "target"
    device: str = attribute("dev")
    bus: str = attribute()
    tray: str | None = attribute(default=None)


@element
class Alias:
    """Our name for a device. libvirt requires the prefix ua-."""

    TAG: ClassVar[str] = "alias"
    name: str = attribute()


@element
class Disk:
    """A disk of the guest."""

    TAG: ClassVar[str] = "disk"
    type: str = attribute()
    device: str = attribute()
    model: str | None = attribute(default=None)
    driver: DiskDriver = child()
    source: FileSource | DeviceSource = child()
    backing: BackingStore | EndOfChain = child()
    target: DiskTarget = child()
    read_only: bool = flag("readonly")
    shareable: bool = flag()
    """Other domains open the disk as well: QEMU does not lock it."""
    serial: str | None = leaf(default=None)
    boot: Boot | None = child(default=None)
    alias: Alias = child()
