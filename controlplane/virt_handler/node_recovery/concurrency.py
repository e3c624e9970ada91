# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function for each of many values, a few at a time, and runs a background job with a bounded wait."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def for_each(values: Iterable[T], do: Callable[[T], Awaitable[None]], at_once: int) -> None:
    """Call `do` for each value in order, for `at_once` values at a time. A value is read right before its call."""
    remaining = iter(values)

    async def work() -> None:
        for value in remaining:
            await do(value)

    async with asyncio.TaskGroup() as group:
        for _unused in range(at_once):
            group.create_task(work())


class BackgroundJob:
    """A job that never runs twice at the same time."""

    def __init__(self, do: Callable[[], Awaitable[None]]) -> None:
        self._do = do
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._task is not None

    async def go_on(self, group: asyncio.TaskGroup, seconds: float, *, is_due: bool) -> None:
        """Start the job if it is due and not under way. Wait at most `seconds` for its end."""
        if self._task is None and is_due:
            self._task = group.create_task(self._run())
        if self._task is None:
            return
        await asyncio.wait({self._task}, timeout=seconds)
        if self._task.done():
            self._task = None

    async def _run(self) -> None:
        await self._do()
