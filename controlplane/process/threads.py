# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a call that may never return in its own daemon thread: it blocks no thread pool and no exit of the process.

The caller limits the number of threads and the time to wait.
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
"""Called with the result or the error: once, in the event loop, unless that is closed."""


def start_thread(name: str, work: Callable[[], T], on_done: OnDone[T], *, interrupt_after: float | None = None) -> None:
    """Run work in a new thread. Raises RuntimeError if no thread can be started.

    interrupt_after: every so many seconds a signal interrupts the system call that the thread is in.
    """
    loop = asyncio.get_running_loop()

    def body() -> None:
        result: T | None = None
        failure: BaseException | None = None
        try:
            result = work()
        except BaseException as error:  # passed to on_done
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_done, result, failure)

    thread = threading.Thread(target=body, name=name, daemon=True)
    thread.start()

    def interrupt_again(after: float) -> None:
        if thread.is_alive():
            if thread.native_id is not None:
                interrupt(thread.native_id)
            loop.call_later(after, interrupt_again, after)

    if interrupt_after is not None:
        loop.call_later(interrupt_after, interrupt_again, interrupt_after)
