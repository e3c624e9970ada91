# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches of claims and DataVolumes, for controllers whose objects name them. Their caches have the index BY_CLAIM."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.data_volume import DataVolume
from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.resources import DATA_VOLUME, PERSISTENT_VOLUME_CLAIM, Key
from controlplane.engine.ports import Cache
from controlplane.virt_controller.controller import Enqueue, Watch
from controlplane.virt_controller.storage.claims import BY_CLAIM, DATA_VOLUMES

_claim_decoder = msgspec.json.Decoder(PersistentVolumeClaim)


def storage_watches(objects: Cache) -> tuple[Watch, Watch]:
    """Enqueue the objects that name a claim or DataVolume when it is added, deleted, bound, filled or fails."""

    def on_claim(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if _claim_state(before) != _claim_state(after):
            yield from list(objects.indexed(BY_CLAIM, str(key)))

    def on_data_volume(key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        if _data_volume_state(before) != _data_volume_state(after):
            yield from list(objects.indexed(BY_CLAIM, str(key)))

    return Watch(PERSISTENT_VOLUME_CLAIM, on_claim), Watch(DATA_VOLUME, on_data_volume)


def users_of_data_volumes(objects: Cache, enqueue: Enqueue) -> Callable[[], None]:
    """Return a callback that enqueues every object that names any DataVolume."""

    def on_support_change() -> None:
        for key in list(objects.indexed(BY_CLAIM, DATA_VOLUMES)):
            enqueue(key)

    return on_support_change


def _claim_state(raw: bytes | None) -> object:
    """Return the fields that a start waits for: the claim exists, is not being deleted, is bound, and its owner."""
    if raw is None:
        return None
    claim = _claim_decoder.decode(raw)
    return claim.metadata.deletion_timestamp is not None, claim.is_bound, controller_of(claim.metadata)


def _data_volume_state(raw: bytes | None) -> object:
    """Return the fields that a start waits for, without CDI's progress, which changes several times a second."""
    if raw is None:
        return None
    try:
        volume = decode(raw, DataVolume)
    except DecodeError:
        return raw
    return (
        volume.status.phase,
        volume.trouble,
        controller_of(volume.metadata),
        volume.metadata.deletion_timestamp is None,
    )
