# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks: how each is attached. controlplane.domain.volumes decides about its file or device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from libvirt_domain.model.disk import (
    Alias,
    BackingStore,
    Boot,
    DeviceSource,
    Disk,
    DiskDriver,
    DiskTarget,
    EndOfChain,
    FileSource,
    Format,
)

from controlplane.api.objects.vmi.devices import Disk as DiskSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.domain.builders.facts import Facts, NotBuildableError
from controlplane.domain.volumes.kind import DiskImage
from controlplane.domain.volumes.registry import volume_in_domain

_PREFIXES = {"virtio": "vd", "sata": "sd", "scsi": "sd", "usb": "sd"}


def build_disks(vmi: VirtualMachineInstance, facts: Facts) -> tuple[Disk, ...]:
    """Return the disks in the order of the spec, which also determines their names in the guest."""
    volumes = {volume.name: volume for volume in vmi.spec.volumes}
    made = []
    for index, (spec, device) in enumerate(_named(vmi)):
        where = f"spec.domain.devices.disks[{index}]"
        if spec.name not in volumes:
            raise NotBuildableError(f"{where}.name", f"no volume has the name {spec.name!r}")
        made.append(_build_disk(facts, spec, volumes[spec.name], device=device, where=where))
    return tuple(made)


def device_names(vmi: VirtualMachineInstance) -> dict[str, str]:
    """Return the device name of each disk in the guest, e.g. vda. NotBuildableError."""
    return {spec.name: device for spec, device in _named(vmi)}


def _named(vmi: VirtualMachineInstance) -> Iterator[tuple[DiskSpec, str]]:
    taken: Counter[str] = Counter()
    for index, spec in enumerate(vmi.spec.domain.devices.disks):
        prefix = _PREFIXES.get(spec.bus)
        if prefix is None:
            where = f"spec.domain.devices.disks[{index}]"
            raise NotBuildableError(where, f"bus {spec.bus!r} is not one of {', '.join(sorted(_PREFIXES))}")
        yield spec, prefix + _letters(taken[prefix])
        taken[prefix] += 1


def _build_disk(facts: Facts, spec: DiskSpec, volume: Volume, *, device: str, where: str) -> Disk:
    image = _image(volume, facts, where)
    return Disk(
        type="block" if image.is_block else "file",
        device="cdrom" if spec.cdrom else "disk",
        model="virtio-non-transitional" if spec.bus == "virtio" else None,
        driver=DiskDriver(
            name="qemu",
            type=image.format,
            cache=_cache(spec, image, facts, where),
            error_policy="stop",  # pause the guest on an I/O error: its file systems stay intact
            discard=None if spec.cdrom else "unmap",
        ),
        source=DeviceSource(device=image.path) if image.is_block else FileSource(file=image.path),
        backing=_backing(image),
        target=DiskTarget(device=device, bus=spec.bus, tray=(spec.cdrom.tray or None) if spec.cdrom else None),
        read_only=spec.is_read_only or image.is_read_only,
        shareable=spec.shareable,
        serial=spec.serial or None,
        boot=Boot(order=spec.boot_order) if spec.boot_order else None,
        alias=Alias(name=f"ua-{spec.name}"),
    )


def _image(volume: Volume, facts: Facts, where: str) -> DiskImage:
    try:
        return volume_in_domain(volume, facts.report)
    except ValueError as error:
        raise NotBuildableError(where, str(error)) from error


def _backing(image: DiskImage) -> BackingStore | EndOfChain:
    """Write out the whole backing chain and its end, so that libvirt probes nothing."""
    below = image.below
    if below is None:
        return EndOfChain()
    return BackingStore(
        type="file", format=Format(type=below.format), source=FileSource(file=below.path), below=EndOfChain()
    )


def _cache(spec: DiskSpec, image: DiskImage, facts: Facts, where: str) -> str:
    if spec.shareable:  # the host's cache would hide the writes of other machines
        if not (facts.report.direct_io or image.is_block):
            raise NotBuildableError(f"{where}.shareable", "the node's storage cannot do direct I/O: use a Block claim")
        return "none"
    if spec.cache == "none" and not facts.report.direct_io:
        raise NotBuildableError(f"{where}.cache", "the node's storage cannot do direct I/O: leave cache out")
    return spec.cache or ("none" if facts.report.direct_io else "writethrough")


def _letters(number: int) -> str:
    """Return a, b, ... z, aa, ab, ... as Linux names disks."""
    letters = ""
    number += 1
    while number:
        number, remainder = divmod(number - 1, 26)
        letters = chr(ord("a") + remainder) + letters
    return letters
