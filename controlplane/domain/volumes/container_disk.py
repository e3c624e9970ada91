# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerDisk: an image volume of the Pod; the guest writes to an overlay that dies with the Pod."""

from __future__ import annotations

from controlplane.api import launch_plan
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.volumes import ContainerDisk
from controlplane.domain import layout
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes.kind import BackingImage, DiskImage, InPod, VolumeKind, image_volume


def _in_pod(name: str, source: ContainerDisk, _claims: Claims) -> InPod:
    where = layout.image_mount(name)
    mounted = image_volume(layout.pod_volume(name), source.image, source.image_pull_policy, where)
    return InPod(mounted=(mounted,), pull_secret=source.image_pull_secret)


def _in_plan(name: str, source: ContainerDisk, _guest: GuestIdentity, _claims: Claims) -> launch_plan.DiskSource:
    return launch_plan.ContainerDisk(name, source.path)


def _takes(_source: ContainerDisk, largest: int) -> int:
    """How large the disk is, nobody knows before the image is there: the launcher refuses one that is larger."""
    return largest


def _in_domain(name: str, _source: ContainerDisk, report: launch_plan.LauncherReport) -> DiskImage:
    """The chain is written out, so that no header of an image is ever trusted."""
    for found in report.container_disks:
        if found.volume == name:
            return DiskImage(layout.overlay(name), "qcow2", below=BackingImage(found.path, found.format))
    raise ValueError(f"the launcher found no image for volume {name!r}")


KIND = VolumeKind(
    member="container_disk",
    in_pod=_in_pod,
    takes=_takes,
    in_plan=_in_plan,
    in_domain=_in_domain,
    reported_below=layout.image_mount,
)
