# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""emptyDisk: a sparse file that the launcher makes in the Pod's emptyDir.

With direct I/O, QEMU refuses a file whose size is no multiple of the storage's block size, such as the 10^9 bytes of 1G
on a disk with blocks of 4 KiB. So a disk has whole MiB, at least as many as its capacity.
"""

from __future__ import annotations

from controlplane.api import launch_plan
from controlplane.api.objects import quantity
from controlplane.api.objects.claim import Claims
from controlplane.api.objects.vmi.volumes import EmptyDisk
from controlplane.domain import layout
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes.kind import DiskImage, VolumeKind

_ALIGNMENT = 1 << 20


def _size(source: EmptyDisk) -> int:
    return -(-quantity.to_bytes(source.capacity) // _ALIGNMENT) * _ALIGNMENT


def _in_plan(name: str, source: EmptyDisk, _guest: GuestIdentity, _claims: Claims) -> launch_plan.DiskSource:
    return launch_plan.EmptyDisk(name, _size(source))


def _takes(source: EmptyDisk, _unused: int) -> int:
    return _size(source)


def _in_domain(name: str, _source: EmptyDisk, _report: launch_plan.LauncherReport) -> DiskImage:
    return DiskImage(layout.sparse_disk(name), "raw")


KIND = VolumeKind(member="empty_disk", takes=_takes, in_plan=_in_plan, in_domain=_in_domain)
