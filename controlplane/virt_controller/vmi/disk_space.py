# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of its node's disk a launcher Pod may use. Pure; docs/api.md describes the effects.

The Pod has room for full disks, and a guest cannot write beyond its disks: so the kubelet never evicts a Pod because of
its guest. The limit bounds broken or hostile software around the guest.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects import quantity
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.domain.volumes.registry import bytes_taken

MIB = 1024 * 1024
SHARED_BYTES = 64 * MIB
"""Console backlog (8 MiB), QEMU log (1 MiB), firmware variables, libvirt's cache and state."""
METADATA_RATIO = 256
"""A full overlay takes 1/2000 more than its disk (measured); a fragmented file 1/700 (computed for ext4)."""
LOG_BYTES = 512 * MIB
"""The container's log on the node. The kubelet's default bound is 50 MiB."""
REQUEST_BYTES = 64 * MIB
"""The use before the guest writes anything. Disks are sparse and count as they fill."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Limits in bytes."""

    run: int
    """Limit of the launcher's directory, which has the disks."""
    pod: int
    """Limit of the Pod."""


def derive_disk_space(spec: VirtualMachineInstanceSpec, configuration: KubeVirtConfiguration) -> DiskSpace:
    """Return the limits of a launcher Pod. Raises ValueError if a size cannot be parsed."""
    disks = bytes_taken(spec, container_disk_limit(configuration))
    run = disks + disks // METADATA_RATIO + SHARED_BYTES
    return DiskSpace(run=run, pod=run + LOG_BYTES)


def container_disk_limit(configuration: KubeVirtConfiguration) -> int:
    """Return the largest size of a containerDisk, in bytes."""
    return quantity.to_bytes(configuration.container_disk_limit)
