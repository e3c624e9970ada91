# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who of several replicas acts: one Lease, taken, renewed, given back. What the leader does is elsewhere.

Safety. A holder counts its time from the moment it *sent* the last renewal that the server took, and
stops acting `renew_deadline_seconds` later. Another may take the Lease only after it has itself watched
it stand still for `duration_seconds`, on its own monotonic clock; wall clocks are never compared. The
first is shorter than the second by a third, which covers clocks that run at different speeds. Three
things stop a holder that is late: `Leadership.require` before each write, the loss of its task group,
and a thread that ends the process when the event loop itself has stalled (or the process was stopped).
Beyond that, preconditions on every write make a stale leader harmless.

A host that is suspended. The clock is CLOCK_BOOTTIME (engine.clock), which goes on meanwhile: what first
looks at it after the resume, `require` or the thread, finds the deadline passed, so no further write
begins. What sleeps does so on CLOCK_MONOTONIC (asyncio, threading), which stands still: the next renewal
comes up to `renew_seconds` after the resume, the thread's look within a second. Whichever is first
decides: a renewal that the server takes, because the Lease is still the version that we wrote, or the end
of the process. A follower may find that a Lease stood still because it slept itself: the version by which
it takes the Lease says whether that is so. A write that was under way when the host fell asleep arrives
late, and its preconditions judge it.
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
"""No longer does a Lease keep others out, whatever is written in it: no holder of ours asks for more than 15 s, and who
could write it once would keep every leader away for as long as it says."""
EXIT_LATE = 70  # the exit code of a process that could not stop acting in time by itself


class LeadershipLostError(Exception):
    """We held the Lease and do not any more: the process must end and start anew as a follower."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """The election's times in seconds."""

    duration_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    renew_seconds: float = 5.0
    """How often a holder renews while all is well: two writes in a deadline, not five."""
    retry_seconds: float = 2.0
    """How often a follower looks, and a holder tries again after a failure."""


@dataclass(frozen=True, slots=True)
class LeaseState:
    """What we read of the Lease."""

    holder: str
    version: str
    duration_seconds: float
    transitions: int


@dataclass(frozen=True, slots=True)
class TakeLease:
    """Write ourselves into the Lease, if it is still this version ("" = create it)."""

    version: str
    transitions: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again after so many seconds."""

    seconds: float


def decide(held: LeaseState | None, identity: str, still_for: float, terms: ElectionTiming) -> TakeLease | Wait:
    """Choose what a candidate does. still_for: how long we have watched this very version stand still."""
    if held is None:
        return TakeLease("", 0)
    if held.holder == identity:
        return TakeLease(held.version, held.transitions)
    left = min(held.duration_seconds, LONGEST_SECONDS) - still_for
    if not held.holder or left <= 0:
        return TakeLease(held.version, held.transitions + 1)
    return Wait(min(terms.retry_seconds, left))


class Stoppable(Protocol):
    def stop(self) -> None:
        """Have it end, and wait until it has."""


StartWatchdog = Callable[[Callable[[], float], Callable[[int], None]], Stoppable]
"""What begins a Watchdog."""


class Leadership:
    """One candidate. identity must differ between processes, restarts of one Pod included."""

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
        """Raise NotLeader unless we may still act; the guard of a Client."""
        if not self.is_leader:
            raise NotLeader("cannot write: this process is not the leader any more")

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for our turn, then lead. Gives the Lease back once `lead` has ended or was cancelled.

        Raises LeadershipLostError when the Lease could not be kept; `lead` was cancelled by then.
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
                choice = decide(await self._read(), self._identity, self._still_for(), self._terms)
                if isinstance(choice, TakeLease):
                    await self._take(choice)
                    return
                delay = choice.seconds
            except (Conflict, AlreadyExists):
                delay = self._terms.retry_seconds  # somebody was faster
            except ApiError as error:
                log.warning("cannot take part in the election", extra={"lease": self._key, "because": error})
                delay = self._terms.retry_seconds
            await self._sleep(delay)

    async def _hold(self) -> None:
        while True:
            await self._sleep(self._terms.renew_seconds)
            while not await self._renew():
                if not self.is_leader:
                    raise LeadershipLostError(f"could not renew {self._key} in time")
                await self._sleep(min(self._terms.retry_seconds, 1.0))

    async def _renew(self) -> bool:
        sent = self._clock.monotonic()
        spec = {"renewTime": render_time(self._clock.now())}
        try:
            async with asyncio.timeout(self._terms.renew_deadline_seconds / 2):
                # With the version: a Lease that someone else took, or a human edited, is not ours to renew.
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
        """Learn the version anew: a renewal may have been stored without our hearing of it, or the Lease edited.

        Raises LeadershipLostError when it was taken, whatever the first sign of that was: the version that is learnt
        here must never be the one of another holder's Lease.
        """
        held = None
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._terms.renew_deadline_seconds / 2):
                held = await self._read()
        if held is not None and held.holder != self._identity:
            self._until = None
            raise LeadershipLostError(f"{self._key} was taken by {held.holder or 'nobody'}")

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

    def _still_for(self) -> float:
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
        self._seen = (stored["metadata"]["resourceVersion"], self._clock.monotonic())
        self._until = sent + self._terms.renew_deadline_seconds

    async def _release(self) -> None:
        """Give the Lease back, so that the next leader need not wait; only if it is still ours."""
        if not self.is_leader:
            self._until = None
            return
        self._until = None
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": render_time(self._clock.now())}
        with suppress(ApiError, TimeoutError):
            async with asyncio.timeout(self._terms.retry_seconds):
                await self._api.patch(LEASE, self._key, {"spec": spec}, resource_version=self._seen[0])

    def _seconds_late(self) -> float:
        """Return how long we have been past our deadline; negative while there is time left."""
        until = self._until
        return -1.0 if until is None else self._clock.monotonic() - until


class Watchdog:
    """A thread, because what it guards against is an event loop that does not run."""

    # The loop's own way out gets a second, still well before the Lease can be taken.
    GRACE_SECONDS = 1.0

    def __init__(self, seconds_late: Callable[[], float], end_process: Callable[[int], None]) -> None:
        self._seconds_late = seconds_late
        self._end_process = end_process
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._guard, name="leadership", daemon=True)
        self._thread.start()

    def _guard(self) -> None:
        while not self._stopped.wait(self.GRACE_SECONDS):
            if self._seconds_late() > self.GRACE_SECONDS:
                os.write(2, b'{"level":"error","event":"leadership ran out while the event loop stood still"}\n')
                self._end_process(EXIT_LATE)
                return

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
