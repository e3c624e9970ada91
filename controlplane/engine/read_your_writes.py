# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read your own writes: a cache that shows the answer to a write until the watch has caught up.

A write's answer is the stored object. ReadYourWritesCache shows it until the cache has passed its resourceVersion. Then
the cache has it or a newer version, or the object is gone or outside the selection; subscribers are notified. The cache
never invents an object, and hides one only after the API server has answered that this object (by UID) is gone. No
clock is needed: resourceVersions grow, and a cache knows its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, Literal

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import NotFound
from controlplane.engine.expectations import (
    CachedVersion,
    Expectation,
    StoredObject,
    advance,
    is_last_state,
    read_stored,
    read_version,
)
from controlplane.engine.ports import Api, Cache, Json

log = logging.getLogger(__name__)

Callback = Callable[[Key, bytes | None, bytes | None], None]


class ReadYourWritesCache:
    """A Cache plus the newest answers to own writes and quorum reads: one expectation per key."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._expectations: dict[Key, Expectation] = {}
        self._owned: dict[str, set[Key]] = {}
        """Keys of the shown answers, by the UIDs of their owners."""
        self._ends: list[tuple[int, Key]] = []
        """A heap: the resourceVersion at which an expectation ends. Entries of ended expectations are skipped."""
        self._reads: dict[Key, list[set[str]]] = {}
        """By key, for each quorum read under way: UIDs of objects that have gone since it began."""
        self._callbacks: list[Callback] = []
        cache.subscribe(self._changed)
        cache.on_resource_version(self._on_resource_version)

    @property
    def synced(self) -> bool:
        return self._cache.synced

    @property
    def resource_version(self) -> int:
        return self._cache.resource_version

    def get(self, key: Key) -> bytes | None:
        raw = self._cache.get(key)
        expectation = self._expectations.get(key)
        if expectation is None:
            return raw
        if expectation.is_gone:  # an object of another UID in the cache is older still
            return None
        return raw if expectation.answer is None else expectation.answer.raw

    def uid(self, key: Key) -> str | None:
        """Return the UID of the shown object."""
        raw = self.get(key)
        return None if raw is None else read_version(raw).uid

    def keys(self) -> Collection[Key]:
        candidates = {*self._cache.keys(), *self._expectations}
        return {key for key in candidates if key not in self._expectations or self.get(key) is not None}

    def indexed(self, index: str, value: str) -> Collection[Key]:
        """Filter like the cache; "owner" also has objects that this process has just created."""
        keys = self._cache.indexed(index, value)
        if index != "owner" or not self._expectations:
            return keys
        return {*self._owned.get(value, ()), *(key for key in keys if self._shows_cached(key))}

    def unconfirmed(self) -> Collection[Key]:
        """Return the keys of answers that the cache does not have yet: indexes other than "owner" may lack them."""
        return [key for key, expectation in self._expectations.items() if expectation.answer is not None]

    def subscribe(self, callback: Callback) -> None:
        """Call back with (key, before, after) on every change of the cache, and when an answer ends unseen."""
        self._callbacks.append(callback)

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        self._cache.on_resource_version(callback)

    def is_delete_sent(self, key: Key, uid: str) -> bool:
        """Tell whether this process has deleted that object and the cache does not show it yet."""
        expectation = self._expectations.get(key)
        return expectation is not None and expectation.is_delete_sent and expectation.uid == uid

    @contextmanager
    def reading(self, key: Key) -> Iterator[Collection[str]]:
        """Yield, during a quorum read of key, the UIDs of objects that have gone since it began."""
        gone: set[str] = set()
        self._reads.setdefault(key, []).append(gone)
        try:
            yield gone
        finally:
            others = [uids for uids in self._reads.pop(key) if uids is not gone]
            if others:
                self._reads[key] = others

    def record_write(self, key: Key, body: Json) -> None:
        """Show the answer to a write: the stored object, or the last state of an object that the write ended."""
        if is_last_state(body):
            self.record_absence(key, body["metadata"]["uid"])
        else:
            self._take(key, body, least=0)
            if self.uid(key) is None:  # the cache has passed its version without it
                self._end_reads(key, body["metadata"]["uid"])

    def record_read(self, key: Key, body: Json) -> None:
        """Show the answer to a quorum read.

        If the cache has passed its version without it, the selection does not contain it, and no event will come. It is
        shown until the cache's next resourceVersion: long enough to act on it; then subscribers are notified.
        """
        self._take(key, body, least=self._cache.resource_version + 1)

    def record_delete(self, key: Key, uid: str) -> None:
        """Remember that a delete was accepted, until the shown object has a deletionTimestamp."""
        expectation = self._expectations.get(key) or Expectation(uid)
        if expectation.uid == uid:
            self._put(
                key, advance(replace(expectation, is_delete_sent=True), self._cached(key), self._cache.resource_version)
            )

    def record_absence(self, key: Key, uid: str) -> None:
        """Hide the object with that UID until the cache has removed it, too."""
        expectation = self._expectations.get(key) or Expectation(uid)
        if expectation.uid == uid:
            self._put(key, advance(replace(expectation, is_gone=True), self._cached(key), self._cache.resource_version))

    def _take(self, key: Key, body: Json, *, least: int) -> None:
        answer, uid = read_stored(body), body["metadata"]["uid"]
        cached, current = self._cached(key), self._expectations.get(key) or Expectation(uid)
        if answer.version < max(cached.version + 1 if cached else 0, current.answer.version if current.answer else 0):
            return
        same = current if current.uid == uid else Expectation(uid)
        expectation = replace(same, answer=answer, until=max(same.until, answer.version, least))
        self._put(key, advance(expectation, cached, self._cache.resource_version))

    def _cached(self, key: Key) -> CachedVersion | None:
        raw = self._cache.get(key)
        return None if raw is None else read_version(raw)

    def _shows_cached(self, key: Key) -> bool:
        """Tell whether the shown object is the cache's copy."""
        expectation = self._expectations.get(key)
        return expectation is None or (expectation.answer is None and not expectation.is_gone)

    def _changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Pass a change of the cache on, and report an answer that it ends without having shown it."""
        expectation, last = self._expectations.get(key), before if after is None else after
        ended: StoredObject | None = None
        if expectation is not None and last is not None:
            version = read_version(last)
            ended = self._advance(
                key, None if after is None else version, max(self._cache.resource_version, version.version)
            )
            if ended is not None and ended.version == version.version:
                ended = None  # confirmed
        self._notify(key, before, after)
        if ended is not None:
            self._notify(key, ended.raw, self.get(key))

    def _on_resource_version(self, resource_version: int) -> None:
        """End the answers that the cache has passed without having them, and notify subscribers."""
        ends = self._ends
        while ends and ends[0][0] <= resource_version:
            key = heappop(ends)[1]
            ended = self._advance(key, self._cached(key), resource_version) if key in self._expectations else None
            if ended is not None:
                self._notify(key, ended.raw, self.get(key))

    def _advance(self, key: Key, cached: CachedVersion | None, resource_version: int) -> StoredObject | None:
        """Update the expectation of a key; return the answer that ended with it."""
        expectation = self._expectations[key]
        rest = advance(expectation, cached, resource_version)
        self._put(key, rest)
        return None if rest is not None and rest.answer is not None else expectation.answer

    def _put(self, key: Key, expectation: Expectation | None) -> None:
        """Keep, replace or drop the expectation of a key, with its index of owners and its end."""
        old = self._expectations.pop(key, None)
        for owner in old.shown.owners if old is not None and old.shown is not None else ():
            self._owned[owner].discard(key)
            if not self._owned[owner]:
                del self._owned[owner]
        if expectation is None:
            return
        self._expectations[key] = expectation
        for owner in expectation.shown.owners if expectation.shown is not None else ():
            self._owned.setdefault(owner, set()).add(key)
        if expectation.until > self._cache.resource_version:
            heappush(self._ends, (expectation.until, key))

    def _end_reads(self, key: Key, uid: str) -> None:
        """Mark an object as gone for quorum reads under way: their answers may be older."""
        for gone in self._reads.get(key, ()):
            gone.add(uid)

    def _notify(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        if before is not None and key in self._reads:
            uid = read_version(before).uid
            if (
                after is None or read_version(after).uid != uid
            ):  # a list may replace an object by the next one of its name
                self._end_reads(key, uid)
        for callback in self._callbacks:
            try:
                callback(key, before, after)
            except Exception:
                # A bug in one subscriber must not keep a change from the others.
                log.exception("cache subscriber failed", extra={"key": str(key)})


class ReadYourWritesApi:
    """An Api that records each answer in the caches before the next decision."""

    def __init__(self, api: Api, caches: Mapping[Resource, ReadYourWritesCache]) -> None:
        self._api = api
        self._caches = caches

    async def get(self, resource: Resource, key: Key) -> Json:
        cache = self._caches.get(resource)
        if cache is None:
            return await self._api.get(resource, key)
        shown = cache.uid(key)
        with cache.reading(key) as gone:
            try:
                body = await self._api.get(resource, key)
            except NotFound:
                # Only the object that was shown before the read is gone: a newer one may have been created since.
                if shown is not None:
                    cache.record_absence(key, shown)
                raise
        if body["metadata"]["uid"] not in gone:  # otherwise the answer is older than its end
            cache.record_read(key, body)
        return body

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        stored = await self._api.create(resource, namespace, body)
        self._record_write(resource, Key(namespace, stored["metadata"]["name"]), stored)
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
        self._record_write(resource, key, stored)
        return stored

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str,
        resource_version: str | None = None,
    ) -> None:
        cache = self._caches.get(resource)
        try:
            await self._api.delete(resource, key, uid=uid, resource_version=resource_version)
        except NotFound:
            if cache:
                cache.record_absence(key, uid)
            raise
        if cache:
            cache.record_delete(key, uid)

    def _record_write(self, resource: Resource, key: Key, body: Json) -> None:
        if cache := self._caches.get(resource):
            cache.record_write(key, body)
