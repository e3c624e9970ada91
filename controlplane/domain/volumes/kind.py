# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each kind of volume defines. Values and signatures; registry.py lists the kinds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from controlplane.api.launch_plan import DiskSource, LauncherReport
from controlplane.api.objects.claim import Claims
from controlplane.domain.guest_identity import GuestIdentity

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume of the Pod, and its mount or its device in the launcher's container."""

    volume: Json
    mount: Json | None = None
    device: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InPod:
    """What a volume needs in the launcher Pod."""

    mounted: tuple[Mounted, ...] = ()
    pull_secret: str = ""


@dataclass(frozen=True, slots=True)
class BackingImage:
    """The read-only image under an overlay. Nothing is below it."""

    path: str
    format: str


@dataclass(frozen=True, slots=True)
class DiskImage:
    """The domain's disk: a file or a device, and its backing image, if any."""

    path: str
    format: str
    below: BackingImage | None = None
    is_block: bool = False
    is_read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeKind:
    """One kind of volume. Each function gets the volume's name and its source: the field `member` of the Volume."""

    member: str
    """Field of controlplane.api.objects.vmi.volumes.Volume with the source."""
    in_domain: Callable[[str, Any, LauncherReport], DiskImage]
    """Return the guest's disk, given the launcher's report. ValueError says what is missing."""
    in_pod: Callable[[str, Any, Claims], InPod] = lambda *_unused: InPod()
    """Return the Pod's volumes and mounts."""
    takes: Callable[[Any, int], int] = lambda *_unused: 0
    """Return the most bytes of the node's disk that it uses, given the limit of a containerDisk."""
    in_plan: Callable[[str, Any, GuestIdentity, Claims], DiskSource | None] = lambda *_unused: None
    """Return what the launcher prepares before the domain exists, if anything. ValueError says what is invalid."""
    reported_below: Callable[[str], str] | None = None
    """Return, by the volume's name, the directory of the image that the launcher reports. None: it reports none."""


def read_only(volume: Json, where: str) -> Mounted:
    """Mount a Pod volume read-only."""
    return Mounted(volume, {"name": volume["name"], "mountPath": where, "readOnly": True})


def image_volume(name: str, reference: str, policy: str, where: str) -> Mounted:
    """Mount a container image. policy: "" for Kubernetes' default."""
    image = {"reference": reference, "pullPolicy": policy} if policy else {"reference": reference}
    return read_only({"name": name, "image": image}, where)
