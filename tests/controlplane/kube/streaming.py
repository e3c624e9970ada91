# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A consumer of the fake server's streams, and a way to wait until something is true of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.controlplane.kube.fake_api import FakeApi


@dataclass(kw_only=True)
class Streaming:
    """Records its pauses; they take no time."""

    api: FakeApi
    pauses: list[float] = field(default_factory=list)
    _something: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self) -> None:
        """Wake `until` to check again."""
        self._something.set()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.note()
        await asyncio.sleep(0)

    async def until(self, is_so: Callable[[], Any]) -> None:
        async with asyncio.timeout(5):
            while not is_so():
                self._something.clear()
                try:
                    async with asyncio.timeout(0.02):  # for changes without a note
                        await self._something.wait()
                except TimeoutError:
                    continue

    def requests(self, part: str) -> list[str]:
        return [path for _unused, path, *_unused in self.api.seen if part in path]
