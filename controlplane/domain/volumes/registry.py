# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of volumes, one row each, and the functions for the builders of Pod, launch plan and domain."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

from controlplane.api.launch_plan import DiskSource, LauncherReport
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes import (
    cloud_init_no_cloud,
    container_disk,
    data_volume,
    empty_disk,
    kernel_boot,
    persistent_volume_claim,
)
from controlplane.domain.volumes.kind import DiskImage, InPod, VolumeKind

NO_CLAIMS: Claims = MappingProxyType({})
VOLUME_KINDS: tuple[VolumeKind, ...] = (
    container_disk.KIND,
    empty_disk.KIND,
    cloud_init_no_cloud.KIND,
    persistent_volume_claim.KIND,
    data_volume.KIND,
)


def volumes_in_pod(spec: VirtualMachineInstanceSpec, claims: Claims = NO_CLAIMS) -> tuple[InPod, ...]:
    """Return the Pod's volumes and mounts for the machine's volumes and its kernel boot."""
    needed = [kind.in_pod(volume.name, source, claims) for volume, kind, source in _sourced(spec)]
    container = kernel_boot.container_of(spec)
    return (*needed, *([] if container is None else [kernel_boot.in_pod(container)]))


def volumes_in_plan(
    spec: VirtualMachineInstanceSpec, guest: GuestIdentity, claims: Claims = NO_CLAIMS
) -> tuple[DiskSource, ...]:
    """Return the disk sources that the launcher prepares. ValueError names a volume that cannot be prepared."""
    steps = (kind.in_plan(volume.name, source, guest, claims) for volume, kind, source in _sourced(spec))
    return tuple(step for step in steps if step is not None)


def bytes_taken(spec: VirtualMachineInstanceSpec, largest: int) -> int:
    """Return the most bytes of the node's disk that the machine uses. largest: the limit of a containerDisk."""
    return sum(kind.takes(source, largest) for _unused, kind, source in _sourced(spec))


def reported_images(spec: VirtualMachineInstanceSpec) -> dict[str, str]:
    """Return the volumes whose image the launcher must report, and the directory of each."""
    return {
        volume.name: kind.reported_below(volume.name)
        for volume, kind, _unused in _sourced(spec)
        if kind.reported_below is not None
    }


def volume_in_domain(volume: Volume, report: LauncherReport) -> DiskImage:
    """Return the guest's disk of a volume. ValueError says why there is none."""
    sourced = _source(volume)
    if sourced is None:
        raise ValueError(f"volume {volume.name!r} has no source that this version can attach")
    kind, source = sourced
    return kind.in_domain(volume.name, source, report)


def _sourced(spec: VirtualMachineInstanceSpec) -> Iterator[tuple[Volume, VolumeKind, Any]]:
    for volume in spec.volumes:
        if sourced := _source(volume):
            yield volume, *sourced


def _source(volume: Volume) -> tuple[VolumeKind, Any] | None:
    """Return the volume's source. Admission ensures that there is one; of several the first row wins."""
    for kind in VOLUME_KINDS:
        source = getattr(volume, kind.member)
        if source is not None:
            return kind, source
    return None
