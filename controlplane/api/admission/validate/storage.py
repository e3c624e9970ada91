# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about disks and volumes."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from controlplane.api.admission.problem import Problem, below, excerpt
from controlplane.api.admission.validate.serials import check_serial
from controlplane.api.launch_plan import TEXT_LIMIT_BYTES
from controlplane.api.objects import quantity
from controlplane.api.objects.claim import claim_name
from controlplane.api.objects.vmi.devices import Disk
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.volumes import CloudInitNoCloud, EmptyDisk, Volume

SEED_BYTES = 2048
"""Limit of inline user data or network data, as upstream. Larger data goes into a Secret."""
MIN_DISK = 2**20
MAX_DISK = 16 * 2**40

_SOURCES = {
    name: member
    for name, member in zip(Volume.__struct_encode_fields__, Volume.__struct_fields__, strict=True)
    if member != "name"
}
"""Members of a volume that are its source, by their names in JSON."""


def check_storage(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check disks and volumes, and that each disk has a volume."""
    disks, disk_path = spec.domain.devices.disks, below(path, "domain.devices.disks")
    volume_path = below(path, "volumes")
    yield from duplicates((disk.name for disk in disks), disk_path)
    yield from duplicates((volume.name for volume in spec.volumes), volume_path)
    volume_names = {volume.name for volume in spec.volumes}
    for index, disk in enumerate(disks):
        here = below(disk_path, index)
        yield from _disk(disk, here)
        yield from check_serial(disk, here)
        yield from _shareable(disk, spec.volumes, here)
        if disk.name not in volume_names:
            text = f"no volume is called {excerpt(disk.name)}; add it to spec.volumes or remove the disk"
            yield Problem(below(here, "name"), text)
    for index, volume in enumerate(spec.volumes):
        yield from _volume(volume, below(volume_path, index))
    yield from _texts(spec.volumes, volume_path)
    yield from _claims(spec, volume_path)
    yield from _boot_order(spec, path)


def duplicates(names: Iterable[str], path: str) -> Iterator[Problem]:
    """Report each name that occurs earlier in the list."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            text = f"{excerpt(name)} is already the name of {path}[{first[name]}]; names must be unique"
            yield Problem(below(below(path, index), "name"), text, "FieldValueDuplicate")
        first.setdefault(name, index)


def _disk(disk: Disk, path: str) -> Iterator[Problem]:
    if disk.disk is not None and disk.cdrom is not None:
        yield Problem(path, "has more than one of disk and cdrom; keep one")
    if disk.disk is not None and disk.disk.readonly and disk.disk.bus in ("", "sata"):
        yield Problem(below(path, "disk.readonly"), "a sata disk cannot be read-only; use bus virtio or a cdrom")


def _shareable(disk: Disk, volumes: Iterable[Volume], path: str) -> Iterator[Problem]:
    if not disk.shareable:
        return
    if any(volume.name == disk.name and claim_name(volume) is None for volume in volumes):
        text = "no other machine can have this disk; use a persistentVolumeClaim or dataVolume, or remove shareable"
        yield Problem(below(path, "shareable"), text)
    if disk.cache not in ("", "none"):
        text = f"{excerpt(disk.cache)} would hide the writes of other machines; remove it, or remove shareable"
        yield Problem(below(path, "cache"), text)


def _boot_order(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    devices = spec.domain.devices
    taken: dict[int, str] = {}
    listed = [("disk", f"disks[{index}]", disk.name, disk.boot_order) for index, disk in enumerate(devices.disks)]
    listed += [
        ("interface", f"interfaces[{index}]", interface.name, interface.boot_order)
        for index, interface in enumerate(devices.interfaces)
    ]
    for kind, device, name, order in listed:
        if order is not None and order in taken:
            text = f"{excerpt(order)} is already used by {taken[order]}; give one of the two another number"
            where = below(path, f"domain.devices.{device}.bootOrder")
            yield Problem(where, text, "FieldValueDuplicate")
        elif order is not None:
            taken[order] = f"{kind} {excerpt(name)}"


def _volume(volume: Volume, path: str) -> Iterator[Problem]:
    sources = [name for name, member in _SOURCES.items() if getattr(volume, member) is not None]
    if len(sources) != 1:
        count = f"{len(sources)} sources" if sources else "no source"
        text = f"has {count}; needs exactly one of {', '.join(_SOURCES)}"
        yield Problem(path, text, "FieldValueInvalid" if sources else "FieldValueRequired")
    for name in sources:
        if name in _RULES:
            yield from _RULES[name](getattr(volume, _SOURCES[name]), below(path, name))


def _texts(volumes: Iterable[Volume], path: str) -> Iterator[Problem]:
    """Check that users' texts fit into the launch plan; see controlplane.api.launch_plan."""
    size = sum(len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) for text in _inline_texts(volumes))
    if size > TEXT_LIMIT_BYTES:
        text = (
            f"inline cloud-init data and paths have {size} bytes in all, at most {TEXT_LIMIT_BYTES} are allowed; "
            "put data into Secrets"
        )
        yield Problem(path, text)


def _inline_texts(volumes: Iterable[Volume]) -> Iterator[str]:
    for volume in volumes:
        if volume.container_disk is not None:
            yield volume.container_disk.path
        if (seed := volume.cloud_init_no_cloud) is not None:
            yield seed.user_data
            yield seed.network_data
            for encoded in (seed.user_data_base64, seed.network_data_base64):
                with contextlib.suppress(ValueError):  # fields.py reports it
                    yield base64.b64decode("".join(encoded.split())).decode()


def _claims(spec: VirtualMachineInstanceSpec, path: str) -> Iterator[Problem]:
    """Check that no claim is used twice, and that a read-only claim is attached read-only."""
    first: dict[str, int] = {}
    writable = {disk.name for disk in spec.domain.devices.disks if disk.cdrom is None and disk.bus == "sata"}
    for index, volume in enumerate(spec.volumes):
        name = claim_name(volume)
        if name is None:
            continue
        source, here = volume.persistent_volume_claim, below(path, index)
        where = below(here, "dataVolume.name" if source is None else "persistentVolumeClaim.claimName")
        if name in first:  # QEMU refuses to open the same disk twice
            text = f"{excerpt(name)} is already used by {path}[{first[name]}]; remove one"
            yield Problem(where, text, "FieldValueDuplicate")
        elif name:
            first[name] = index
        if source is not None and source.read_only and volume.name in writable:
            text = "a sata disk cannot be read-only; use bus virtio or a cdrom for it"
            yield Problem(below(here, "persistentVolumeClaim.readOnly"), text)


def _empty_disk(disk: EmptyDisk, path: str) -> Iterator[Problem]:
    try:
        size = quantity.to_bytes(disk.capacity)
    except quantity.QuantityError:
        return
    if not MIN_DISK <= size <= MAX_DISK:
        yield Problem(below(path, "capacity"), f"{excerpt(disk.capacity)} is out of range; must be from 1Mi to 16Ti")


def _cloud_init(seed: CloudInitNoCloud, path: str) -> Iterator[Problem]:
    user = {
        "userData": bool(seed.user_data),
        "userDataBase64": bool(seed.user_data_base64),
        "secretRef": seed.secret_ref is not None,
    }
    network = {
        "networkData": bool(seed.network_data),
        "networkDataBase64": bool(seed.network_data_base64),
        "networkDataSecretRef": seed.network_data_secret_ref is not None,
    }
    for kind, sources in (("user data", user), ("network data", network)):
        chosen = [name for name, present in sources.items() if present]
        if len(chosen) > 1:
            yield Problem(path, f"has {kind} in {' and '.join(chosen)}; keep exactly one")
    if not any(user.values()) and not any(network.values()):
        text = f"has no data; set one of {', '.join([*user, *network])}"
        yield Problem(path, text, "FieldValueRequired")
    yield from _inline(seed.user_data, seed.user_data_base64, path, "userData", "secretRef")
    yield from _inline(seed.network_data, seed.network_data_base64, path, "networkData", "networkDataSecretRef")
    yield from _reference(seed, path)


def _inline(plain: str, encoded: str, path: str, name: str, instead: str) -> Iterator[Problem]:
    """Check size and encoding of inline data. Messages never quote it: it may contain passwords."""
    if len(plain.encode(errors="surrogatepass")) > SEED_BYTES:
        yield _too_long(below(path, name), len(plain.encode(errors="surrogatepass")), instead)
    if not encoded:
        return
    where = below(path, f"{name}Base64")
    try:
        decoded = base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        yield Problem(where, "is not base64; encode the data with: base64 -w0 FILE")
        return
    if len(decoded) > SEED_BYTES:
        yield _too_long(where, len(decoded), instead)
    try:
        decoded.decode()
    except UnicodeDecodeError:
        # The launch plan is text. A Secret is mounted, so it may have any bytes.
        yield Problem(where, f"holds data that is not UTF-8 text; put it into a Secret and set {instead}")


def _too_long(path: str, size: int, instead: str) -> Problem:
    return Problem(
        path, f"has {size} bytes, at most {SEED_BYTES} are allowed inline; put it into a Secret and set {instead}"
    )


def _reference(seed: CloudInitNoCloud, path: str) -> Iterator[Problem]:
    for name, reference in (("secretRef", seed.secret_ref), ("networkDataSecretRef", seed.network_data_secret_ref)):
        if reference is not None and not reference.name:
            where = below(path, f"{name}.name")
            yield Problem(where, "is required; name a Secret in the machine's namespace", "FieldValueRequired")


_RULES: dict[str, Callable[[Any, str], Iterator[Problem]]] = {
    "cloudInitNoCloud": _cloud_init,
    "emptyDisk": _empty_disk,
}
"""Rules by source. Sources without rules over several fields are absent."""
