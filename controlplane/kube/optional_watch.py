# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a cache of a kind that a cluster may not serve: watched while its CustomResourceDefinition exists.

An API server that does not serve the kind gets no request for it. When the kind goes, the cache is emptied, and
`synced` is false: absence then means nothing. If the definition may not be read any more, its last state counts: a
deleted kind is not served to the kind's own watch either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from controlplane.api.objects.resources import Key
from controlplane.kube.watch import WatchCache


class OptionalWatch:
    """Runs two caches: of the definition always, and of its kind while `is_served(definition)` is true."""

    def __init__(
        self, definition: WatchCache, cache: WatchCache, name: str, is_served: Callable[[bytes | None], bool]
    ) -> None:
        self._definition = definition
        self._cache = cache
        self._name = name
        self._is_served = is_served
        self._changed = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._state = (False, False)
        definition.subscribe(lambda *_unused: self._notify())
        definition.on_resource_version(
            lambda _version: self._notify()
        )  # the end of the first list changes nothing else
        cache.on_synced(self._notify)

    @property
    def is_served(self) -> bool:
        """Tell whether the cluster serves the kind, by the cached definition."""
        return self._is_served(self._definition.get(Key("", self._name)))

    @property
    def is_absent(self) -> bool:
        """Tell whether the definitions were read, and the cluster does not serve the kind."""
        return self._definition.resource_version > 0 and not self.is_served

    @property
    def is_synced(self) -> bool:
        """Tell whether absence from the cache means absence from the cluster."""
        return self.is_served and self._cache.synced

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call back when `is_absent` or `is_synced` has changed."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._definition.run())
            while True:
                await self._until(served=True)
                watching = group.create_task(self._cache.run())
                await self._until(served=False)
                watching.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({watching})
                self._cache.start_over()

    async def _until(self, *, served: bool) -> None:
        while self.is_served is not served:
            self._changed.clear()
            await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        state = (self.is_absent, self.is_synced)
        if state == self._state:
            return
        self._state = state
        for listener in self._listeners:
            listener()
