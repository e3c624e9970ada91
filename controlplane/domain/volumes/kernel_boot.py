# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kernelBoot: an image volume of the Pod with the kernel and initrd. It is not a disk, and not in `spec.volumes`."""

from __future__ import annotations

from controlplane.api.objects.vmi.domain import KernelBootContainer
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.domain import layout
from controlplane.domain.volumes.kind import InPod, image_volume


def container_of(spec: VirtualMachineInstanceSpec) -> KernelBootContainer | None:
    """Return the image for direct kernel boot, if declared."""
    boot = spec.domain.firmware.kernel_boot if spec.domain.firmware else None
    return boot.container if boot else None


def in_pod(container: KernelBootContainer) -> InPod:
    """Return the Pod's volume and mount."""
    policy, where = container.image_pull_policy, layout.KERNEL_BOOT
    mounted = image_volume(layout.KERNEL_BOOT_VOLUME, container.image, policy, where)
    return InPod(mounted=(mounted,), pull_secret=container.image_pull_secret)


def in_domain(path: str) -> str | None:
    """Return the path of the image's file for QEMU; None for no path. ValueError for an unsafe path."""
    if not path:
        return None
    if not path.startswith("/") or {"", ".", ".."} & set(path[1:].split("/")):
        raise ValueError("must be an absolute path that names a file and has no . or .. in it")
    return layout.KERNEL_BOOT + path
