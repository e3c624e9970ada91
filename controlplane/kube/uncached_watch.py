# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watch a resource without keeping its objects: a callback gets each new or changed object, from now on.

Where every change counts, use watch.py. Here only the newest counts: changes from before the watch, or from a time
without a connection, are not read later. So a user who creates many objects cannot keep this process busy with old
ones.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable

from controlplane.engine.errors import ApiError, Forbidden, Gone, NotFound, Unavailable, retry_after_seconds
from controlplane.engine.ports import Clock
from controlplane.kube.cache import parse_resource_version, read_partial
from controlplane.kube.client import SHORTEST_STREAM_SECONDS, Client, Selection
from controlplane.kube.decoding import MAX_LEVELS, UnreadableError, is_deeper, read_event
from controlplane.kube.errors import IN_THE_WAY, NO_EVENT, translate_event

log = logging.getLogger(__name__)

BACK_OFF_FIRST, BACK_OFF_LIMIT = 0.5, 30.0
STREAM_SECONDS, SILENCE_SECONDS = 120, 150.0
"""An API server serves Events without its watch cache, so it sends no bookmarks: without Events a stream is silent
until its end after STREAM_SECONDS. A longer silence is a dead connection."""


class UncachedWatch:
    """Calls on_object with each object, as the server wrote it, while `run` runs."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        on_object: Callable[[bytes], None],
        *,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._selection = selection
        self._on_object = on_object
        self._clock = clock
        self._jitter = jitter
        self._sleep = sleep
        self._position = 0
        """0: begin at the server's current version."""
        self._failures = 0

    async def run(self) -> None:
        """Watch until cancelled. Errors are retried."""
        while True:
            try:
                await self._watch()
            except ApiError as error:
                if isinstance(error, Gone) or error.reason in IN_THE_WAY:
                    self._position = 0
                await self._pause(error)

    async def _watch(self) -> None:
        if not self._position:
            page = await self._client.list_page(self._selection, limit=1)
            self._position = parse_resource_version(page.resource_version)
        stream = self._client.watch(
            self._selection,
            str(self._position),
            timeout_seconds=STREAM_SECONDS,
            silence_seconds=SILENCE_SECONDS,
        )
        began, opened = self._position, self._clock.monotonic()
        async with stream as lines:
            await self._read_events(lines)
        if began == self._position and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:
            raise Unavailable(f"cannot watch {self._selection}: the server ended the stream without an event")
        self._failures = 0

    async def _read_events(self, lines: AsyncIterator[bytes]) -> None:
        async for line in lines:
            try:
                kind, raw = await read_event(line)
            except UnreadableError as error:
                raise Unavailable(f"cannot watch {self._selection}: {error}", reason=NO_EVENT) from error
            if kind == "ERROR":
                raise translate_event(raw, f"watch {self._selection}")
            try:
                version = parse_resource_version(read_partial(raw).metadata.resource_version)
            except UnreadableError:
                continue  # the next event moves the resourceVersion
            if kind in ("ADDED", "MODIFIED") and not is_deeper(raw, MAX_LEVELS):
                self._on_object(raw)
            self._position, self._failures = version, 0

    async def _pause(self, error: ApiError) -> None:
        self._failures += 1
        if self._failures == 3 or isinstance(error, Forbidden | NotFound):
            log.warning("cannot watch", extra={"watching": self._selection, "because": error})
        longest = min(BACK_OFF_LIMIT, BACK_OFF_FIRST * 2 ** min(self._failures, 16))
        await self._sleep(retry_after_seconds(error) + longest * (0.5 + self._jitter() / 2))
