# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a Store equal to the API server: list, then watch, for ever.

How it goes:

    list   in pages of bounded size, the first time from the quorum, later from any server that has come
           as far as we have. Each page is taken in as it comes. Only a list that was read to its end
           moves the position and may say that something is gone; then `synced` becomes true.
    watch  from the position, moved on by every event and bookmark. A stream that ends, breaks, falls
           silent or holds half a line is opened again where we were.
    410    in an answer, an ERROR event or a continue token: list again and compare.

An object that cannot be read (nested too deep, say) costs that object and nothing else: what we held of it stays until
it is deleted, everybody else's goes on. A line of the stream that does not even show which object it is about, or that
is too long to be read, is passed by a list from the quorum: opened where we were, the stream would end there for ever.

The position never goes back. A server that has not come as far is asked again; if the quorum itself has
not, the server's history is another one (etcd was restored), and all that this process knows is void.

An API server that cannot be reached leaves the cache as it is: old, but not wrong about absence. Only
"this resource does not exist" and "you may not read it" take `synced` back, because then nobody tells
us of changes any more; it is back once a watch goes on where we were.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError, Forbidden, Gone, NotFound, Unavailable, retry_after_seconds
from controlplane.engine.ports import Clock
from controlplane.kube.cache import IndexFunction, Store, key_of, parse_resource_version, read_partial
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
from controlplane.kube.errors import (
    ANSWER_TOO_LARGE,
    IN_THE_WAY,
    NO_EVENT,
    NOT_SERVED,
    RESOURCE_VERSION_TOO_LARGE,
    causes_reason,
    translate_event,
)
from controlplane.kube.unreadable import Identity, Told, UnreadableError, identify, read_event

log = logging.getLogger(__name__)


PAGE_MOST_BYTES = 4 * PAGE_BYTES  # unless the page is as short as pages get


class HistoryRewoundError(Exception):
    """The server's history ends before what it told us. Whoever runs this process has to begin anew."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The loop's delays, in seconds. Tests make them small."""

    back_off_first: float = 0.2
    back_off_limit: float = 4.0
    """Small enough that the view is fresh 5 s after the API server is back."""
    refused_limit: float = 10.0
    """For a resource that does not exist or may not be read: a human has to act."""
    watch_least: int = 300
    """The server ends a watch after this long to twice this long, so that streams spread over servers."""
    silence: float = 150.0
    """Bookmarks come about once a minute; after this much silence the connection is dead."""
    compare_every: float = 3600.0
    """How often, half as much more or less, the list is read again, against events that were lost without a trace."""


@dataclass(slots=True)
class Counters:
    """What happened so far, for metrics."""

    lists: int = 0
    streams: int = 0
    events: int = 0
    failures: int = 0
    repaired: int = 0
    """Objects that a relist found different although the watch had passed their version. Should stay 0."""
    unreadable: int = 0
    """How often an object could not be read and was passed over. Should stay 0."""


