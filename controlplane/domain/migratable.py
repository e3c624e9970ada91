# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Can a guest move to another node while it runs, and what has to be sent along with its memory? Pure.

Reasons and their order are upstream's, of those that can come about here.
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
"""Of a disk from an image, unless the cluster's configuration says otherwise (containerDiskLimit)."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a guest where it is: a word, and a sentence."""

    reason: str
    message: str


def find_obstacle(vmi: VirtualMachineInstance) -> Obstacle | None:
    """Say why a guest cannot move; None when it can."""
    for volume in vmi.spec.volumes:
        claim = claim_name(volume)
        if claim is not None and not _is_shared(vmi, volume.name):
            text = f"cannot migrate VMI: PVC {claim} is not shared, live migration requires that all PVCs must be "
            return Obstacle("DisksNotLiveMigratable", f"{text}shared (using ReadWriteMany access mode)")
    return None


def sent_disks(vmi: VirtualMachineInstance) -> tuple[str, ...]:
    """Name the volumes that only the node has: what is on them is sent along."""
    return tuple(one.name for one in vmi.spec.volumes if claim_name(one) is None)


def most_to_send(vmi: VirtualMachineInstance) -> int:
    """Return how many bytes a migration can have to send, by what is declared: memory, and disks that are sent along.

    A disk from an image counts as the largest that one has unless the cluster's configuration says otherwise.
    """
    memory = max(guest_bytes(vmi.spec.domain), most_bytes(vmi.spec.domain))
    return memory + sum(_disk_bytes(one) for one in vmi.spec.volumes if claim_name(one) is None)


def _disk_bytes(volume: Volume) -> int:
    if volume.empty_disk is not None:
        return amount_in_bytes(volume.empty_disk.capacity)
    return LARGEST_IMAGE_BYTES if volume.container_disk is not None else 0


def method_of(vmi: VirtualMachineInstance) -> str:
    """Return LiveMigration where only memory is sent, BlockMigration where disks are."""
    return BLOCK if sent_disks(vmi) else LIVE


def _is_shared(vmi: VirtualMachineInstance, volume: str) -> bool:
    known = next((one for one in vmi.status.volume_status if one.name == volume), None)
    claim = None if known is None else known.persistent_volume_claim_info
    return claim is not None and READ_WRITE_MANY in claim.access_modes
