# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads DataVolumes for controllers, from a cache that runs only while the cluster serves the kind (CDI)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from controlplane.api.objects.claim import Claims, PersistentVolumeClaim, claim_name
from controlplane.api.objects.data_volume import FILLED, DataVolume, DataVolumes
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import DATA_VOLUME, Key
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.engine.ports import Cache

NONE: DataVolumes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DataVolumeLookup:
    """The DataVolumes of some names in one namespace."""

    is_served: bool = False
    """Whether the cluster serves the kind."""
    is_complete: bool = False
    """Whether a name that is not in by_name does not exist."""
    by_name: Mapping[str, DataVolume] = field(default_factory=lambda: NONE)


ReadDataVolumes = Callable[[str, Iterable[str]], DataVolumeLookup]
"""Given a namespace and names: the DataVolumes of these names."""


def no_data_volumes(_namespace: str, _names: Iterable[str]) -> DataVolumeLookup:
    """Find nothing: the cluster has no CDI."""
    return DataVolumeLookup()


def data_volume_reader(cache: Cache, is_served: Callable[[], bool]) -> ReadDataVolumes:
    """Return a function that reads DataVolumes from a cache."""

    def read(namespace: str, names: Iterable[str]) -> DataVolumeLookup:
        wanted = tuple(names)
        if not wanted:
            return DataVolumeLookup()
        raws = {name: cache.get(Key(namespace, name)) for name in wanted}
        volumes = {name: volume for name, raw in raws.items() if raw is not None and (volume := _read(raw)) is not None}
        has_malformed = any(raw is not None and name not in volumes for name, raw in raws.items())
        return DataVolumeLookup(is_served(), is_served() and cache.synced and not has_malformed, volumes)

    return read


def _read(raw: bytes) -> DataVolume | None:
    try:
        return decode(raw, DataVolume)
    except DecodeError:
        return None


def filled_by(volume: Volume, claims: Claims, data_volumes: DataVolumeLookup) -> str | None:
    """Name the DataVolume that fills a volume: the volume names it, or it controls the volume's claim.

    If a DataVolume that a volume names does not exist any more, its claim is filled: CDI deletes finished DataVolumes
    and keeps their claims.
    """
    name = claim_name(volume)
    if name is None:
        return None
    claim, names_data_volume = claims.get(name), volume.data_volume is not None
    if names_data_volume and (claim is None or name in data_volumes.by_name):
        return name
    return _filler(claim) if claim is not None else None


def _filler(claim: PersistentVolumeClaim) -> str | None:
    owner = controller_of(claim.metadata)
    return owner.name if owner is not None and _is_data_volume(owner.api_version, owner.kind) else None


def _is_data_volume(api_version: str, kind: str) -> bool:
    return kind == DATA_VOLUME.kind and api_version.partition("/")[0] == DATA_VOLUME.group


def unfilled(volumes: Iterable[Volume], claims: Claims, data_volumes: DataVolumeLookup) -> tuple[str, ...]:
    """Name the DataVolumes that a Pod with these volumes has to wait for.

    A claim without a DataVolume is ready as it is. A claim that a DataVolume controls may contain half of an image.
    """
    fillers = (filled_by(volume, claims, data_volumes) for volume in volumes)
    return tuple(name for name in fillers if name is not None and not _is_filled(data_volumes.by_name.get(name)))


def _is_filled(volume: DataVolume | None) -> bool:
    return volume is not None and volume.status.phase in FILLED
