# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of its node's disk a launcher Pod may take. Pure arithmetic; docs/api.md says what follows from it.

A guest cannot write beyond its disks, and the Pod has room for all of them to be full: so the kubelet, which evicts a
Pod that takes more than it may, finds no fault with a guest, whatever it does. It is the bound of what is broken or
hostile around the guest, and of what a node can be asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects import quantity
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.domain.volumes.registry import bytes_taken

MIB = 1024 * 1024
SHARED_BYTES = 64 * MIB
"""The console's backlog (8 MiB), QEMU's log (1 MiB), the firmware's variables, libvirt's cache and state."""
METADATA_RATIO = 256
"""A full overlay took 1/2000 more than its disk (measured); a file in many pieces 1/700 (ext4, by its layout)."""
LOG_BYTES = 512 * MIB
"""What the node keeps of the container's output. The kubelet bounds it: 50 MiB unless it is configured otherwise."""
REQUEST_BYTES = 64 * MIB
"""What a launcher takes before its guest writes anything; disks are sparse, and counted as they fill."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """In bytes."""

    run: int
    """At most in the launcher's directory, where its disks are."""
    pod: int
    """At most in all."""


def derive_disk_space(spec: VirtualMachineInstanceSpec, configuration: KubeVirtConfiguration) -> DiskSpace:
    """Return what a launcher Pod may take. ValueError when a size cannot be read."""
    disks = bytes_taken(spec, container_disk_limit(configuration))
    run = disks + disks // METADATA_RATIO + SHARED_BYTES
    return DiskSpace(run=run, pod=run + LOG_BYTES)


def container_disk_limit(configuration: KubeVirtConfiguration) -> int:
    """Return the largest disk that a containerDisk may be."""
    return quantity.to_bytes(configuration.container_disk_limit)
