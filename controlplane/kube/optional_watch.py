# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep a cache of a kind that a cluster may not serve: watched while its CustomResourceDefinition is there.

Nothing is asked of an API server that does not serve the kind. What was known is forgotten when the kind goes, and
`synced` is false then: nobody may conclude from absence. What was read of the definition holds while it may not be read
any more: a kind that is gone is not served to the watch of it either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from controlplane.api.objects.resources import Key
from controlplane.kube.watch import WatchCache


class OptionalWatch:
    """Runs two caches: of one definition for ever, and of its kind while `is_served` says so of the definition."""

    def __init__(
        self, definition: WatchCache, cache: WatchCache, name: str, is_served: Callable[[bytes | None], bool]
    ) -> None:
        self._definition = definition
        self._cache = cache
        self._name = name
        self._is_served = is_served
        self._changed = asyncio.Event()
        self._listeners: list[Callable[[], None]] = []
        self._told = (False, False)
        definition.subscribe(lambda *_unused: self._notice())
        definition.on_resource_version(
            lambda _position: self._notice()
        )  # the first list tells of its end by that alone
        cache.on_synced(self._notice)

    @property
    def is_served(self) -> bool:
        """Tell whether the cluster serves the kind, as far as is known."""
        return self._is_served(self._definition.get(Key("", self._name)))

    @property
    def is_absent(self) -> bool:
        """Tell whether the cluster is known not to serve the kind."""
        return self._definition.resource_version > 0 and not self.is_served

    @property
    def is_known(self) -> bool:
        """Tell whether absence from the cache means something."""
        return self.is_served and self._cache.synced

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call back when `is_absent` or `is_known` has changed: who was told otherwise waits for it."""
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

    def _notice(self) -> None:
        self._changed.set()
        now = (self.is_absent, self.is_known)
        if now == self._told:
            return
        self._told = now
        for listener in self._listeners:
            listener()
