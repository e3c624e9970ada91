# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A PersistentVolumeClaim: types for lenient decoding, and predicates. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from controlplane.api.objects import quantity
from controlplane.api.objects.meta import Node, ObjectMeta, Quantity
from controlplane.api.objects.vmi.volumes import Volume

BOUND = "Bound"


class ClaimResources(Node, frozen=True, kw_only=True):
    requests: dict[str, Quantity] = msgspec.field(default_factory=dict)


class ClaimSpec(Node, frozen=True, kw_only=True):
    access_modes: tuple[str, ...] = ()
    volume_mode: str = ""
    resources: ClaimResources = ClaimResources()


class ClaimStatus(Node, frozen=True, kw_only=True):
    phase: str = ""
    capacity: dict[str, Quantity] = msgspec.field(default_factory=dict)


class PersistentVolumeClaim(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()

    @property
    def is_block(self) -> bool:
        """Tell whether a Pod gets a block device instead of a directory."""
        return self.spec.volume_mode == "Block"

    @property
    def is_bound(self) -> bool:
        """Tell whether it is bound to a volume."""
        return self.status.phase == BOUND

    @property
    def is_shared(self) -> bool:
        """Tell whether several nodes can write to it at once."""
        return "ReadWriteMany" in self.spec.access_modes

    @property
    def size_bytes(self) -> int:
        """Return the requested size in bytes; 0 when it is unknown."""
        try:
            return quantity.to_bytes(self.spec.resources.requests.get("storage", 0))
        except quantity.QuantityError:
            return 0


Claims = Mapping[str, PersistentVolumeClaim]
"""Claims of one namespace by name."""


def claim_name(volume: Volume) -> str | None:
    """Return the claim behind a volume, or None. The claim of a DataVolume has the DataVolume's name."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return volume.data_volume.name if volume.data_volume is not None else None


def claimed_volumes(volumes: Iterable[Volume]) -> frozenset[str]:
    """Return the names of volumes with a claim."""
    return frozenset(volume.name for volume in volumes if claim_name(volume) is not None)


def claim_names(volumes: Iterable[Volume]) -> tuple[str, ...]:
    """Return the claims behind volumes."""
    return tuple(name for name in map(claim_name, volumes) if name is not None)
