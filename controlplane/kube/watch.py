# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a Store equal to the API server: list, then watch, until cancelled.

    list   in pages of bounded size: the first time from the quorum, later from any server that has reached this
           cache's resourceVersion. Each page is stored as it comes. Only a complete list moves the resourceVersion and
           removes objects; then `synced` becomes true.
    watch  from the resourceVersion, which every event and bookmark moves. A stream that ends, breaks, sends nothing or
           ends within a line is opened again at the same resourceVersion.
    410    in a response, an ERROR event or a continue token: list again and compare.

An object that cannot be read (e.g. because it is nested too deeply) is skipped: its cached copy stays until the object
is deleted, and other objects are not affected. A line of a watch that is not an event, or too long, is skipped by a
list from the quorum: a watch from the same resourceVersion would end at that line again.

The resourceVersion never goes back. A server that has not reached it is asked again. If the quorum has not reached it,
the server has another history (etcd was restored): all state of this process is invalid.

If the API server is unreachable, the cache stays as it is: old, but not wrong about absence. Only "this resource does
not exist" and "you may not read it" set `synced` to false, because then no changes arrive. The next watch restores it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError, Forbidden, Gone, NotFound, Unavailable, retry_after_seconds
from controlplane.engine.ports import Clock
from controlplane.kube.cache import IndexFunction, PartialObject, Store, key_of, parse_resource_version, read_partial
from controlplane.kube.client import (
    LEAST_ITEMS,
    PAGE_BYTES,
    PAGE_ITEMS,
    SHORTEST_STREAM_SECONDS,
    Client,
    Page,
    Selection,
    fit_limit,
)
from controlplane.kube.decoding import UnreadableError, cut, read_event
from controlplane.kube.errors import (
    ANSWER_TOO_LARGE,
    IN_THE_WAY,
    NO_EVENT,
    NOT_SERVED,
    RESOURCE_VERSION_TOO_LARGE,
    causes_reason,
    translate_event,
)

log = logging.getLogger(__name__)


PAGE_MOST_BYTES = 4 * PAGE_BYTES  # a page of LEAST_ITEMS may be larger


class HistoryRewoundError(Exception):
    """The server's history ends before this cache's resourceVersion. The process must restart."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The loop's delays, in seconds. Tests make them small."""

    back_off_first: float = 0.2
    back_off_limit: float = 4.0
    """So short that the cache is up to date 5 s after the API server is reachable again."""
    refused_limit: float = 10.0
    """For a resource that does not exist or may not be read: an administrator has to act."""
    watch_least: int = 300
    """The server ends a watch after this time, or up to twice of it: so streams spread over servers."""
    silence: float = 150.0
    """Bookmarks come about once a minute: a connection is dead if it sends nothing for this long."""
    compare_every: float = 3600.0
    """How often (plus or minus a half) the objects are listed again, in case an event was lost."""


@dataclass(slots=True)
class Counters:
    """What happened so far, for metrics."""

    lists: int = 0
    streams: int = 0
    events: int = 0
    failures: int = 0
    repaired: int = 0
    """Objects that were newer in a list than in the cache, although the watch had passed their version. Should stay 0.
    """
    unreadable: int = 0
    """How often an object could not be read and was skipped. Should stay 0."""


