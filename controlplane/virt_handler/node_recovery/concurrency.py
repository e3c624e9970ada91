# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one job for many things with a limit, and a background job with a bounded wait. No decisions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def for_each(things: Iterable[T], do: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Do it for each of them, in their order, for so many at once. They are taken when it is their turn."""
    waiting = iter(things)

    async def work() -> None:
        for one in waiting:
            await do(one)

    async with asyncio.TaskGroup() as group:
        for _unused in range(at_once):
            group.create_task(work())


class BackgroundJob:
    """Something that is under way once at most."""

    def __init__(self, do: Callable[[], Awaitable[None]]) -> None:
        self._do = do
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._task is not None

    async def go_on(self, group: asyncio.TaskGroup, seconds: float, *, is_due: bool) -> None:
        """Begin it if it is due and not under way; wait so long at most for its end."""
        if self._task is None and is_due:
            self._task = group.create_task(self._run())
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=seconds)
        if self._task.done():
            self._task = None

    async def _run(self) -> None:
        await self._do()
