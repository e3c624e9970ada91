# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machine type, firmware, kernel boot, SMBIOS and features."""

from __future__ import annotations

from libvirt_domain.model.machine import (
    Apic,
    Bios,
    Features,
    Loader,
    Nvram,
    Os,
    OsType,
    SmbiosEntry,
    SmbiosMode,
    SmbiosSystem,
    Smm,
    SysInfo,
    TbCache,
    Tcg,
    VmPort,
)

from controlplane.api.objects.vmi.domain import Firmware, KernelBoot
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import Facts, NotBuildableError
from controlplane.domain.guest_identity import firmware_uuid
from controlplane.domain.volumes import kernel_boot

_OVMF = "/usr/share/OVMF"


def build_os(vmi: VirtualMachineInstance, facts: Facts) -> Os:
    """Return the machine type, the firmware and what boots."""
    machine = vmi.spec.domain.machine
    kernel = _firmware(vmi).kernel_boot
    loader, nvram = _efi(vmi)
    return Os(
        type=OsType(kind="hvm", arch="x86_64", machine=(machine and machine.type) or facts.default_machine),
        loader=loader,
        nvram=nvram,
        kernel=_boot_file(kernel, "kernel"),
        initrd=_boot_file(kernel, "initrd"),
        kernel_arguments=(kernel.kernel_args or None) if kernel else None,
        bios=_bios(vmi),
        smbios=SmbiosMode(mode="sysinfo"),
    )


def build_sysinfo(vmi: VirtualMachineInstance) -> SysInfo:
    """Fill SMBIOS table 1 as upstream does: guests (and their licences) recognise a KubeVirt machine by it."""
    entries = [
        SmbiosEntry(name="manufacturer", value="KubeVirt"),
        SmbiosEntry(name="product", value="None"),
        SmbiosEntry(name="uuid", value=firmware_uuid(vmi)),
        SmbiosEntry(name="family", value="KubeVirt"),
    ]
    if serial := _firmware(vmi).serial:
        entries.append(SmbiosEntry(name="serial", value=serial))
    return SysInfo(kind="smbios", system=SmbiosSystem(entries=tuple(entries)))


def build_features(vmi: VirtualMachineInstance, facts: Facts) -> Features:
    """Return the machine's features. VMware's port is off, because it misleads guests."""
    features = vmi.spec.domain.features
    apic = features.apic if features else None
    return Features(
        acpi=has_acpi(vmi),
        apic=Apic(end_of_interrupt=apic.end_of_interrupt or None) if apic and apic.enabled is not False else None,
        vmport=VmPort(state=False),
        smm=Smm(state=features.smm.enabled is not False) if features and features.smm else None,
        tcg=None if facts.is_kvm else Tcg(tb_cache=TbCache(unit="MiB", size=facts.tb_cache_mib)),
    )


def has_acpi(vmi: VirtualMachineInstance) -> bool:
    """Tell whether the guest has ACPI, without which it does not notice the power button."""
    features = vmi.spec.domain.features
    return features is None or features.acpi.enabled is not False


def _firmware(vmi: VirtualMachineInstance) -> Firmware:
    return vmi.spec.domain.firmware or Firmware()


def _boot_file(kernel: KernelBoot | None, which: str) -> str | None:
    if kernel is None or kernel.container is None:
        return None
    try:
        return kernel_boot.in_domain(getattr(kernel.container, f"{which}_path"))
    except ValueError as error:
        raise NotBuildableError(f"spec.domain.firmware.kernelBoot.container.{which}Path", str(error)) from error


def _bios(vmi: VirtualMachineInstance) -> Bios | None:
    bootloader = _firmware(vmi).bootloader
    if bootloader is None or bootloader.bios is None or not bootloader.bios.use_serial:
        return None
    return Bios(use_serial=True)


def _efi(vmi: VirtualMachineInstance) -> tuple[Loader | None, Nvram | None]:
    bootloader = _firmware(vmi).bootloader
    if bootloader is None or bootloader.efi is None:
        return None, None
    secure = bootloader.efi.secure_boot is not False
    code, variables = ("CODE_4M.secboot", "VARS_4M.ms") if secure else ("CODE_4M", "VARS_4M")
    loader = Loader(path=f"{_OVMF}/OVMF_{code}.fd", read_only=True, secure=secure, kind="pflash")
    return loader, Nvram(template=f"{_OVMF}/OVMF_{variables}.fd")
