# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Never decide on a view older than one's own writes: caches that know what was written, an API that tells them.

Writes answer with the stored object. Overlay shows that answer until the cache has caught up, by resourceVersion, which
is a growing integer. It never makes an object up, and hides one only when the API server said that this very one is
gone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import NotFound
from controlplane.engine.ports import Api, Cache, Clock, Json

GHOST_SECONDS = 30.0
"""An answer that the cache has not confirmed for so long is dropped: the object came and went unseen."""


@dataclass(frozen=True, slots=True)
class _Answer:
    version: int
    uid: str
    raw: bytes
    since: float


class Overlay:
    """A Cache plus the newest answers of own writes."""

    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache = cache
        self._clock = clock
        self._answers: dict[Key, _Answer] = {}
        self._deletes: dict[Key, str] = {}
        self._gone: dict[Key, str] = {}
        """UIDs of objects that are known to exist no more, until the cache knows too."""
        cache.subscribe(self._caught_up)

    @property
    def synced(self) -> bool:
        return self._cache.synced

    def get(self, key: Key) -> bytes | None:
        answer = self._live(key)
        raw = self._cache.get(key)
        if answer is not None and (raw is None or _version(raw) < answer.version):
            raw = answer.raw
        gone = self._gone.get(key)
        return None if raw is None or (gone is not None and _uid(raw) == gone) else raw

    def keys(self) -> Collection[Key]:
        return {*self._cache.keys(), *(key for key in tuple(self._answers) if self._live(key))}

    def indexed(self, index: str, value: str) -> Collection[Key]:
        """Filter like the cache; own creates are found under "owner" at once."""
        found = set(self._cache.indexed(index, value))
        if index == "owner":
            found.update(
                key
                for key in tuple(self._answers)
                if (answer := self._live(key)) is not None and value in _owners(answer.raw)
            )
        return found

    def subscribe(self, callback: Callable[[Key, bytes | None, bytes | None], None]) -> None:
        self._cache.subscribe(callback)

    def is_delete_sent(self, key: Key, uid: str) -> bool:
        """Tell whether this process asked to delete that object and has not yet seen the effect."""
        return self._deletes.get(key) == uid

    def note(self, key: Key, body: Json) -> None:
        """Take in an object as the API server just stored it, or as it was when this write ended it."""
        meta = body["metadata"]
        if _is_ended(meta):
            self.note_absence(key, meta["uid"])
            return
        version = int(meta["resourceVersion"])
        cached = self._cache.get(key)
        held = self._answers.get(key)
        if (cached is None or _version(cached) < version) and (held is None or held.version <= version):
            self._answers[key] = _Answer(version, meta["uid"], msgspec.json.encode(body), self._clock.monotonic())

    def note_delete(self, key: Key, uid: str) -> None:
        """Remember that a delete of that object was accepted."""
        self._deletes[key] = uid

    def note_absence(self, key: Key, uid: str | None = None) -> None:
        """Take in that an object is gone: by a quorum read (uid None), or the one with that UID."""
        held = self._answers.get(key)
        if held is not None and uid in (None, held.uid):
            del self._answers[key]
        if uid is not None and self._cache.get(key) is not None:
            self._gone[key] = uid

    def _live(self, key: Key) -> _Answer | None:
        answer = self._answers.get(key)
        if answer is not None and self._clock.monotonic() - answer.since > GHOST_SECONDS:
            del self._answers[key]
            return None
        return answer

    def _caught_up(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        newest = after if after is not None else before
        answer = self._answers.get(key)
        # A deletion carries the version of the last state or a newer one, and always comes after it.
        if answer is not None and newest is not None and _version(newest) >= answer.version:
            del self._answers[key]
        if key in self._gone and (after is None or _uid(after) != self._gone[key]):
            del self._gone[key]
        if key in self._deletes and (after is None or _is_deletion_of(after, self._deletes[key])):
            del self._deletes[key]


class RememberingApi:
    """An Api whose answers go into the overlays before anyone decides again."""

    def __init__(self, api: Api, overlays: Mapping[Resource, Overlay]) -> None:
        self._api = api
        self._overlays = overlays

    async def get(self, resource: Resource, key: Key) -> Json:
        try:
            body = await self._api.get(resource, key)
        except NotFound:
            if overlay := self._overlays.get(resource):
                overlay.note_absence(key)
            raise
        self._note(resource, key, body)
        return body

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        stored = await self._api.create(resource, namespace, body)
        self._note(resource, Key(namespace, stored["metadata"]["name"]), stored)
        return stored

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any],
        *,
        subresource: Literal["", "status"] = "",
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Json:
        stored = await self._api.patch(
            resource, key, patch, subresource=subresource, resource_version=resource_version, uid=uid
        )
        self._note(resource, key, stored)
        return stored

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: Literal["Background", "Foreground", "Orphan"] | None = None,
    ) -> None:
        overlay = self._overlays.get(resource)
        try:
            await self._api.delete(
                resource,
                key,
                uid=uid,
                resource_version=resource_version,
                grace_period_seconds=grace_period_seconds,
                propagation=propagation,
            )
        except NotFound:
            if overlay:
                overlay.note_absence(key, uid)
            raise
        if overlay:
            overlay.note_delete(key, uid)

    def _note(self, resource: Resource, key: Key, body: Json) -> None:
        if overlay := self._overlays.get(resource):
            overlay.note(key, body)


class _Owner(msgspec.Struct):
    uid: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str
    uid: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[_Owner, ...] = ()


class _Object(msgspec.Struct):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Object)


def _version(raw: bytes) -> int:
    return int(_decoder.decode(raw).metadata.resource_version)


def _uid(raw: bytes) -> str:
    return _decoder.decode(raw).metadata.uid


def _is_ended(meta: Json) -> bool:
    """Tell whether a stored object is the last state of one that is gone: deleted, nothing to wait for."""
    waits = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in meta and not waits


def _is_deletion_of(raw: bytes, uid: str) -> bool:
    """Tell whether the object with that UID is being deleted, or another has taken its name."""
    meta = _decoder.decode(raw).metadata
    return meta.deletion_timestamp is not None or meta.uid != uid


def _owners(raw: bytes) -> set[str]:
    return {owner.uid for owner in _decoder.decode(raw).metadata.owner_references}
