# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which claims a machine writes to, and which of them it must not share with another: pure.

Two guests that write to one block device destroy its file system. Nothing else prevents it: an access mode limits nodes
and not Pods, and QEMU's lock does not reach from one Pod's device to another's. For the file of a Filesystem claim
QEMU's lock is enough.
"""

from __future__ import annotations

from controlplane.api.objects.claim import Claims, claim_name
from controlplane.api.objects.vmi.devices import Disk
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.objects.vmi.volumes import Volume


def exclusive_claims(spec: VirtualMachineInstanceSpec, claims: Claims) -> tuple[str, ...]:
    """Return the claims that a machine writes to, without those that are known to be no block device.

    A claim that is being deleted is not among claims, but its device is still there.
    """
    return tuple(name for name in written_claims(spec) if name not in claims or claims[name].is_block)


def excludes(first: VirtualMachineInstanceSpec, second: VirtualMachineInstanceSpec, claim: str) -> bool:
    """Tell whether two machines must not have a claim at once: both write to it, and not both as a shareable disk."""
    by_first, by_second = written_claims(first).get(claim), written_claims(second).get(claim)
    return by_first is not None and by_second is not None and not (by_first and by_second)


def written_claims(spec: VirtualMachineInstanceSpec) -> dict[str, bool]:
    """Return the claims that a machine writes to, and whether its disk is shareable."""
    disks = {disk.name: disk for disk in spec.domain.devices.disks}
    written = {}
    for volume in spec.volumes:
        name, disk = claim_name(volume), disks.get(volume.name)
        if name is not None and _is_written(volume, disk):
            written[name] = disk is not None and disk.shareable
    return written


def _is_written(volume: Volume, disk: Disk | None) -> bool:
    """Tell whether the guest writes to a volume. Without a disk of its own it gets an ordinary one."""
    if volume.persistent_volume_claim is not None and volume.persistent_volume_claim.read_only:
        return False
    return disk is None or not disk.is_read_only
