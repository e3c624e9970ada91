# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""emptyDisk: a sparse file that the launcher makes in the Pod's emptyDir."""

from __future__ import annotations

from controlplane.api import launch_plan
from controlplane.api.objects import quantity
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.volumes import EmptyDisk
from controlplane.domain import layout
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes.kind import DiskImage, VolumeKind


def _in_plan(name: str, source: EmptyDisk, _guest: GuestIdentity, _claims: Claims) -> launch_plan.DiskSource:
    return launch_plan.EmptyDisk(name, quantity.to_bytes(source.capacity))


def _takes(source: EmptyDisk, _unused: int) -> int:
    return quantity.to_bytes(source.capacity)


def _in_domain(name: str, _source: EmptyDisk, _report: launch_plan.LauncherReport) -> DiskImage:
    return DiskImage(layout.sparse_disk(name), "raw")


KIND = VolumeKind(member="empty_disk", takes=_takes, in_plan=_in_plan, in_domain=_in_domain)
