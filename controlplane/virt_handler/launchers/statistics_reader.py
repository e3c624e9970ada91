# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the statistics of all guests of a node, for one page of metrics.

A launcher may be a tenant's and answer slowly or never. So the page does not wait long for it: the guest's metrics are
missing from the page, and its launcher is asked again after a pause (pace.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol
from weakref import WeakKeyDictionary

from controlplane.api.objects.resources import Key
from controlplane.domain.statistics import Statistics
from controlplane.engine.ports import Clock
from controlplane.virt_handler.launchers.pace import LatePauses
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

AT_ONCE = 8
"""Each takes a thread and a few milliseconds."""
LAUNCHER_SECONDS = 1.0
ALL_SECONDS = 2.0
"""Monitoring waits 10 s for a page."""


class Source(Protocol):
    """A launcher with a connection."""

    async def statistics(self) -> Statistics | None:
        """Read the counters; None while there is no guest. VerbRefused, NoContact."""


class StatisticsReader:
    """Remembers which launchers were late."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pauses: WeakKeyDictionary[Source, LatePauses] = WeakKeyDictionary()

    async def read(self, sources: Sequence[tuple[Key, Source]]) -> dict[Key, Statistics]:
        """Return the counters of the guests whose launchers answer in time. A VMI may have several launchers."""
        found: dict[Key, Statistics] = {}
        slots = asyncio.Semaphore(AT_ONCE)

        async def read(key: Key, source: Source) -> None:
            async with slots:
                if counters := await self._read_in_time(source):
                    found[key] = counters

        with suppress(TimeoutError):
            async with asyncio.timeout(ALL_SECONDS), asyncio.TaskGroup() as group:
                for key, source in self._due(sources):
                    group.create_task(read(key, source))
        return found

    def _due(self, sources: Sequence[tuple[Key, Source]]) -> list[tuple[Key, Source]]:
        """Return the launchers that are asked now. Those that were late come last: they may take all the time."""
        now, none = self._clock.monotonic(), LatePauses()
        due = [item for item in sources if now >= self._pauses.get(item[1], none).until]
        return sorted(due, key=lambda item: self._pauses.get(item[1], none).count)

    async def _read_in_time(self, source: Source) -> Statistics | None:
        pauses = self._pauses.setdefault(source, LatePauses())
        try:
            async with asyncio.timeout(LAUNCHER_SECONDS):
                counters = await source.statistics()
        except TimeoutError:
            pauses.note(self._clock.monotonic())
            return None
        except asyncio.CancelledError:  # it is the page that is late
            pauses.note(self._clock.monotonic())
            raise
        except (NoContact, VerbRefused):
            return None
        pauses.count = 0
        return counters
