# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a thread of its own, for what may never end: it costs nobody else a thread, and no process its exit.

How many there may be, and how long somebody waits, is the caller's.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from controlplane.process.thread_interrupt import interrupt

T = TypeVar("T")

OnDone = Callable[[T | None, BaseException | None], None]
"""Gets what came of it: a result, or an error. Called in the loop, once, and never when that is closed."""


def start_thread(name: str, work: Callable[[], T], settle: OnDone[T], *, interrupt_after: float | None = None) -> None:
    """Begin work in a new thread, which ends with it. RuntimeError: there is no thread for it.

    interrupt_after: seconds, again and again, after which a signal ends what it waits for in the kernel.
    """
    loop = asyncio.get_running_loop()

    def body() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # carried over to whoever waits, whatever it is
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, failure)

    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()

    def go_on(after: float) -> None:
        if thread.is_alive():
            if thread.native_id is not None:
                interrupt(thread.native_id)
            loop.call_later(after, go_on, after)

    if interrupt_after is not None:
        loop.call_later(interrupt_after, go_on, interrupt_after)
