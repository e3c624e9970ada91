# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking calls in threads, each with a deadline: no other file knows that libvirt blocks.

A thread per call and no pool: a call stuck in one VM's libvirtd then costs that VM's caller its deadline and nobody
else a worker, and an idle connection costs no thread. Calls are few (about ten per start); a thread takes 0.1 ms.

No thread outlives its deadline: who waits for an answer has the wire cut under it, and who still dials (a socket whose
queue of callers is full keeps connect(2) waiting for ever) is interrupted by a signal, which libvirt does not retry.
Nor does a thread work more than it should: it reads whatever comes before its answer, so its processor time (share.py)
and what it has read (intake.py) are charged to the connection as those of the event loop are: while it goes on (in the
watching thread: the loop may be busy with others), and the rest when it has ended.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import libvirt

from controlplane.hypervisor import share
from controlplane.hypervisor.errors import Disconnected, TimedOut, translate, translate_text_error
from controlplane.hypervisor.intake import Meter, read_by_this_thread
from controlplane.hypervisor.threads import is_held, processor_seconds
from controlplane.hypervisor.watch import watch
from controlplane.hypervisor.wire import HELD, Retired, Wire
from controlplane.process.thread_interrupt import interrupt

Result = TypeVar("Result")

DEADLINE_SECONDS = 10.0
_AGAIN_SECONDS = 1.0
"""A signal that comes before the wait does not end it."""
_OWN_SECONDS = 0.001
"""Of each call so much is charged to nobody: to make a thread and to ask takes 0.2 ms, and how often is up to us."""
_FIRST_LOOK_SECONDS, _LAST_LOOK_SECONDS = 0.02, 0.05
"""Between looks at what a thread has used; nearly all calls are over before the first. In the time between two of them
somebody can send as much as fits into it."""
_HELD_AGAIN_SECONDS = 0.001
"""Each message that lies there may hold the thread again."""


async def call(
    doing: str,
    function: Callable[..., Result],
    *arguments: Any,
    deadline_seconds: float = DEADLINE_SECONDS,
    wire: Wire | None = None,
    payer: Wire | None = None,
    discard: Callable[[Result], None] | None = None,
) -> Result:
    """Run a blocking libvirt call and return its result.

    doing: the attempt in words, for the error. wire: what the call waits on; it is cut when the deadline has passed.
    payer: what the call's time and reading are charged to, where that is not what it waits on.
    discard: lets go of a result that comes too late, in a thread; a call that has it is given up when it is cancelled.
    Raises HypervisorError; TimedOut after the deadline: what the call comes to then is dropped, its effect unknown.
    """
    work = _Work(doing, lambda: function(*arguments), wire, payer, discard)
    until = asyncio.get_running_loop().time() + deadline_seconds
    try:
        async with asyncio.timeout(deadline_seconds):
            return await work.outcome
    except TimeoutError:
        work.give_up("it did not answer in time")
        raise TimedOut(f"cannot {doing}: no answer within {deadline_seconds:g} s") from None
    except asyncio.CancelledError:
        if discard is not None:  # nobody else knows of its wire
            work.give_up("nobody waits for it any more")
        else:
            work.end_by(until)
        raise
    finally:
        if not work.goes_on:
            work.look_away()


class _Work(Generic[Result]):
    """One call: a thread, and the future that waits for it."""

    def __init__(
        self,
        doing: str,
        function: Callable[[], Result],
        wire: Wire | None,
        payer: Wire | None,
        discard: Callable[[Result], None] | None,
    ) -> None:
        self._doing = doing
        self._function = function
        self._wire = Wire() if wire is None else wire
        self._payer = payer or self._wire
        self._discard = discard
        self._is_given_up = False
        self.goes_on = False
        """Nobody waits, and its thread is watched until it has ended."""
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Result] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=f"libvirt: {doing}", daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._charged = _OWN_SECONDS
        self._counted = 0
        self._meter: Meter | None = None
        self._has_ended = False
        self._slept_at: float | None = None
        """What the thread had used at the last look."""
        self._after = _FIRST_LOOK_SECONDS
        watch().begin(self, self._after)

    def look_away(self) -> None:
        """Stop watching what the thread uses: it has ended, or will soon."""
        watch().end(self)
        with self._lock:
            self._end_looks()

    def _end_looks(self) -> None:
        self._has_ended = True
        if self._meter is not None:
            self._meter.close()

    def give_up(self, because: str) -> None:
        """End the wait of the thread, however often it takes."""
        self._is_given_up = True
        self._wire.cut(because)
        if self._thread.is_alive():
            interrupt(self._thread.native_id or 0)
            self._loop.call_later(_AGAIN_SECONDS, self.give_up, because)

    def end_by(self, until: float) -> None:
        """Keep to the deadline though nobody waits: who is silent then has one thread more, each time. until: the
        loop's seconds."""
        self.goes_on = True
        self._loop.call_at(until, self._give_up_late)

    def _give_up_late(self) -> None:
        if self._thread.is_alive():
            self.give_up("it did not answer in time")

    def look(self) -> float | None:
        """Charge what the thread has used so far, and end its sleep where it should not sleep; in the watching thread.

        libvirt waits for an answer in poll(2). It reads what is there: only the kernel could sleep in that.
        """
        with self._lock:
            thread = self._thread.native_id
            used = processor_seconds(thread) if thread is not None and self._thread.is_alive() else None
            if used is None or thread is None or self._has_ended:
                self._end_looks()
                return None
            if self._meter is None:
                self._meter = Meter(thread)
            self._charge(used, self._meter.total())
            slept_at, self._slept_at = self._slept_at, used
            if used == slept_at and self._payer.is_made and is_held(thread):
                self._payer.cut(HELD)
                interrupt(thread)
                return _HELD_AGAIN_SECONDS
            self._after = min(2 * self._after, _LAST_LOOK_SECONDS)
            return self._after

    def _charge(self, used: float, read: int) -> None:
        """Charge what the thread has used and read since the last time. used, read: seconds and bytes in all."""
        now = time.monotonic()
        if used > self._charged:
            if not self._payer.share.take(used - self._charged, now):
                self._payer.cut(share.TOO_MUCH)
            self._charged = used
        if read > self._counted:
            self._payer.took_in(read - self._counted, now)
            self._counted = read

    def _run(self) -> None:
        result: Result | None = None
        failure: BaseException | None = None
        try:
            with self._wire.at_work():
                result = self._function()
        except Retired:
            failure = Disconnected(f"cannot {self._doing}: the connection is closed")
        except libvirt.libvirtError as error:
            failure = translate(self._doing, error)
            # The frames of the call hold the connection: it must not hang on an error that somebody keeps.
            failure.__cause__ = error.with_traceback(None)
        except BaseException as error:  # carried over to the caller, whatever it is
            failure = translate_text_error(self._doing, error) or error
        if self._is_given_up and failure is None:
            self._let_go(result)
            return
        try:
            self._loop.call_soon_threadsafe(self._settle, result, failure, time.thread_time(), read_by_this_thread())
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _settle(self, result: Result | None, failure: BaseException | None, used: float, read: int) -> None:
        with self._lock:
            self._charge(used, read)
        if not self.outcome.done():
            if failure is not None:
                self.outcome.set_exception(failure)
            else:
                self.outcome.set_result(result)  # type: ignore[arg-type]
        elif failure is None and self._discard is not None:  # the deadline or a cancellation came first
            threading.Thread(target=self._let_go, args=(result,), name="libvirt: let go", daemon=True).start()

    def _let_go(self, result: Result | None) -> None:
        if self._discard is not None:
            self._discard(result)  # type: ignore[arg-type]
