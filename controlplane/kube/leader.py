# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leader election by one Lease: acquire, renew, release. What the leader does is elsewhere.

Safety. A leader stops acting `renew_deadline_seconds` after it *sent* its last successful renewal. Another candidate
acquires the Lease only after it has itself seen it unchanged for `duration_seconds`, on its own monotonic clock; wall
clocks are never compared. The first time is a third shorter than the second, which covers clocks of different speed.
`Leadership.require` before each write stops a late leader. Beyond that, preconditions on every write make a stale
leader harmless.

A late leader does not end by itself: a busy machine delays it, and nobody else may want the Lease. Its writes are
refused until it has renewed, with the version that it wrote last as precondition: success proves that nobody else has
led since. It ends when another process has the Lease, when the Lease is gone, or when renewals have failed for
`give_up_seconds`. A thread ends a process whose event loop hangs for good.

A suspended host. The clock is CLOCK_BOOTTIME (engine.clock), which goes on during a suspend: after the resume `require`
finds the deadline passed, so no further write begins. Sleeps (asyncio, threading) use CLOCK_MONOTONIC, which stops: the
next renewal comes up to `renew_seconds` after the resume, and decides. A candidate that was suspended itself may find a
Lease unchanged; the version that it sends as precondition shows whether that is true. A write that was under way during
the suspend arrives late; its preconditions decide.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from controlplane.api.objects.resources import LEASE, Key
from controlplane.engine.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeader
from controlplane.engine.ports import Api, Clock, Json
from controlplane.kube.lease import lease_body, render_time

log = logging.getLogger(__name__)

LONGEST_SECONDS = 120.0
"""The longest leaseDurationSeconds that counts. Our leaders write 15; a larger number by a user who can write the Lease
would keep every leader out for so long."""
EXIT_LATE = 70  # exit code of the watchdog thread