class WatchCache(Store):
    """engine.ports.Cache kept by `run`, which the process puts into its task group."""

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
        self._passed_lines = 0
        self._unreadable = Told(selection)
        self._ready = asyncio.Event()

    async def wait_synced(self) -> None:
        """Return when the first complete list is in."""
        await self._ready.wait()

    def start_over(self) -> None:
        """Know nothing any more, and tell of it. Whoever runs this next lists first: a watch tells but of changes."""
        super().start_over()
        self._list_at = float("-inf")

    async def run(self) -> None:
        """List and watch until cancelled. Never gives up; says so in the log while it cannot.

        Raises HistoryRewoundError when nothing that is known here is true any more.
        """
        while True:
            try:
                if self._clock.monotonic() >= self._list_at:
                    await self._list()
                await self._watch()
                self._failures = self._passed_lines = 0
            except Gone as error:
                log.info("list again", extra={"watching": self.selection, "because": error})
                self._list_at = float("-inf")
                await self._pause(error)
            except ApiError as error:
                self._from_quorum |= causes_reason(error, RESOURCE_VERSION_TOO_LARGE)
                if error.reason in IN_THE_WAY:
                    self._pass_line()
                await self._pause(error)

    async def _list(self) -> None:
        seen: set[Key | None] = set()
        passed, token, version = self.resource_version, "", 0
        self.counters.lists += 1
        while True:
            page = await self._page(token)
            version = version or self._check(page)
            seen.update([await self._take(raw, passed) for raw in page.items])
            token = page.continue_token
            if not token:
                break
        if None not in seen:  # else it may be any of those that we miss
            for key in [
                key for key in self.keys() if key not in seen and parse_resource_version(self.version(key)) <= version
            ]:
                self.remove(key)
        self._unreadable.forget_others(than=seen)
        self._from_quorum = False
        self._list_at = self._clock.monotonic() + self._timing.compare_every * (0.5 + self._jitter())
        self.synced = True
        self.move(version)
        self._ready.set()

    async def _page(self, token: str) -> Page:
        """Read a page of about the right size; a much too large one again, as a shorter one."""
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
        """Return the version of a list that begins with this page. It must have come as far as we have."""
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

    async def _take(self, raw: bytes, passed: int) -> Key | None:
        """Take in an item and return its key; None for one that does not show even that."""
        try:
            seen = read_partial(raw)
            version, held = (
                parse_resource_version(seen.metadata.resource_version),
                parse_resource_version(self.version(key_of(seen))),
            )
            key = self.put(raw)
        except UnreadableError as error:
            identity = await self._identify(raw, error)
            return identity.key if identity else None
        self.counters.repaired += held < version <= passed
        self._unreadable.forget(key)
        return key

    async def _identify(self, raw: bytes, error: UnreadableError) -> Identity | None:
        """Return which object it is that cannot be read, counted and told of."""
        self.counters.unreadable += 1
        identity = await identify(raw)
        self._unreadable.tell(identity, error)
        return identity

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
            await self._follow(lines)
        if events == self.counters.events and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:
            raise Unavailable(f"cannot watch {self.selection}: the server ended the stream at once")

    async def _follow(self, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            try:
                await self._apply(*await read_event(line))
            except UnreadableError as error:
                raise Unavailable(f"cannot watch {self.selection}: not an event ({error})", reason=NO_EVENT) from error
            self._failures = 0

    def _pass_line(self) -> None:
        """Come past a line that cannot be read: by a list that is no older, the later the more of them there are."""
        self._passed_lines += 1
        self._failures = max(self._failures, self._passed_lines)
        self._list_at, self._from_quorum = float("-inf"), True

    async def _apply(self, kind: str, raw: bytes) -> None:
        """Take in one event. The position moves last, so that half an event is read again."""
        if kind == "ERROR":
            raise translate_event(raw, f"watch {self.selection}")
        try:
            version = self._take_event(kind, raw)
        except UnreadableError as error:
            version = await self._pass_object(kind, raw, error)
        if kind != "BOOKMARK":
            self.counters.events += 1
        self.move(version)

    def _take_event(self, kind: str, raw: bytes) -> int:
        seen = read_partial(raw)
        version = parse_resource_version(seen.metadata.resource_version)
        if kind in {"ADDED", "MODIFIED"} and version > self.resource_version:
            self._unreadable.forget(self.put(raw))
        elif kind == "DELETED":
            self.remove(key_of(seen), raw)
            self._unreadable.forget(key_of(seen))
        return version

    async def _pass_object(self, kind: str, raw: bytes, error: UnreadableError) -> int:
        """Return the version up to which an event was taken in whose object cannot be read. That it is gone can be."""
        identity = await self._identify(raw, error)
        if identity is None:
            raise error
        version = parse_resource_version(identity.version)
        if kind == "DELETED":
            self._unreadable.forget(identity.key)
            if parse_resource_version(self.version(identity.key)) <= version:
                self.remove(identity.key)
        return version

    async def _pause(self, error: ApiError) -> None:
        """Wait with full jitter before the next try, longer each time; as long as the server asks at least."""
        self.counters.failures += 1
        refused = isinstance(error, NotFound | Forbidden) or error.reason == NOT_SERVED
        if refused:
            self.synced = False
        limit = self._timing.refused_limit if refused else self._timing.back_off_limit
        longest = min(limit, self._timing.back_off_first * 2 ** min(self._failures, 16))
        delay = retry_after_seconds(error) + longest * self._jitter()
        self._failures += 1
        if self._failures % 16 == 2:  # once soon, then now and then: an outage has other witnesses
            log.warning(
                "cannot keep the cache fresh",
                extra={"watching": self.selection, "because": error, "requeue_after": round(delay, 2)},
            )
        await self._sleep(delay)
