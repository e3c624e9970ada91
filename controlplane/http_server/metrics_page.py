# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a process's metrics, rendered in a thread and kept for a few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

KEEP_SECONDS = 5.0
"""How long a page is served: frequent requests cost no more than one in this time."""


class MetricsPage:
    """Renders the metrics of one registry."""

    def __init__(self, registry: CollectorRegistry, refresh: Callable[[], Awaitable[None]] | None = None) -> None:
        """refresh: called before each rendering, for metrics that have to be read."""
        self._registry, self._refresh = registry, refresh
        self._page = b""
        self._expires = 0.0
        self._rendering = asyncio.Lock()

    async def render(self) -> bytes:
        """Return the page. Thousands of machines make megabytes of text, and other requests must not wait for it."""
        loop = asyncio.get_running_loop()
        async with self._rendering:
            if loop.time() >= self._expires:
                if self._refresh is not None:
                    await self._refresh()
                self._page = await asyncio.to_thread(generate_latest, self._registry)
                self._expires = loop.time() + KEEP_SECONDS
        return self._page
