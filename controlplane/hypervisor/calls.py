# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking libvirt calls in threads, each with a deadline. No other module deals with the fact that libvirt blocks.

There is one thread per call and no pool: a call that hangs in one guest's libvirtd costs that guest's caller its
deadline and no other caller a worker, and an idle connection has no thread. Calls are few (about ten per start); a
thread takes 0.1 ms.

No thread outlives its deadline. A thread that waits for a reply has its transport cut. A thread that still connects (a
socket with a full backlog blocks connect(2) forever) is interrupted by a signal, after which libvirt does not retry.

While it waits for its reply, a thread processes whatever the peer sends. Its processor time (cpu_quota.py) and the
bytes that it reads (receive_quota.py) are charged to the connection, as for the event loop: during the call by the
watchdog's thread, because the event loop may be busy with other connections, and the rest at its end.

Calls on one connection may overlap, e.g. a request to the agent and a look at the state. That needs libvirt 10.4 or
newer in the images: an older client may crash then (CVE-2024-4418).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import libvirt

from controlplane.hypervisor.cpu_quota import CPU_QUOTA_EXCEEDED
from controlplane.hypervisor.errors import Disconnected, TimedOut, translate, translate_text_error
from controlplane.hypervisor.receive_quota import ReadMeter, read_by_this_thread
from controlplane.hypervisor.threads import is_blocked_by_peer, processor_seconds
from controlplane.hypervisor.transport import BLOCKED_BY_PEER, Retired, Transport
from controlplane.hypervisor.watchdog import watchdog
from controlplane.process.thread_interrupt import interrupt

Result = TypeVar("Result")

DEADLINE_SECONDS = 10.0
_AGAIN_SECONDS = 1.0
"""The signal is repeated: one that arrives before the wait does not end it."""
_OWN_SECONDS = 0.001
"""Per call, not charged: making a thread and calling takes 0.2 ms, and we decide how often."""
_FIRST_LOOK_SECONDS, _LAST_LOOK_SECONDS = 0.02, 0.05
"""Between checks of a call. Nearly all calls end before the first. What a peer sends between two checks is only bounded
by its speed."""
_HELD_AGAIN_SECONDS = 0.001
"""Each message that is already there may block the thread again."""


