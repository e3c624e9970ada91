# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a guest can be migrated, and what must be copied besides its memory. Pure.

Reasons and their order are upstream's, as far as they can occur here.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.claim import claim_name
from controlplane.api.objects.guest_memory import amount_in_bytes, guest_bytes, most_bytes
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.objects.vmi.volumes import Volume

READ_WRITE_MANY = "ReadWriteMany"
LIVE, BLOCK = "LiveMigration", "BlockMigration"
LARGEST_IMAGE_BYTES = 64 << 30
"""Default limit of a disk from an image (containerDiskLimit in the configuration)."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a guest cannot be migrated: a reason in CamelCase, and a sentence."""

    reason: str
    message: str


def find_obstacle(vmi: VirtualMachineInstance) -> Obstacle | None:
    """Return why a guest cannot be migrated; None when it can."""
    for volume in vmi.spec.volumes:
        claim = claim_name(volume)
        if claim is not None and not _is_shared(vmi, volume.name):
            text = f"cannot migrate VMI: PVC {claim} is not shared, live migration requires that all PVCs must be "
            text += f"shared (using ReadWriteMany access mode); it is the claim of volume {volume.name}"
            return Obstacle("DisksNotLiveMigratable", text)
    return None


def sent_disks(vmi: VirtualMachineInstance) -> tuple[str, ...]:
    """Return the volumes whose content is on the node, and is copied with the guest."""
    return tuple(volume.name for volume in vmi.spec.volumes if claim_name(volume) is None)


def most_to_send(vmi: VirtualMachineInstance) -> int:
    """Return the most bytes that a migration sends, by declared sizes of memory and copied disks.

    A disk from an image counts with the default limit.
    """
    memory = max(guest_bytes(vmi.spec.domain), most_bytes(vmi.spec.domain))
    return memory + sum(_disk_bytes(volume) for volume in vmi.spec.volumes if claim_name(volume) is None)


def _disk_bytes(volume: Volume) -> int:
    if volume.empty_disk is not None:
        return amount_in_bytes(volume.empty_disk.capacity)
    return LARGEST_IMAGE_BYTES if volume.container_disk is not None else 0


def method_of(vmi: VirtualMachineInstance) -> str:
    """Return LiveMigration when only memory is sent, BlockMigration when disks are copied."""
    return BLOCK if sent_disks(vmi) else LIVE


def _is_shared(vmi: VirtualMachineInstance, volume: str) -> bool:
    status = next((status for status in vmi.status.volume_status if status.name == volume), None)
    claim = None if status is None else status.persistent_volume_claim_info
    return claim is not None and READ_WRITE_MANY in claim.access_modes
