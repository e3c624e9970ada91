# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes behind a machine's disks, and networks behind its interfaces. Types only."""

from __future__ import annotations

from typing import Annotated

import msgspec

from controlplane.api.objects.meta import LocalObjectReference, Node, Quantity
from controlplane.api.schema.bounds import (
    ClaimName,
    DnsSubdomain,
    ImageName,
    ImagePath,
    InterfaceName,
    PullPolicy,
    VolumeName,
    bounded,
)

SeedText = Annotated[str, bounded(max_length=65536)]
"""The real bound is of bytes, see controlplane.api.admission.validate.storage; this bounds nonsense."""


class ContainerDisk(Node, frozen=True, kw_only=True):
    """A disk image inside a container image. The guest's writes are lost when the run ends."""

    image: ImageName
    """Name of the container image."""
    image_pull_secret: DnsSubdomain = ""
    """Secret with the registry's credentials."""
    image_pull_policy: PullPolicy = ""
    """Always, Never or IfNotPresent; Always for :latest or no tag, else IfNotPresent."""
    path: ImagePath = ""
    """Absolute path of the disk image; the one file in /disk if not set."""


class CloudInitNoCloud(Node, frozen=True, kw_only=True):
    """A cloud-init seed. At least one source of user data or network data, at most one of each."""

    secret_ref: LocalObjectReference | None = None
    """Secret with user data under the key userdata (or userData)."""
    user_data: SeedText = ""
    """User data, at most 2048 bytes."""
    user_data_base64: SeedText = ""
    """User data, base64, at most 2048 bytes decoded."""
    network_data_secret_ref: LocalObjectReference | None = None
    """Secret with network data under the key networkdata (or networkData)."""
    network_data: SeedText = ""
    """Network data, at most 2048 bytes."""
    network_data_base64: SeedText = ""
    """Network data, base64, at most 2048 bytes decoded."""


class EmptyDisk(Node, frozen=True, kw_only=True):
    """An empty disk that lives as long as the run."""

    capacity: Quantity
    """Size, e.g. 10Gi, rounded up to whole MiB."""


class PersistentVolumeClaimSource(Node, frozen=True, kw_only=True):
    """A PersistentVolumeClaim of the machine's namespace. It outlives the run, and the machine."""

    claim_name: ClaimName
    """Name of the claim."""
    read_only: bool = False
    """Refuse the guest's writes, and need no right to write to the volume."""


class DataVolumeSource(Node, frozen=True, kw_only=True):
    """What CDI fills: the PersistentVolumeClaim of a DataVolume, which has its name. The machine waits for that."""

    name: ClaimName
    """Name of the DataVolume, and of its claim."""


class Volume(Node, frozen=True, kw_only=True):
    """Data of the disk of the same name. Exactly one source."""

    name: VolumeName
    """Name of the volume and of its disk."""
    container_disk: ContainerDisk | None = None
    """A disk image inside a container image."""
    cloud_init_no_cloud: CloudInitNoCloud | None = None
    """A cloud-init seed."""
    empty_disk: EmptyDisk | None = None
    """An empty disk."""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    """A disk on a PersistentVolumeClaim."""
    data_volume: DataVolumeSource | None = None
    """A disk on the claim of a DataVolume, where the cluster has CDI."""


class PodNetwork(Node, frozen=True, kw_only=True):
    """The network of the machine's Pod."""

    vm_network_cidr: Annotated[str, bounded(max_length=18)] = msgspec.field(default="", name="vmNetworkCIDR")
    """Network of Pod (first address) and guest (second address); 10.0.2.0/24 if not set."""


class Network(Node, frozen=True, kw_only=True):
    """What the interface of the same name is attached to. Exactly one source."""

    name: InterfaceName
    """Name of the network and of its interface."""
    pod: PodNetwork | None = None
    """The network of the machine's Pod."""