async def call(
    doing: str,
    function: Callable[..., Result],
    *arguments: Any,
    deadline_seconds: float = DEADLINE_SECONDS,
    transport: Transport | None = None,
    payer: Transport | None = None,
    discard: Callable[[Result], None] | None = None,
) -> Result:
    """Run a blocking libvirt call in a thread and return its result.

    doing: the attempt in words, for errors. transport: what the call waits on; cut when the deadline passes.
    payer: the transport that is charged, if it is another one.
    discard: frees a result that comes too late, in a thread; with it, cancelling ends the call as well.
    Raises HypervisorError; TimedOut after the deadline: the call's result is dropped, and its effect is unknown.
    """
    work = _Work(doing, lambda: function(*arguments), transport, payer, discard)
    until = asyncio.get_running_loop().time() + deadline_seconds
    try:
        async with asyncio.timeout(deadline_seconds):
            return await work.outcome
    except TimeoutError:
        work.give_up("it did not answer in time")
        raise TimedOut(f"cannot {doing}: no answer within {deadline_seconds:g} s") from None
    except asyncio.CancelledError:
        if discard is not None:  # no other caller uses its transport
            work.give_up("its caller was cancelled")
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
        transport: Transport | None,
        payer: Transport | None,
        discard: Callable[[Result], None] | None,
    ) -> None:
        self._doing = doing
        self._function = function
        self._transport = Transport() if transport is None else transport
        self._payer = payer or self._transport
        self._discard = discard
        self._is_given_up = False
        self.goes_on = False
        """The caller was cancelled, and the thread is still checked until it ends."""
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[Result] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name=f"libvirt: {doing}", daemon=True)
        self._thread.start()
        self._lock = threading.Lock()
        self._charged = _OWN_SECONDS
        self._counted = 0
        self._meter: ReadMeter | None = None
        self._has_ended = False
        self._slept_at: float | None = None
        """The thread's processor time at the last check."""
        self._after = _FIRST_LOOK_SECONDS
        watchdog().begin(self, self._after)

    def look_away(self) -> None:
        """Stop checking the thread: it has ended, or ends soon."""
        watchdog().end(self)
        with self._lock:
            self._end_looks()

    def _end_looks(self) -> None:
        self._has_ended = True
        if self._meter is not None:
            self._meter.close()

    def give_up(self, because: str) -> None:
        """End the thread's wait, trying until it has ended."""
        self._is_given_up = True
        self._transport.cut(because)
        if self._thread.is_alive():
            interrupt(self._thread.native_id or 0)
            self._loop.call_later(_AGAIN_SECONDS, self.give_up, because)

    def end_by(self, until: float) -> None:
        """Enforce the deadline after the caller was cancelled, or threads would pile up. until: the loop's time."""
        self.goes_on = True
        self._loop.call_at(until, self._give_up_late)

    def _give_up_late(self) -> None:
        if self._thread.is_alive():
            self.give_up("it did not answer in time")

    def look(self) -> float | None:
        """Charge what the thread has used, and interrupt it when the peer blocks it. Called in the watchdog's thread.

        libvirt waits for a reply in poll(2), which does not count as blocked. It reads only what is there, so a sleep
        in read(2) is the kernel's, closing a descriptor that the peer sent.
        """
        with self._lock:
            thread = self._thread.native_id
            used = processor_seconds(thread) if thread is not None and self._thread.is_alive() else None
            if used is None or thread is None or self._has_ended:
                self._end_looks()
                return None
            if self._meter is None:
                self._meter = ReadMeter(thread)
            self._charge(used, self._meter.total())
            slept_at, self._slept_at = self._slept_at, used
            if used == slept_at and self._payer.is_made and is_blocked_by_peer(thread):
                self._payer.cut(BLOCKED_BY_PEER)
                interrupt(thread)
                return _HELD_AGAIN_SECONDS
            self._after = min(2 * self._after, _LAST_LOOK_SECONDS)
            return self._after

    def _charge(self, used: float, read: int) -> None:
        """Charge what was used and read since the last time. used, read: seconds and bytes in total."""
        now = time.monotonic()
        if used > self._charged:
            if not self._payer.cpu_quota.take(used - self._charged, now):
                self._payer.cut(CPU_QUOTA_EXCEEDED)
            self._charged = used
        if read > self._counted:
            self._payer.count_received(read - self._counted, now)
            self._counted = read

    def _run(self) -> None:
        result: Result | None = None
        failure: BaseException | None = None
        try:
            with self._transport.in_use():
                result = self._function()
        except Retired:
            failure = Disconnected(f"cannot {self._doing}: the connection is closed")
        except libvirt.libvirtError as error:
            failure = translate(self._doing, error)
            # The traceback's frames hold the connection, which must not live as long as the error.
            failure.__cause__ = error.with_traceback(None)
        except BaseException as error:  # every error is raised in the caller
            failure = translate_text_error(self._doing, error) or error
        if self._is_given_up and failure is None:
            self._free(result)
            return
        try:
            self._loop.call_soon_threadsafe(self._settle, result, failure, time.thread_time(), read_by_this_thread())
        except RuntimeError:
            return  # the loop is closed

    def _settle(self, result: Result | None, failure: BaseException | None, used: float, read: int) -> None:
        with self._lock:
            self._charge(used, read)
        if not self.outcome.done():
            if failure is not None:
                self.outcome.set_exception(failure)
            else:
                self.outcome.set_result(result)  # type: ignore[arg-type]
        elif failure is None and self._discard is not None:  # after the deadline or a cancellation
            threading.Thread(target=self._free, args=(result,), name="libvirt: discard", daemon=True).start()

    def _free(self, result: Result | None) -> None:
        if self._discard is not None:
            self._discard(result)  # type: ignore[arg-type]
