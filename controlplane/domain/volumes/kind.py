# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What there is to say about a kind of volume. Values and signatures; knows no single kind."""

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
    """A volume of the Pod, and the launcher container's mount of it, or the device that it is there."""

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
    """What the domain gets: a file or a device, and the image below it, if any."""

    path: str
    format: str
    below: BackingImage | None = None
    is_block: bool = False
    is_read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeKind:
    """One kind of volume. Each function gets the volume's name and its source: `member` of the Volume."""

    member: str
    """Field of controlplane.api.objects.vmi.volumes.Volume that has the source."""
    in_domain: Callable[[str, Any, LauncherReport], DiskImage]
    """Return what the guest's disk is made of, given the launcher's report. ValueError says what is missing."""
    in_pod: Callable[[str, Any, Claims], InPod] = lambda *_unused: InPod()
    """Return what is mounted into the Pod."""
    takes: Callable[[Any, int], int] = lambda *_unused: 0
    """Return how many bytes of the node's disk it takes at most, given the largest disk that a containerDisk may be."""
    in_plan: Callable[[str, Any, GuestIdentity, Claims], DiskSource | None] = lambda *_unused: None
    """Return what the launcher makes before the domain exists, if anything. ValueError says what cannot be asked."""
    reported_below: Callable[[str], str] | None = None
    """Where, by the volume's name, the launcher looks for an image that it reports; None: it looks for none."""


def read_only(volume: Json, where: str) -> Mounted:
    """Mount a Pod volume for reading."""
    return Mounted(volume, {"name": volume["name"], "mountPath": where, "readOnly": True})


def image_volume(name: str, reference: str, policy: str, where: str) -> Mounted:
    """Mount a container image. policy: "" leaves the choice to Kubernetes."""
    image = {"reference": reference, "pullPolicy": policy} if policy else {"reference": reference}
    return read_only({"name": name, "image": image}, where)
