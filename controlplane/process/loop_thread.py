# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread with an event loop of its own, for bytes that are copied beside the main event loop.

Each migration has its own thread, because its peer can block it: one call of OpenSSL reads messages without payload
(TLS 1.3's KeyUpdate) until no more arrive. Code in the thread must not touch objects of the main loop. It calls into
the main loop with `run_in_main_loop`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """A thread. Use it from one main loop; it starts with the first `run`."""

    def __init__(
        self, name: str, loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    ) -> None:
        """name: of the thread, for debuggers."""
        self._name = name
        self._loop_factory = loop_factory
        self._main_loop: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread, and wait for it in the main loop. Cancelling the wait cancels it."""
        self._main_loop = asyncio.get_running_loop()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running_loop()))

    async def run_in_main_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the main loop, and wait for it in the thread. Cancelling the wait cancels it."""
        if self._main_loop is None:
            work.close()
            raise RuntimeError("nothing runs in the thread")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._main_loop))

    def end(self) -> None:
        """End the thread. No coroutine may run in it now."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = self._loop_factory()
            threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True).start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
