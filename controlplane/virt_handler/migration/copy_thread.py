# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An event loop beside the process's own, in a thread: gigabytes are copied there, and nobody else's work waits.

Each migration has one of its own, for whoever is at its other end can hold it up: OpenSSL reads messages that carry
nothing (TLS 1.3's KeyUpdate) for as long as they come, within one call. What runs in it touches nothing of the other
loop's; what it needs from there it asks for by `home`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class CopyThread:
    """Made in the process's own loop."""

    def __init__(self) -> None:
        self._home: asyncio.AbstractEventLoop | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the lane, and wait for it in the process's own loop. Cancelled, it is cancelled there."""
        self._home = asyncio.get_running_loop()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._begun()))

    async def home(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the process's own loop, and wait for it in the lane."""
        if self._home is None:
            work.close()
            raise RuntimeError("nothing runs in the lane")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._home))

    def end(self) -> None:
        """Have its thread end; nothing runs there any more."""
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _begun(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(self._loop,), name="migration", daemon=True).start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
