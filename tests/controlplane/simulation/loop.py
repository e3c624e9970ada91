# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A manually stepped event loop: real tasks, sleeps and deadlines on a simulated clock.

Code runs only in `settle`, in the order of its scheduling; there are no threads, and no descriptors. A request to the
outside is a future that the schedule resolves.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable
from typing import Any

from tests.support.breach import Breach
from tests.support.calls import Asks, Call
from tests.support.clock import WrongClock

TURNS_AT_ONCE = 5000
"""Iterations of the loop while no time passes and no result comes."""


class _NoDescriptors:
    """Replaces the selector of the loop."""

    def select(self, _unused: float | None) -> list[Any]:
        return []


class Unwatched:
    """Replaces the watchdog thread for a stalled loop: here the schedule decides which process stalls."""

    def __init__(self, *_unused: object) -> None:
        """Start nothing."""

    def stop(self) -> None:
        """Nothing was started."""


class HandTurnedLoop(asyncio.BaseEventLoop, Asks):
    """ask: takes a Call, and returns the future of its result."""

    def __init__(self, clock: WrongClock, ask: Callable[[Call], asyncio.Future[Any]]) -> None:
        super().__init__()
        self._clock = clock
        self._ask = ask
        self._selector = _NoDescriptors()
        self._clock_resolution = 1e-6
        self._is_settling = False
        self.set_exception_handler(lambda _unused, __: None)

    def ask(self, call: Call) -> asyncio.Future[Any]:
        return self._ask(call)

    def time(self) -> float:
        return self._clock.monotonic()

    def settle(self) -> None:
        """Run all tasks until each waits for a result or for time."""
        if self._is_settling or not (self._ready or self._is_timer_due()):  # type: ignore[attr-defined]
            return
        outer = events._get_running_loop()
        self._is_settling = True
        events._set_running_loop(self)
        try:
            for _unused in range(TURNS_AT_ONCE):
                if self._is_timer_due():
                    self._run_once()  # type: ignore[attr-defined]
                elif not self._run_ready():
                    return
        finally:
            events._set_running_loop(outer)
            self._is_settling = False
        raise Breach(f"spins: a process took {TURNS_AT_ONCE} turns at the same moment")

    def _run_ready(self) -> bool:
        """Run ready callbacks as the usual loop does, without descriptors and timers."""
        ready = self._ready  # type: ignore[attr-defined]
        count = len(ready)
        for _unused in range(count):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()
        return count > 0

    def next_due(self) -> float | None:
        """Return the seconds until the next sleep ends."""
        due = [timer.when() for timer in self._timers() if not timer.cancelled()]
        return max(0.0, min(due) - self.time()) if due else None

    def run_in_executor(self, _unused: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Run at once what the real loop runs in a thread."""
        done: asyncio.Future[Any] = self.create_future()
        try:
            done.set_result(function(*arguments))
        except Exception as error:  # the caller handles it
            done.set_exception(error)
        return done

    def _timers(self) -> list[asyncio.TimerHandle]:
        return self._scheduled  # type: ignore[attr-defined, no-any-return]

    def _is_timer_due(self) -> bool:
        timers = self._timers()
        return bool(timers) and timers[0].when() <= self.time()

    def _process_events(self, _unused: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nothing sleeps in select."""

    def __del__(self) -> None:
        """There is nothing to close."""
