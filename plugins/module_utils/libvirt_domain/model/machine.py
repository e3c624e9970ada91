# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boot, firmware, SMBIOS and features."""

from __future__ import annotations

from typing import ClassVar

from ..codec import attribute, child, children, element, flag, leaf, text


@element
class OsType:
    """The machine type that the guest sees."""

    TAG: ClassVar[str] = "type"
    kind: str = text()
    arch: str = attribute()
    machine: str = attribute()


@element
class SmbiosMode:
    """The source of the SMBIOS tables."""

    TAG: ClassVar[str] = "smbios"
    mode: str = attribute()


@element
class Bios:
    """Options of the BIOS."""

    TAG: ClassVar[str] = "bios"
    use_serial: bool | None = attribute("useserial", default=None)


@element
class Loader:
    """A firmware image that is not the machine's default."""

    TAG: ClassVar[str] = "loader"
    path: str = text()
    read_only: bool = attribute("readonly")
    secure: bool = attribute()
    kind: str = attribute("type")


@element
class Nvram:
    """The firmware's variables: a file of the guest, which libvirt creates from a template."""

    TAG: ClassVar[str] = "nvram"
    template: str = attribute()


@element
class Os:
    """What the guest boots, and with which firmware."""

    TAG: ClassVar[str] = "os"
    type: OsType = child()
    loader: Loader | None = child(default=None)
    nvram: Nvram | None = child(default=None)
    kernel: str | None = leaf(default=None)
    initrd: str | None = leaf(default=None)
    kernel_arguments: str | None = leaf("cmdline", default=None)
    bios: Bios | None = child(default=None)
    smbios: SmbiosMode = child()


@element
class SmbiosEntry:
    """One string of an SMBIOS table."""

    TAG: ClassVar[str] = "entry"
    name: str = attribute()
    value: str = text()


@element
class SmbiosSystem:
    """SMBIOS table 1."""

    TAG: ClassVar[str] = "system"
    entries: tuple[SmbiosEntry, ...] = children()


@element
class SysInfo:
    """The SMBIOS tables that we fill."""

    TAG: ClassVar[str] = "sysinfo"
    kind: str = attribute("type")
    system: SmbiosSystem = child()


@element
class Apic:
    """The interrupt controller's options."""

    TAG: ClassVar[str] = "apic"
    end_of_interrupt: bool | None = attribute("eoi", words=("on", "off"), default=None)


@element
class VmPort:
    """VMware's I/O port."""

    TAG: ClassVar[str] = "vmport"
    state: bool = attribute(words=("on", "off"))


@element
class Smm:
    """System management mode."""

    TAG: ClassVar[str] = "smm"
    state: bool = attribute(words=("on", "off"))


@element
class TbCache:
    """The size of the buffer for translated code."""

    TAG: ClassVar[str] = "tb-cache"
    unit: str = attribute()
    size: int = text()


@element
class Tcg:
    """Options of QEMU's emulation."""

    TAG: ClassVar[str] = "tcg"
    tb_cache: TbCache = child()


@element
class Features:
    """Features of the machine besides its devices."""

    TAG: ClassVar[str] = "features"
    acpi: bool = flag()
    apic: Apic | None = child(default=None)
    vmport: VmPort = child()
    smm: Smm | None = child(default=None)
    tcg: Tcg | None = child(default=None)
