# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Never decide on a view older than one's own writes: caches that know what was written, an API that tells them.

Writes answer with the stored object. ReadYourWritesCache shows that answer until the cache has read past its
version: then the cache has it or a newer version, or the object is gone or outside the selection, and waiters are
notified. The cache never invents an object, and hides one only when the API server said that this very object is
gone. No clock is needed: resourceVersions are growing integers, and a cache knows how far it has read.
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
    """A Cache plus the newest answers of own writes and quorum reads: one record per key."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._records: dict[Key, Expectation] = {}
        self._owned: dict[str, set[Key]] = {}
        """Keys of the answers that are shown, by the UIDs of their owners."""
        self._ends: list[tuple[int, Key]] = []
        """A heap: at which position to look at a record again. What was settled before is passed over."""
        self._questions: dict[Key, list[set[str]]] = {}
        """Of each question that is under way: UIDs of what was told to be gone since."""
        self._callbacks: list[Callback] = []
        cache.subscribe(self._changed)
        cache.on_resource_version(self._moved)

    @property
    def synced(self) -> bool:
        return self._cache.synced

    @property
    def resource_version(self) -> int:
        return self._cache.resource_version

    def get(self, key: Key) -> bytes | None:
        raw = self._cache.get(key)
        record = self._records.get(key)
        if record is None:
            return raw
        if record.is_gone:  # whatever else the cache has under the name is older still
            return None
        return raw if record.answer is None else record.answer.raw

    def uid(self, key: Key) -> str | None:
        """Return the UID of the object that is shown."""
        raw = self.get(key)
        return None if raw is None else read_version(raw).uid

    def keys(self) -> Collection[Key]:
        known = {*self._cache.keys(), *self._records}
        return {key for key in known if key not in self._records or self.get(key) is not None}

    def indexed(self, index: str, value: str) -> Collection[Key]:
        """Filter like the cache; under "owner" by what is shown, own creates included."""
        found = self._cache.indexed(index, value)
        if index != "owner" or not self._records:
            return found
        return {*self._owned.get(value, ()), *(key for key in found if self._shows_cached(key))}

    def subscribe(self, callback: Callback) -> None:
        """Call back with (key, before, after) on every change of the cache, and when an answer ends unconfirmed."""
        self._callbacks.append(callback)

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        self._cache.on_resource_version(callback)

    def is_delete_sent(self, key: Key, uid: str) -> bool:
        """Tell whether this process asked to delete that object and has not yet seen the effect."""
        record = self._records.get(key)
        return record is not None and record.is_delete_sent and record.uid == uid

    @contextmanager
    def asking(self, key: Key) -> Iterator[Collection[str]]:
        """Know, while it is asked about a key, the UIDs of what is shown under it no more since then."""
        gone: set[str] = set()
        self._questions.setdefault(key, []).append(gone)
        try:
            yield gone
        finally:
            left = [one for one in self._questions.pop(key) if one is not gone]
            if left:
                self._questions[key] = left

    def note(self, key: Key, body: Json) -> None:
        """Take in an object as the API server just stored it, or as it was when this write ended it."""
        if is_last_state(body):
            self.note_absence(key, body["metadata"]["uid"])
        else:
            self._take(key, body, least=0)
            if self.uid(key) is None:  # the cache is past it without it
                self._end_questions(key, body["metadata"]["uid"])

    def note_found(self, key: Key, body: Json) -> None:
        """Take in an object as a quorum read found it.

        When the cache is past its version without it, the selection does not contain it, and no event will ever tell.
        It is shown until the cache moves on: long enough to act on it, and then whoever waits looks again.
        """
        self._take(key, body, least=self._cache.resource_version + 1)

    def note_delete(self, key: Key, uid: str) -> None:
        """Remember that a delete of that object was accepted, while it is shown without the mark of it."""
        record = self._records.get(key) or Expectation(uid)
        if record.uid == uid:
            self._put(
                key, advance(replace(record, is_delete_sent=True), self._cached(key), self._cache.resource_version)
            )

    def note_absence(self, key: Key, uid: str) -> None:
        """Take in that the object with that UID is gone: hide it until the cache knows, too."""
        record = self._records.get(key) or Expectation(uid)
        if record.uid == uid:
            self._put(key, advance(replace(record, is_gone=True), self._cached(key), self._cache.resource_version))

    def _take(self, key: Key, body: Json, *, least: int) -> None:
        answer, uid = read_stored(body), body["metadata"]["uid"]
        cached, held = self._cached(key), self._records.get(key) or Expectation(uid)
        if answer.version < max(cached.version + 1 if cached else 0, held.answer.version if held.answer else 0):
            return
        same = held if held.uid == uid else Expectation(uid)
        record = replace(same, answer=answer, until=max(same.until, answer.version, least))
        self._put(key, advance(record, cached, self._cache.resource_version))

    def _cached(self, key: Key) -> CachedVersion | None:
        raw = self._cache.get(key)
        return None if raw is None else read_version(raw)

    def _shows_cached(self, key: Key) -> bool:
        """Tell whether what is shown under a key of the cache is the cache's copy."""
        record = self._records.get(key)
        return record is None or (record.answer is None and not record.is_gone)

    def _changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Pass the cache's change on; tell as well of an answer that it ends without having shown it."""
        record, last = self._records.get(key), before if after is None else after
        ended: StoredObject | None = None
        if record is not None and last is not None:
            seen = read_version(last)
            ended = self._settle(key, None if after is None else seen, max(self._cache.resource_version, seen.version))
            if ended is not None and ended.version == seen.version:
                ended = None  # confirmed
        self._tell(key, before, after)
        if ended is not None:
            self._tell(key, ended.raw, self.get(key))

    def _moved(self, resource_version: int) -> None:
        """End the answers that the cache is past without having them, and wake who waits for them."""
        ends = self._ends
        while ends and ends[0][0] <= resource_version:
            key = heappop(ends)[1]
            ended = self._settle(key, self._cached(key), resource_version) if key in self._records else None
            if ended is not None:
                self._tell(key, ended.raw, self.get(key))

    def _settle(self, key: Key, cached: CachedVersion | None, resource_version: int) -> StoredObject | None:
        """Settle the record of a key; return the answer that ended with it."""
        record = self._records[key]
        left = advance(record, cached, resource_version)
        self._put(key, left)
        return None if left is not None and left.answer is not None else record.answer

    def _put(self, key: Key, record: Expectation | None) -> None:
        """Keep, replace or drop the record of a key; the index of owners and the heap follow."""
        old = self._records.pop(key, None)
        for owner in old.shown.owners if old is not None and old.shown is not None else ():
            self._owned[owner].discard(key)
            if not self._owned[owner]:
                del self._owned[owner]
        if record is None:
            return
        self._records[key] = record
        for owner in record.shown.owners if record.shown is not None else ():
            self._owned.setdefault(owner, set()).add(key)
        if record.until > self._cache.resource_version:
            heappush(self._ends, (record.until, key))

    def _end_questions(self, key: Key, uid: str) -> None:
        """Have answers that are on their way bring nothing of an object: what is known of it is newer."""
        for gone in self._questions.get(key, ()):
            gone.add(uid)

    def _tell(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        if before is not None and key in self._questions:
            was = read_version(before).uid
            if after is None or read_version(after).uid != was:  # a relist tells of the next one of a name at once
                self._end_questions(key, was)
        for callback in self._callbacks:
            try:
                callback(key, before, after)
            except Exception:
                # One reader's bug must not keep a change from the others.
                log.exception("overlay subscriber failed", extra={"key": str(key)})


class ReadYourWritesApi:
    """An Api whose answers go into the overlays before anyone decides again."""

    def __init__(self, api: Api, overlays: Mapping[Resource, ReadYourWritesCache]) -> None:
        self._api = api
        self._overlays = overlays

    async def get(self, resource: Resource, key: Key) -> Json:
        overlay = self._overlays.get(resource)
        if overlay is None:
            return await self._api.get(resource, key)
        shown = overlay.uid(key)
        with overlay.asking(key) as gone:
            try:
                body = await self._api.get(resource, key)
            except NotFound:
                # Gone is what was known before the question: one made since then is not what was asked about.
                if shown is not None:
                    overlay.note_absence(key, shown)
                raise
        if body["metadata"]["uid"] not in gone:  # else the answer is older than what was told of its end
            overlay.note_found(key, body)
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
    ) -> None:
        overlay = self._overlays.get(resource)
        try:
            await self._api.delete(resource, key, uid=uid, resource_version=resource_version)
        except NotFound:
            if overlay:
                overlay.note_absence(key, uid)
            raise
        if overlay:
            overlay.note_delete(key, uid)

    def _note(self, resource: Resource, key: Key, body: Json) -> None:
        if overlay := self._overlays.get(resource):
            overlay.note(key, body)
