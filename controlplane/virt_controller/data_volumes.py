# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DataVolumes as controllers read them: out of a cache that is kept only where the cluster has CDI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from controlplane.api.objects.claim import Claims, PersistentVolumeClaim, claim_name
from controlplane.api.objects.data_volume import FILLED, DataVolume, DataVolumes
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.resources import DATA_VOLUME, Key
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.engine.ports import Cache
from controlplane.virt_controller.owner import controller_of

NONE: DataVolumes = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of DataVolumes of some names in one namespace."""

    is_served: bool = False
    """Whether the cluster has them at all."""
    is_complete: bool = False
    """Whether one that is not in `found` does not exist."""
    found: Mapping[str, DataVolume] = field(default_factory=lambda: NONE)


ReadDataVolumes = Callable[[str, Iterable[str]], Known]
"""Given a namespace and names: what is known of the DataVolumes of these names."""


def no_data_volumes(_namespace: str, _names: Iterable[str]) -> Known:
    """Know of none: the cluster has no CDI."""
    return Known()


def reader_of(cache: Cache, is_served: Callable[[], bool]) -> ReadDataVolumes:
    """Return what reads the DataVolumes of a cache."""

    def read(namespace: str, names: Iterable[str]) -> Known:
        wanted = tuple(names)
        if not wanted:
            return Known()
        raws = {name: cache.get(Key(namespace, name)) for name in wanted}
        found = {name: one for name, raw in raws.items() if raw is not None and (one := _read(raw)) is not None}
        unread = any(raw is not None and name not in found for name, raw in raws.items())
        return Known(is_served(), is_served() and cache.synced and not unread, found)

    return read


def _read(raw: bytes) -> DataVolume | None:
    try:
        return decode(raw, DataVolume)
    except DecodeError:
        return None


def filled_by(volume: Volume, claims: Claims, known: Known) -> str | None:
    """Name the DataVolume that has to have filled a volume: it is asked for, or its claim is a DataVolume's.

    One that is asked for and gone has left a claim that is full: who has it deleted asks CDI to leave it.
    """
    name = claim_name(volume)
    if name is None:
        return None
    claim, is_asked_for = claims.get(name), volume.data_volume is not None
    if is_asked_for and (claim is None or name in known.found):
        return name
    return _filler(claim) if claim is not None else None


def _filler(claim: PersistentVolumeClaim) -> str | None:
    owner = controller_of(claim.metadata)
    return owner.name if owner is not None and _is_data_volume(owner.api_version, owner.kind) else None


def _is_data_volume(api_version: str, kind: str) -> bool:
    return kind == DATA_VOLUME.kind and api_version.partition("/")[0] == DATA_VOLUME.group


def unfilled(volumes: Iterable[Volume], claims: Claims, known: Known) -> tuple[str, ...]:
    """Name the DataVolumes that a Pod of these volumes has to wait for.

    A claim that nobody fills is as full as it gets; one that a DataVolume controls may be half of an image.
    """
    fillers = (filled_by(volume, claims, known) for volume in volumes)
    return tuple(name for name in fillers if name is not None and not _is_filled(known.found.get(name)))


def _is_filled(volume: DataVolume | None) -> bool:
    return volume is not None and volume.status.phase in FILLED
