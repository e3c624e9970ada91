# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerDisk: an image volume of the Pod. The guest writes to an overlay that is deleted with the Pod."""

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
    """The size is unknown before the image is pulled; the launcher refuses a disk above the limit."""
    return largest


def _in_domain(name: str, _source: ContainerDisk, report: launch_plan.LauncherReport) -> DiskImage:
    """The backing chain is explicit, because an image's header is not trusted."""
    for image in report.container_disks:
        if image.volume == name:
            return DiskImage(layout.overlay(name), "qcow2", below=BackingImage(image.path, image.format))
    raise ValueError(f"the launcher found no image for volume {name!r}")


KIND = VolumeKind(
    member="container_disk",
    in_pod=_in_pod,
    takes=_takes,
    in_plan=_in_plan,
    in_domain=_in_domain,
    reported_below=layout.image_mount,
)
