# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CDI's DataVolume: types for lenient decoding, and predicates. Pure.

A DataVolume is a PersistentVolumeClaim of the same name that CDI fills. We do not interpret its spec; a template's spec
is copied unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.meta import Condition, Node, ObjectMeta
from controlplane.api.objects.resources import DATA_VOLUME

DEFINITION = f"{DATA_VOLUME.plural}.{DATA_VOLUME.group}"
"""Name of the CustomResourceDefinition by which a cluster serves DataVolumes."""
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
"""Annotation: let the claim be bound at once, whatever its class waits for."""
ADOPT_CLAIM = "cdi.kubevirt.io/allowClaimAdoption"
"""Annotation: a claim of this name that is full already is taken as it is."""

SUCCEEDED, FAILED = "Succeeded", "Failed"
WAIT_FOR_FIRST_CONSUMER, PENDING_POPULATION = "WaitForFirstConsumer", "PendingPopulation"
FILLED = frozenset({SUCCEEDED, PENDING_POPULATION})
"""Phases in which a Pod may name the claim. PendingPopulation waits for that Pod, and no claim of it is bound before it
is full; in WaitForFirstConsumer it would be bound first and filled under the guest's eyes."""
STARTABLE = FILLED | {WAIT_FOR_FIRST_CONSUMER}
"""Phases in which an instance is made."""
_TROUBLES = frozenset({"Error", "ImagePullFailed"})


class DataVolumeStatus(Node, frozen=True, kw_only=True):
    phase: str = ""
    conditions: tuple[Condition, ...] = ()


class DataVolume(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    status: DataVolumeStatus = DataVolumeStatus()

    @property
    def trouble(self) -> str | None:
        """Return why CDI does not fill it, or None. CDI may retry by itself."""
        running = conditions.find(self.status.conditions, "Running")
        if running is not None and running.status == "False" and running.reason in _TROUBLES:
            return running.message or running.reason
        return "CDI gave it up" if self.status.phase == FAILED else None


DataVolumes = Mapping[str, DataVolume]
"""DataVolumes of one namespace by name."""


class _Version(Node, frozen=True, kw_only=True):
    name: str = ""
    served: bool = False


class _Spec(Node, frozen=True, kw_only=True):
    versions: tuple[_Version, ...] = ()


class _Status(Node, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class _Definition(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = msgspec.field(default_factory=_Status)


def is_served(definition: bytes | None) -> bool:
    """Tell whether the cluster serves DataVolumes. definition: their CustomResourceDefinition, None without one."""
    if definition is None:
        return False
    try:
        decoded = decode(definition, _Definition)
    except DecodeError:
        return False
    is_there = (
        conditions.is_true(decoded.status.conditions, "Established") and decoded.metadata.deletion_timestamp is None
    )
    return is_there and any(version.served and version.name == DATA_VOLUME.version for version in decoded.spec.versions)
