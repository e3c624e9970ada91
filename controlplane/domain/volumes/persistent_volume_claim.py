# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""persistentVolumeClaim: a disk that outlives the run, as the file disk.img on a volume or as a block device.

The claim's volume mode decides which. The launcher reports it, because virt-handler reads no claims.
"""

from __future__ import annotations

from controlplane.api import launch_plan
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.volumes import PersistentVolumeClaimSource
from controlplane.domain import layout
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes.kind import DiskImage, InPod, Mounted, VolumeKind


def _in_pod(name: str, source: PersistentVolumeClaimSource, claims: Claims) -> InPod:
    claimed = {"claimName": source.claim_name, **({"readOnly": True} if source.read_only else {})}
    volume = {"name": layout.pod_volume(name), "persistentVolumeClaim": claimed}
    claim = claims.get(source.claim_name)
    if claim is not None and claim.is_block:
        device = {"name": volume["name"], "devicePath": layout.claim_device(name)}
        return InPod(mounted=(Mounted(volume, device=device),))
    read_only = {"readOnly": True} if source.read_only else {}
    mount = {"name": volume["name"], "mountPath": layout.claim_mount(name), **read_only}
    return InPod(mounted=(Mounted(volume, mount=mount),))


def _in_plan(
    name: str, source: PersistentVolumeClaimSource, _guest: GuestIdentity, claims: Claims
) -> launch_plan.DiskSource:
    claim = claims.get(source.claim_name)
    if claim is None:
        raise ValueError(f"volume {name}: PersistentVolumeClaim {source.claim_name} does not exist")
    return launch_plan.ClaimDisk(
        volume=name,
        is_block=claim.is_block,
        size_bytes=claim.size_bytes,
        is_read_only=source.read_only,
        is_shared=claim.is_shared,
    )


def _in_domain(name: str, source: PersistentVolumeClaimSource, report: launch_plan.LauncherReport) -> DiskImage:
    """It has no backing image. The format is always raw: QEMU must not interpret data that a guest writes."""
    if name in report.block_claims:  # only the disk can be read-only: a device has no read-only mount
        return DiskImage(layout.claim_device(name), "raw", is_block=True, is_read_only=source.read_only)
    return DiskImage(layout.claim_file(name), "raw", is_read_only=source.read_only)


KIND = VolumeKind(member="persistent_volume_claim", in_pod=_in_pod, in_plan=_in_plan, in_domain=_in_domain)