class LeadershipLostError(Exception):
    """This process has lost the Lease: it must end and restart as a candidate."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """The election's times in seconds."""

    duration_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    renew_seconds: float = 5.0
    """How often the leader renews: two writes per deadline."""
    retry_seconds: float = 2.0
    """How often a candidate reads the Lease, and the leader retries a failed renewal."""
    give_up_seconds: float = 60.0
    """A late leader whose renewals have failed for so long ends, even if nobody else is known to lead."""


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The Lease as it was read."""

    holder: str
    version: str
    duration_seconds: float
    transitions: int


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Acquire the Lease, if it still has this version ("": create it)."""

    version: str
    transitions: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Read the Lease again after so many seconds."""

    seconds: float


def decide(lease: LeaseState | None, identity: str, unchanged_for: float, terms: ElectionTiming) -> TakeLease | Wait:
    """Choose what a candidate does. unchanged_for: seconds since this candidate first saw this version."""
    if lease is None:
        return TakeLease("", 0)
    if lease.holder == identity:
        return TakeLease(lease.version, lease.transitions)
    remaining = min(lease.duration_seconds, LONGEST_SECONDS) - unchanged_for
    if not lease.holder or remaining <= 0:
        return TakeLease(lease.version, lease.transitions + 1)
    return Wait(min(terms.retry_seconds, remaining))


class Stoppable(Protocol):
    def stop(self) -> None:
        """Stop it, and wait until it has stopped."""


StartWatchdog = Callable[[Callable[[], float], Callable[[int], None]], Stoppable]
"""Starts a Watchdog."""


class Leadership:
    """One candidate. identity must differ between processes, and between restarts of one Pod."""

    def __init__(
        self,
        api: Api,
        key: Key,
        identity: str,
        clock: Clock,
        *,
        terms: ElectionTiming | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        end_process: Callable[[int], None] = os._exit,
        watch_over: StartWatchdog | None = None,
    ) -> None:
        self._api = api
        self._key = key
        self._identity = identity
        self._clock = clock
        self._terms = terms or ElectionTiming()
        self._sleep = sleep
        self._end_process = end_process
        self._watch_over = watch_over or Watchdog
        self._until: float | None = None
        self._seen: tuple[str, float] = ("", 0.0)

    @property
    def is_leader(self) -> bool:
        return self._until is not None and self._clock.monotonic() < self._until

    def require(self) -> None:
        """Raise NotLeader unless this process still leads. The guard of a Client."""
        if not self.is_leader:
            raise NotLeader("cannot write: this process is not the leader any more")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Acquire the Lease, then run `lead`. Releases the Lease when `lead` has ended or was cancelled.

        Raises LeadershipLostError when the Lease was lost; `lead` is cancelled before.
        """
        await self._acquire()
        log.info("leading", extra={"lease": self._key, "identity": self._identity})
        watchdog = self._watch_over(self._seconds_late, self._end_process)
        try:
            try:
                await self._lead_while_held(lead)
            finally:
                await self._release()
        finally:
            watchdog.stop()

    async def _lead_while_held(self, lead: Callable[[], Awaitable[None]]) -> None:
        leading = asyncio.ensure_future(lead())
        holding = asyncio.create_task(self._hold())
        try:
            await asyncio.wait({leading, holding}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended = [task for task in (leading, holding) if task.done()]
            for task in (leading, holding):
                task.cancel()
            await asyncio.wait({leading, holding})
        for task in ended:
            task.result()

    async def _acquire(self) -> None:
        while True:
            try:
                choice = decide(await self._read(), self._identity, self._unchanged_for(), self._terms)
                if isinstance(choice, TakeLease):
                    await self._take(choice)
                    return
                delay = choice.seconds
            except (Conflict, AlreadyExists):
                delay = self._terms.retry_seconds  # another candidate was faster
            except ApiError as error:
                log.warning("cannot take part in the election", extra={"lease": self._key, "because": error})
                delay = self._terms.retry_seconds
            await self._sleep(delay)

    async def _hold(self) -> None:
        while True:
            await self._sleep(self._terms.renew_seconds)
            failing_since: float | None = None
            while not await self._renew():
                # From the first failure, not from the deadline: a stall says nothing about the API server.
                now = self._clock.monotonic()
                failing_since = now if failing_since is None else failing_since
                if not self.is_leader and now - failing_since >= self._terms.give_up_seconds:
                    raise LeadershipLostError(f"could not renew {self._key} for {now - failing_since:.0f} s")
                await self._sleep(min(self._terms.retry_seconds, 1.0))

    async def _renew(self) -> bool:
        sent = self._clock.monotonic()
        spec = {"renewTime": render_time(self._clock.now())}
        try:
            async with asyncio.timeout(self._terms.renew_deadline_seconds / 2):
                # With the version: a Lease that another process took, or a user edited, must not be renewed.
                await self._patch(spec, self._seen[0], sent)
            return True
        except NotFound:
            self._until = None
            raise LeadershipLostError(f"{self._key} was deleted") from None
        except Conflict:
            log.debug("the Lease is another version by now", extra={"lease": self._key})
        except (ApiError, TimeoutError) as error:
            log.warning("cannot renew the leadership", extra={"lease": self._key, "because": error})
        await self._look()
        return False

    async def _look(self) -> None:
        """Read the version again: a renewal may have been stored without a response, or the Lease edited.

        Raises LeadershipLostError when another process holds it: its version must never be used for a renewal.
        """
        lease = None
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._terms.renew_deadline_seconds / 2):
                lease = await self._read()
        if lease is not None and lease.holder != self._identity:
            self._until = None
            raise LeadershipLostError(f"{self._key} was taken by {lease.holder or 'nobody'}")

    async def _read(self) -> LeaseState | None:
        try:
            lease = await self._api.get(LEASE, self._key)
        except NotFound:
            return None
        spec, version = lease.get("spec") or {}, lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, self._clock.monotonic())
        return LeaseState(
            holder=spec.get("holderIdentity") or "",
            version=version,
            duration_seconds=float(spec.get("leaseDurationSeconds") or self._terms.duration_seconds),
            transitions=int(spec.get("leaseTransitions") or 0),
        )

    def _unchanged_for(self) -> float:
        return self._clock.monotonic() - self._seen[1]

    async def _take(self, choice: TakeLease) -> None:
        sent, stamp = self._clock.monotonic(), render_time(self._clock.now())
        spec: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._terms.duration_seconds,
            "acquireTime": stamp,
            "renewTime": stamp,
            "leaseTransitions": choice.transitions,
        }
        if choice.version:
            await self._patch(spec, choice.version, sent)
        else:
            stored = await self._api.create(LEASE, self._key.namespace, lease_body(self._key, spec))
            self._note(stored, sent)

    async def _patch(self, spec: Json, version: str, sent: float) -> None:
        self._note(await self._api.patch(LEASE, self._key, {"spec": spec}, resource_version=version), sent)

    def _note(self, stored: Json, sent: float) -> None:
        now = self._clock.monotonic()
        if self._until is not None and now >= self._until:
            log.info("leading again, after a stall or failed renewals", extra={"lease": self._key})
        self._seen = (stored["metadata"]["resourceVersion"], now)
        # From the time of sending: a slow response must not extend the leadership.
        self._until = sent + self._terms.renew_deadline_seconds

    async def _release(self) -> None:
        """Release the Lease, so that the next leader need not wait; only if this process still holds it."""
        if not self.is_leader:
            self._until = None
            return
        self._until = None
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": render_time(self._clock.now())}
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._terms.retry_seconds):
                await self._api.patch(LEASE, self._key, {"spec": spec}, resource_version=self._seen[0])

    def _seconds_late(self) -> float:
        """Return the seconds since the renew deadline; negative before it."""
        until = self._until
        return -1.0 if until is None else self._clock.monotonic() - until


class Watchdog:
    """Ends the process when the leader is late for so long that its event loop must hang for good. A thread, because
    the event loop cannot do it."""

    CHECK_SECONDS = 1.0
    LATE_CHECKS = 120
    """Checks in a row, not seconds: the thread of a busy or suspended machine counts more slowly. It is more than
    `give_up_seconds`, after which an event loop that runs has given up by itself."""

    def __init__(self, seconds_late: Callable[[], float], end_process: Callable[[int], None]) -> None:
        self._seconds_late = seconds_late
        self._end_process = end_process
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._guard, name="leadership", daemon=True)
        self._thread.start()

    def _guard(self) -> None:
        late = 0
        while not self._stopped.wait(self.CHECK_SECONDS):
            late = late + 1 if self._seconds_late() > 0 else 0
            if late >= self.LATE_CHECKS:
                os.write(2, b'{"level":"error","event":"the event loop hangs: leadership ran out long ago"}\n')
                self._end_process(EXIT_LATE)
                return

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