class WatchCache(Store):
    """engine.ports.Cache, kept up to date by `run`, which the process puts into its task group."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        clock: Clock,
        *,
        indexes: Mapping[str, IndexFunction] | None = None,
        timing: Timing | None = None,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(selection.resource, indexes)
        self.selection = selection
        self.counters = Counters()
        self._client = client
        self._clock = clock
        self._timing = timing or Timing()
        self._jitter = jitter
        self._sleep = sleep
        self._list_at = float("-inf")
        self._from_quorum = True
        self._limit = PAGE_ITEMS
        self._failures = 0
        self._skipped_lines = 0
        self._unreadable: set[Key] = set()
        """Keys of unreadable objects that are logged already."""
        self._ready = asyncio.Event()

    async def wait_synced(self) -> None:
        """Return when the first list is complete."""
        await self._ready.wait()

    def start_over(self) -> None:
        """Remove all objects. `run` then lists first, because a watch reports only changes."""
        super().start_over()
        self._list_at = float("-inf")

    async def run(self) -> None:
        """List and watch until cancelled. Errors are logged and retried.

        Raises HistoryRewoundError when the state in this cache is invalid.
        """
        while True:
            try:
                if self._clock.monotonic() >= self._list_at:
                    await self._list()
                await self._watch()
                self._failures = self._skipped_lines = 0
            except Gone as error:
                log.info("list again", extra={"watching": self.selection, "because": error})
                self._list_at = float("-inf")
                await self._pause(error)
            except ApiError as error:
                self._from_quorum |= causes_reason(error, RESOURCE_VERSION_TOO_LARGE)
                if error.reason in IN_THE_WAY:
                    self._skip_line()
                await self._pause(error)

    async def _list(self) -> None:
        keys: set[Key | None] = set()
        watched_to, token, version = self.resource_version, "", 0
        self.counters.lists += 1
        while True:
            page = await self._page(token)
            version = version or self._check(page)
            keys.update([await self._store_item(raw, watched_to) for raw in page.items])
            token = page.continue_token
            if not token:
                break
        if None not in keys:  # an item without a key may be any of the objects that the list lacks
            stale = (key for key in self.keys() if parse_resource_version(self.version(key)) <= version)
            for key in [key for key in stale if key not in keys]:
                self.remove(key)
        self._unreadable.intersection_update(keys)
        self._from_quorum = False
        self._list_at = self._clock.monotonic() + self._timing.compare_every * (0.5 + self._jitter())
        self.synced = True
        self.move(version)
        self._ready.set()

    async def _page(self, token: str) -> Page:
        """Read a page of about the right size. A page that is much too large is read again, with fewer items."""
        while True:
            most = PAGE_MOST_BYTES if self._limit > LEAST_ITEMS else 0
            least = 0 if self._from_quorum else self.resource_version
            try:
                page = await self._client.list_page(
                    self.selection, token, limit=self._limit, not_older_than=least, most_bytes=most
                )
            except Unavailable as error:
                if error.reason != ANSWER_TOO_LARGE:
                    raise
                self._limit = max(LEAST_ITEMS, self._limit // 8)
            else:
                self._limit = fit_limit(page.items, self._limit)
                return page

    def _check(self, page: Page) -> int:
        """Return the version of a list that begins with this page. Raises if it is older than this cache's."""
        version = parse_resource_version(page.resource_version)
        if version and version >= self.resource_version:
            return version
        message = (
            f"cannot list {self.selection}: the server is at resourceVersion {page.resource_version!r}, "
            f"this cache is at {self.resource_version}"
        )
        if version and self._from_quorum:
            raise HistoryRewoundError(message)
        self._from_quorum = True
        raise Unavailable(message)

    async def _store_item(self, raw: bytes, watched_to: int) -> Key | None:
        """Store an item of a list and return its key; None for an item without a key."""
        try:
            item = read_partial(raw)
            version = parse_resource_version(item.metadata.resource_version)
            cached = parse_resource_version(self.version(key_of(item)))
            key = self.put(raw)
        except UnreadableError as error:
            skipped = await self._skip(raw, error)
            return key_of(skipped) if skipped else None
        self.counters.repaired += cached < version <= watched_to
        self._unreadable.discard(key)
        return key

    async def _skip(self, raw: bytes, error: UnreadableError) -> PartialObject | None:
        """Count and log an unreadable object. Returns its metadata, if it has a name and a version."""
        self.counters.unreadable += 1
        skipped: PartialObject | None = None
        with suppress(UnreadableError):
            skipped = read_partial(await asyncio.to_thread(cut, raw))
        if skipped is None or not (skipped.metadata.name and skipped.metadata.resource_version):
            log.warning("cannot read an object", extra={"watching": self.selection, "key": "?", "because": error})
            return None
        key = key_of(skipped)
        if key not in self._unreadable:
            log.warning("cannot read an object", extra={"watching": self.selection, "key": key, "because": error})
            self._unreadable.add(key)
        return skipped

    async def _watch(self) -> None:
        self.counters.streams += 1
        least = self._timing.watch_least
        timeout = least + int(least * self._jitter())
        events, opened = self.counters.events, self._clock.monotonic()
        stream = self._client.watch(
            self.selection, str(self.resource_version), timeout_seconds=timeout, silence_seconds=self._timing.silence
        )
        async with stream as lines:
            self.synced = True
            await self._read_events(lines)
        if events == self.counters.events and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:
            raise Unavailable(f"cannot watch {self.selection}: the server ended the stream at once")

    async def _read_events(self, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            try:
                kind, raw = await read_event(line)
            except UnreadableError as error:
                raise Unavailable(f"cannot watch {self.selection}: not an event ({error})", reason=NO_EVENT) from error
            await self._apply(kind, raw)
            self._failures = 0

    def _skip_line(self) -> None:
        """Skip an unreadable line by a list from the quorum, after a pause that grows with the number of such lines."""
        self._skipped_lines += 1
        self._failures = max(self._failures, self._skipped_lines)
        self._list_at, self._from_quorum = float("-inf"), True

    async def _apply(self, kind: str, raw: bytes) -> None:
        """Store one event. The resourceVersion moves last, so that an interrupted event is read again."""
        if kind == "ERROR":
            raise translate_event(raw, f"watch {self.selection}")
        try:
            version = self._apply_event(kind, raw)
        except UnreadableError as error:
            version = await self._skip_event(kind, raw, error)
        if kind != "BOOKMARK":
            self.counters.events += 1
        self.move(version)

    def _apply_event(self, kind: str, raw: bytes) -> int:
        obj = read_partial(raw)
        version = parse_resource_version(obj.metadata.resource_version)
        if kind in {"ADDED", "MODIFIED"} and version > self.resource_version:
            self._unreadable.discard(self.put(raw))
        elif kind == "DELETED":
            self.remove(key_of(obj), raw)
            self._unreadable.discard(key_of(obj))
        return version

    async def _skip_event(self, kind: str, raw: bytes, error: UnreadableError) -> int:
        """Skip an event with an unreadable object and return its version. A deletion still removes the object."""
        skipped = await self._skip(raw, error)
        if skipped is None:
            raise Unavailable(f"cannot watch {self.selection}: not an event ({error})", reason=NO_EVENT) from error
        key, version = key_of(skipped), parse_resource_version(skipped.metadata.resource_version)
        if kind == "DELETED":
            self._unreadable.discard(key)
            if parse_resource_version(self.version(key)) <= version:
                self.remove(key)
        return version

    async def _pause(self, error: ApiError) -> None:
        """Wait with full jitter before the next attempt, longer each time; at least for the server's Retry-After."""
        self.counters.failures += 1
        refused = isinstance(error, NotFound | Forbidden) or error.reason == NOT_SERVED
        if refused:
            self.synced = False
        limit = self._timing.refused_limit if refused else self._timing.back_off_limit
        longest = min(limit, self._timing.back_off_first * 2 ** min(self._failures, 16))
        delay = retry_after_seconds(error) + longest * self._jitter()
        self._failures += 1
        if self._failures % 16 == 2:  # first soon, then rarely: other components log an outage, too
            log.warning(
                "cannot keep the cache fresh",
                extra={"watching": self.selection, "because": error, "requeue_after": round(delay, 2)},
            )
        await self._sleep(delay)
