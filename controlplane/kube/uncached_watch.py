# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hear of what is made and changed from now on, and keep none of it: for what is told and not looked up.

Where every word must be had there is a cache (watch.py). Here the newest count: what was said before we listened, or
while nobody could, is not asked for again, so that nobody can make much of it and have us read it for ever.
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
from controlplane.kube.errors import IN_THE_WAY, NO_EVENT, translate_event
from controlplane.kube.unreadable import UnreadableError, read_event

log = logging.getLogger(__name__)

BACK_OFF_FIRST, BACK_OFF_LIMIT = 0.5, 30.0
STREAM_SECONDS, SILENCE_SECONDS = 120, 150.0
"""An API server serves Events without its watch cache, so it sends no bookmarks: where nothing goes wrong nothing is
said until the stream ends as it was asked to. Silence beyond that is a connection that is dead."""


class UncachedWatch:
    """Tells what it hears, as the server wrote it, to one listener, while `run` runs."""

    def __init__(
        self,
        client: Client,
        selection: Selection,
        told: Callable[[bytes], None],
        *,
        clock: Clock,
        jitter: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._selection = selection
        self._told = told
        self._clock = clock
        self._jitter = jitter
        self._sleep = sleep
        self._position = 0
        """0: begin with what comes next."""
        self._failures = 0

    async def run(self) -> None:
        """Listen until cancelled. Never gives up."""
        while True:
            try:
                await self._listen()
            except ApiError as error:
                if isinstance(error, Gone) or error.reason in IN_THE_WAY:
                    self._position = 0
                await self._pause(error)

    async def _listen(self) -> None:
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
            await self._hear(lines)
        if began == self._position and self._clock.monotonic() - opened < SHORTEST_STREAM_SECONDS:
            raise Unavailable(f"cannot watch {self._selection}: the server ended the stream and had said nothing")
        self._failures = 0

    async def _hear(self, lines: AsyncIterator[bytes]) -> None:
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
                continue  # it costs itself; the position moves with the next one
            if kind in ("ADDED", "MODIFIED"):
                self._told(raw)
            self._position, self._failures = version, 0

    async def _pause(self, error: ApiError) -> None:
        self._failures += 1
        if self._failures == 3 or isinstance(error, Forbidden | NotFound):
            log.warning("cannot listen", extra={"watching": self._selection, "because": error})
        longest = min(BACK_OFF_LIMIT, BACK_OFF_FIRST * 2 ** min(self._failures, 16))
        await self._sleep(retry_after_seconds(error) + longest * (0.5 + self._jitter() / 2))
