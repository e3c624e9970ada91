# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recovers a node: ends its orphans before it starts a guest and before it is schedulable again.

A node recovers when this process begins, and after its Lease was not renewed for the Lease's duration: meanwhile other
nodes may have got its VMIs. Recovery reads the VMI of each launcher from the API server; orphans.py decides. It uses
each response at once. A request without a response ends no guest and is retried.

Until all VMIs are read and all orphans are down, no guest starts (`start_blocked_reason`): for DEADLINE_SECONDS at most
while the API server responds, without limit while it does not. A start needs a grant from the same server anyway.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Protocol

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.engine.errors import ApiError, NotFound
from controlplane.engine.ports import Api, Clock
from controlplane.virt_handler.node_recovery.concurrency import BackgroundJob, for_each
from controlplane.virt_handler.node_recovery.orphan_termination import Launchers, OrphanTermination
from controlplane.virt_handler.node_recovery.orphans import (
    DEADLINE_SECONDS,
    END_AGAIN_SECONDS,
    Orphan,
    Run,
    orphan_reason,
)
from controlplane.virt_handler.node_recovery.recovery_report import UNANSWERED, about, orphan_event, who
from controlplane.virt_handler.vmi.events import RecordEvent, VmiEvent
from controlplane.virt_handler.vmi.world import Launcher

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Pause between searches for orphans that block the node."""
ASK_SECONDS, LONGEST_ASK_SECONDS, PATIENT_ASK_SECONDS = 1.0, 8.0, 64.0
"""Pauses before requests without a response are retried: the first, which doubles, and the longest while the node is
blocked and while it is not."""
AT_ONCE = 8
"""Requests at the same time: half of this process's connections, so that a start can read its grant meanwhile. After
as many failures without a response, the other requests wait for the next retry, to spare an overloaded API server."""


class HeartbeatHistory(Protocol):
    """When this node last renewed its Lease (kube.lease.Heartbeat)."""

    @property
    def last_beat(self) -> float | None: ...

    @property
    def silences(self) -> int: ...

    @property
    def duration_seconds(self) -> int: ...

    def subscribe(self, callback: Callable[[], None]) -> None: ...


@dataclass(slots=True)
class OwnershipCheck:
    """One pass of requests for the VMIs of launchers."""

    at: float
    silences: int
    missing: dict[str, float]
    """When each launcher without a response began to block the node, by Pod UID."""
    is_reached: bool = False
    """Whether the API server responds at all. Only then the deadlines of launchers without a response run."""
    has_answers: bool = False
    failures: int = 0


class NodeRecovery:
    """Blocks the node until it is recovered. Then it calls `changed`."""

    def __init__(
        self,
        launchers: Launchers,
        api: Api,
        clock: Clock,
        heartbeat: HeartbeatHistory,
        *,
        changed: Callable[[], None],
        record_event: RecordEvent,
        wait: Callable[[asyncio.Event, float], Awaitable[None]] | None = None,
    ) -> None:
        """wait: waits for the event, with a timeout in seconds."""
        self._launchers = launchers
        self._api = api
        self._clock = clock
        self._heartbeat = heartbeat
        self._changed = changed
        self._record_event = record_event
        self._wait = wait or _wait
        self._wake = asyncio.Event()
        self._asked_at: float | None = None
        """When (monotonic) the last check of all launchers began, with a renewed Lease."""
        self._silences = 0
        """The heartbeat's count of silences at that time."""
        self._checked_at, self._pause = -inf, ASK_SECONDS
        """When the last check ended, and the pause after it."""
        self._missing: dict[str, float] = {}
        """The launchers without a response, as in OwnershipCheck."""
        self._unreached = 0
        """The number of launchers in the last check if the API server did not respond at all."""
        self._failures: dict[str, int] = {}
        """Failed requests in a row, by Pod UID."""
        self._ending = OrphanTermination(launchers, clock)
        self._recorded: set[tuple[str, str]] = set()
        """The Events that were created: reason and Pod UID."""
        self._was_blocked = True
        heartbeat.subscribe(self.wake)

    @property
    def start_blocked_reason(self) -> str:
        """Why no guest may start on this node now; "" if guests may start."""
        if self._is_to_ask or any(map(self._ending.is_in_time, self._missing.values())):
            return "the API server has not responded yet which guests still belong to this node"
        if blocking := self._ending.blocking:
            return f"{blocking} guests that do not belong to this node any more are being ended"
        return ""

    @property
    def orphans(self) -> int:
        return len(self._ending)

    @property
    def unanswered(self) -> int:
        return self._unreached or len(self._missing)

    def wake(self) -> None:
        """Check and look again now."""
        self._checked_at, self._pause = -inf, ASK_SECONDS
        self._wake.set()

    async def run(self) -> None:
        """Recover the node whenever it comes back, until cancelled. The registry must be synced before."""
        checks, looks, events = (
            BackgroundJob(self._ask),
            BackgroundJob(self._ending.look),
            BackgroundJob(self._record_events),
        )
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                self._was_blocked = self._was_blocked or self.start_blocked_reason != ""
                await checks.go_on(group, LOOK_SECONDS, is_due=self._ask_in() <= 0)
                self._ending.end()
                await looks.go_on(group, LOOK_SECONDS, is_due=len(self._ending) > 0)
                if not self.start_blocked_reason:
                    self._report_clear()
                await events.go_on(group, LOOK_SECONDS, is_due=not self.start_blocked_reason)
                await self._wait(self._wake, 0.0 if checks.is_under_way else self._rest())

    def _report_clear(self) -> None:
        if not self._was_blocked:
            return
        self._was_blocked = False
        remaining = {"left": self.orphans, "unanswered": self.unanswered}
        log.info("the node is not clear" if any(remaining.values()) else "the node is clear", extra=remaining)
        self._changed()

    @property
    def _is_to_ask(self) -> bool:
        # The count shows a silence that this process missed: the host was suspended, and the next renewal hid the gap.
        if self._asked_at is None or self._heartbeat.silences != self._silences:
            return True
        return self._silent_in() <= 0

    def _silent_in(self) -> float:
        """Return the seconds until the Lease's duration without a renewal is over."""
        last = max(self._asked_at or 0.0, self._heartbeat.last_beat or 0.0)
        return last + self._heartbeat.duration_seconds - self._clock.monotonic()

    @property
    def _is_heartbeat_fresh(self) -> bool:
        last = self._heartbeat.last_beat
        return last is not None and self._clock.monotonic() - last < self._heartbeat.duration_seconds

    async def _ask(self) -> None:
        """Check all launchers if the node has come back, else those without a response."""
        launchers = {
            launcher.pod.uid: launcher for launcher in self._launchers.launchers() if launcher.pod.vmi_key is not None
        }
        check = self._check_all(launchers) if self._is_to_ask else self._check_missing(launchers)
        self._failures = {uid: count for uid, count in self._failures.items() if uid in launchers}
        ordered = sorted((launchers[uid] for uid in check.missing), key=self._order)
        await for_each(ordered, lambda launcher: self._settle(launcher, check), AT_ONCE)
        self._unreached = 0 if check.is_reached else len(check.missing)
        if not check.is_reached:  # the time without an API server does not count against a deadline
            self._missing = self._reported_missing()
        longest_pause = LONGEST_ASK_SECONDS if self.start_blocked_reason else PATIENT_ASK_SECONDS
        is_answered = check.is_reached and not check.missing
        self._pause = ASK_SECONDS if is_answered else min(self._pause * 2, longest_pause)
        self._checked_at = self._clock.monotonic()

    def _check_all(self, uids: Iterable[str]) -> OwnershipCheck:
        """Begin a check of all launchers. A launcher whose deadline is over does not block the node again."""
        now, silences = self._clock.monotonic(), self._heartbeat.silences
        # After a new silence, for example of a suspended host, the deadlines that are not over start again.
        since = self._missing if silences == self._silences else self._reported_missing()
        check = OwnershipCheck(now, silences, {uid: since.get(uid, now) for uid in uids})
        if self._is_heartbeat_fresh or not check.missing:  # an unreachable node stays blocked until it gets a response
            self._reach(check)
        return check

    def _check_missing(self, launchers: Mapping[str, Launcher]) -> OwnershipCheck:
        self._missing = {uid: since for uid, since in self._missing.items() if uid in launchers}
        return OwnershipCheck(self._clock.monotonic(), self._silences, self._missing, is_reached=True)

    def _reach(self, check: OwnershipCheck) -> None:
        check.is_reached = True
        # Use the values from the beginning of the check: a silence during the check makes another check due.
        self._asked_at, self._silences, self._missing = check.at, check.silences, check.missing

    def _reported_missing(self) -> dict[str, float]:
        return {uid: at for uid, at in self._missing.items() if (UNANSWERED.reason, uid) in self._recorded}

    def _order(self, launcher: Launcher) -> tuple[int, bool]:
        """Sort key: launchers with few failures first, then connected ones, which can be ended."""
        return self._failures.get(launcher.pod.uid, 0), not launcher.status.is_connected

    async def _settle(self, launcher: Launcher, check: OwnershipCheck) -> None:
        """Check one launcher, and end it at once if it is an orphan."""
        uid = launcher.pod.uid
        if check.failures >= AT_ONCE and not check.has_answers:
            return
        try:
            because = await self._why_orphan(launcher)
        except ApiError as error:
            log.warning("cannot read the VMI of a launcher", extra={**who(launcher), "error": str(error)})
            check.failures += 1
            self._failures[uid] = self._failures.get(uid, 0) + 1
            return
        if not check.is_reached:
            self._reach(check)
        check.has_answers = True
        self._failures.pop(uid, None)
        since = check.missing.pop(uid)
        if because:
            self._ending.find(Orphan(uid, because), since)

    async def _why_orphan(self, launcher: Launcher) -> str:
        key = launcher.pod.vmi_key
        if key is None:
            return ""
        try:
            return orphan_reason(launcher, decode(await self._api.get(VIRTUAL_MACHINE_INSTANCE, key), Run))
        except NotFound:
            return orphan_reason(launcher, None)
        except DecodeError as error:  # an unreadable VMI does not end a guest
            log.warning("a VMI cannot be read", extra={**who(launcher), "error": str(error)})
            return ""

    async def _record_events(self) -> None:
        """Create one Event for each orphan that still runs and for each launcher without a response."""
        remaining = [(orphan.pod_uid, orphan_event(orphan)) for orphan in self._ending.left]
        remaining += [(uid, UNANSWERED) for uid in self._missing]
        reported, self._recorded = self._recorded, {(event.reason, uid) for uid, event in remaining}
        await for_each(
            [(uid, event) for uid, event in remaining if (event.reason, uid) not in reported],
            self._record_event_of,
            AT_ONCE,
        )

    async def _record_event_of(self, remaining: tuple[str, VmiEvent]) -> None:
        uid, event = remaining
        launcher = self._ending.launcher(uid)
        if launcher is None:
            return
        log.error("a guest that is or may be an orphan still runs", extra={**who(launcher), "because": event.message})
        try:
            await self._record_event(about(launcher), event)
        except ApiError as error:
            log.warning("cannot record an Event", extra={"reason": event.reason, "error": str(error)})

    def _ask_in(self) -> float:
        """Return the seconds until the next check."""
        if not self._is_to_ask:
            return self._checked_at + self._pause - self._clock.monotonic() if self._missing else inf
        return self._checked_at + min(self._pause, LONGEST_ASK_SECONDS) - self._clock.monotonic()

    def _rest(self) -> float:
        """Return the seconds until something is due: a check, a look, the end of the Lease or of a deadline."""
        due = [self._ask_in()]
        if len(self._ending):
            due.append(LOOK_SECONDS if self.start_blocked_reason else END_AGAIN_SECONDS)
        if not self._is_to_ask:
            deadlines = (since + DEADLINE_SECONDS - self._clock.monotonic() for since in self._missing.values())
            due += [max(self._silent_in(), LOOK_SECONDS), *(seconds for seconds in deadlines if seconds > 0)]
        return min(due)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        pass
