# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a Store equal to the API server: list, then watch, for ever.

How it goes:

    list   in pages, from the quorum. Each page is taken in as it comes. Only a list that was read to
           its end may say that something is gone; then `synced` becomes true.
    watch  from the list's resourceVersion, moved on by every event and bookmark. A stream that ends,
           breaks, falls silent or holds half a line is opened again where we were.
    410    in an answer, an ERROR event or a continue token: list again and compare.

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

import msgspec

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError, Forbidden, Gone, NotFound, Unavailable, retry_after_seconds
from controlplane.engine.ports import Clock
from controlplane.kube.cache import Index, Store, key_of, peek
from controlplane.kube.client import Client, Selection
from controlplane.kube.errors import NOT_SERVED, translate_event

log = logging.getLogger(__name__)


SHORTEST_STREAM_SECONDS = 1.0  # an empty stream that ends sooner is a fault, not the end of a watch


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
    compare_every: float = 600.0
    """How often the whole list is read again, against events that were lost without a trace."""


@dataclass(slots=True)
class Counters:
    """What happened so far, for metrics."""

    lists: int = 0
    streams: int = 0
    events: int = 0
    failures: int = 0
    repaired: int = 0
    """Objects that a relist found different although the watch had passed their version. Should stay 0."""


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event_decoder = msgspec.json.Decoder(_Event)


class WatchCache(Store):
    """engine.ports.Cache kept by `run`, which the process puts into its task group."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        clock: Clock,
        *,
        indexes: Mapping[str, Index] | None = None,
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
        self._version = ""
        self._listed_at = 0.0
        self._failures = 0
        self._ready = asyncio.Event()

    async def wait_synced(self) -> None:
        """Return when the first complete list is in."""
        await self._ready.wait()

    async def run(self) -> None:
        """List and watch until cancelled. Never gives up; says so in the log while it cannot."""
        while True:
            try:
                if not self._version or self._clock.monotonic() - self._listed_at >= self._timing.compare_every:
                    await self._list()
                await self._watch()
                self._failures = 0
            except Gone as error:
                log.info("list again", extra={"watching": self.selection, "because": error})
                self._version = ""
                await self._pause(error)
            except ApiError as error:
                await self._pause(error)

    async def _list(self) -> None:
        seen: set[Key] = set()
        passed, token, version = _number(self._version), "", ""
        self.counters.lists += 1
        while True:
            page = await self._client.list_page(self.selection, token)
            version = version or page.resource_version
            seen.update(self._take(raw, passed) for raw in page.items)
            token = page.continue_token
            if not token:
                break
        for key in [key for key in self.keys() if key not in seen]:
            self.remove(key)
        self._version = version
        self.move(_number(version))
        self._listed_at = self._clock.monotonic()
        self.synced = True
        self._ready.set()

    def _take(self, raw: bytes, passed: int) -> Key:
        try:
            seen = peek(raw)
            key = key_of(seen)
            if passed and _number(seen.metadata.resource_version) <= passed:
                self.counters.repaired += self.version(key) != seen.metadata.resource_version
            return self.put(raw)
        except msgspec.DecodeError as error:
            raise Unavailable(f"cannot list {self.selection}: an item is no object ({error})") from error

    async def _watch(self) -> None:
        self.counters.streams += 1
        least = self._timing.watch_least
        timeout = least + int(least * self._jitter())
        events, opened = self.counters.events, self._clock.monotonic()
        stream = self._client.watch(
            self.selection, self._version, timeout_seconds=timeout, silence_seconds=self._timing.silence
        )
        async with stream as lines:
            self.synced = True
            await self._follow(lines)
        if events == self.counters.events and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:
            raise Unavailable(f"cannot watch {self.selection}: the server ended the stream at once")

    async def _follow(self, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            try:
                event = _event_decoder.decode(line)
                self._apply(event.type, bytes(event.object))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise Unavailable(f"cannot watch {self.selection}: not an event ({error})") from error
            self._failures = 0

    def _apply(self, kind: str, raw: bytes) -> None:
        """Take in one event. The position moves last, so that half an event is read again."""
        if kind == "ERROR":
            raise translate_event(raw, f"watch {self.selection}")
        seen = peek(raw)
        if kind in {"ADDED", "MODIFIED"}:
            self.put(raw)
        elif kind == "DELETED":
            self.remove(key_of(seen))
        if kind != "BOOKMARK":
            self.counters.events += 1
        self._version = seen.metadata.resource_version or self._version
        self.move(_number(self._version))

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
                extra={"watching": self.selection, "because": error, "look_again_in": round(delay, 2)},
            )
        await self._sleep(delay)


def _number(version: str) -> int:
    """Return a resourceVersion as a number; they are comparable within one resource."""
    return int(version) if version.isdigit() else 0
