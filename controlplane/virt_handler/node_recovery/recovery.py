# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that comes back ends what is no longer its own before it starts anything, or is listed again.

It comes back when this process begins, and when the API server has not heard from it for as long as its Lease lasts:
meanwhile its machines may have been given to others. Each launcher's VMI is asked for; which of them are orphans, and
what is done about them, is decided in vmi/orphans. An answer counts at once and by itself; what is not answered ends
nothing, and is asked again. Until all is answered and down `held` says why nothing starts: for DEADLINE_SECONDS at most
where the API server is reached, for ever where nobody answers. A start asks the same server for its grant.
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
from controlplane.virt_handler.vmi.events import RecordEvent, Told
from controlplane.virt_handler.vmi.world import Launcher

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between looks at orphans that hold the node."""
ASK_SECONDS, LONGEST_ASK_SECONDS, PATIENT_ASK_SECONDS = 1.0, 8.0, 64.0
"""Before asking again what was not answered, doubling; the last once that does not hold the node any more."""
AT_ONCE = 8
"""Questions: half of this process's connections, so that a start's grant is asked for beside them. After so many
failures without an answer the others are left for the next time."""


class HeartbeatHistory(Protocol):
    """When the API server has heard from this node (kube.lease.Heartbeat)."""

    @property
    def last_beat(self) -> float | None: ...

    @property
    def silences(self) -> int: ...

    @property
    def duration_seconds(self) -> int: ...

    def subscribe(self, callback: Callable[[], None]) -> None: ...


@dataclass(slots=True)
class OwnershipCheck:
    """Questions that are asked in one go."""

    at: float
    silences: int
    missing: dict[str, float]
    """From when what is not answered holds the node, by the UID of its Pod."""
    is_reached: bool = False
    """Whether the API server is known to be there: only then does the time run of what it does not answer."""
    has_answers: bool = False
    failures: int = 0


class NodeRecovery:
    """Holds the node until it is clear. `changed` is called when it is not held any more."""

    def __init__(
        self,
        launchers: Launchers,
        api: Api,
        clock: Clock,
        heard: HeartbeatHistory,
        *,
        changed: Callable[[], None],
        tell: RecordEvent,
        wait: Callable[[asyncio.Event, float], Awaitable[None]] | None = None,
    ) -> None:
        """wait: for the event, so long at most."""
        self._launchers = launchers
        self._api = api
        self._clock = clock
        self._heard = heard
        self._changed = changed
        self._tell = tell
        self._wait = wait or _wait
        self._wake = asyncio.Event()
        self._asked_at: float | None = None
        """When (monotonic) the last questions about all launchers were begun, by a node that was heard."""
        self._silences = 0
        """How many of them that was after."""
        self._rested_at, self._pause = -inf, ASK_SECONDS
        """Since when nothing is asked, and for how long."""
        self._missing: dict[str, float] = {}
        self._unreached = 0
        """About how many the last questions were, where nobody answered any."""
        self._failures: dict[str, int] = {}
        """Of the questions about a launcher, in a row. Both by the UID of the Pod."""
        self._ending = OrphanTermination(launchers, clock)
        self._told: set[tuple[str, str]] = set()
        """What was said of which Pod."""
        self._was_held = True
        heard.subscribe(self.wake)

    @property
    def held(self) -> str:
        """Why nothing is started here now; "" when it may be."""
        if self._is_to_ask or any(map(self._ending.is_in_time, self._missing.values())):
            return "the API server is yet to say which guests on this node are still its own"
        if holding := self._ending.holding:
            return f"{holding} guests on this node that are not its own any more are being ended"
        return ""

    @property
    def orphans(self) -> int:
        return len(self._ending)

    @property
    def unanswered(self) -> int:
        return self._unreached or len(self._missing)

    def wake(self) -> None:
        """Ask and look again now."""
        self._rested_at, self._pause = -inf, ASK_SECONDS
        self._wake.set()

    async def run(self) -> None:
        """Clear the node whenever it comes back, until cancelled. The launchers are all known when this begins."""
        asking, looking, telling = BackgroundJob(self._ask), BackgroundJob(self._ending.look), BackgroundJob(self._say)
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                self._was_held = self._was_held or self.held != ""
                await asking.go_on(group, LOOK_SECONDS, is_due=self._ask_in() <= 0)
                self._ending.end()
                await looking.go_on(group, LOOK_SECONDS, is_due=len(self._ending) > 0)
                if not self.held:
                    self._be_clear()
                await telling.go_on(group, LOOK_SECONDS, is_due=not self.held)
                await self._wait(self._wake, 0.0 if asking.is_under_way else self._rest())

    def _be_clear(self) -> None:
        if not self._was_held:
            return
        self._was_held = False
        left = {"left": self.orphans, "unanswered": self.unanswered}
        log.info("the node is not clear" if any(left.values()) else "the node is clear", extra=left)
        self._changed()

    @property
    def _is_to_ask(self) -> bool:
        if self._asked_at is None or self._heard.silences != self._silences:
            return True
        return self._silent_in() <= 0

    def _silent_in(self) -> float:
        """Tell in how many seconds this node has not been heard for as long as its Lease lasts."""
        last = max(self._asked_at or 0.0, self._heard.last_beat or 0.0)
        return last + self._heard.duration_seconds - self._clock.monotonic()

    @property
    def _is_heard(self) -> bool:
        last = self._heard.last_beat
        return last is not None and self._clock.monotonic() - last < self._heard.duration_seconds

    async def _ask(self) -> None:
        """Ask about every launcher if the node has come back, else where there is no answer yet."""
        known = {one.pod.uid: one for one in self._launchers.launchers() if one.pod.vmi_key is not None}
        asking = self._come_back(known) if self._is_to_ask else self._ask_on(known)
        self._failures = {uid: count for uid, count in self._failures.items() if uid in known}
        turns = sorted((known[uid] for uid in asking.missing), key=self._turn)
        await for_each(turns, lambda one: self._settle(one, asking), AT_ONCE)
        self._unreached = 0 if asking.is_reached else len(asking.missing)
        if not asking.is_reached:
            self._missing = self._given_up()
        longest = LONGEST_ASK_SECONDS if self.held else PATIENT_ASK_SECONDS
        is_answered = asking.is_reached and not asking.missing
        self._pause = ASK_SECONDS if is_answered else min(self._pause * 2, longest)
        self._rested_at = self._clock.monotonic()

    def _come_back(self, known: Iterable[str]) -> OwnershipCheck:
        """Begin anew. A launcher that had its time and is not answered yet does not hold the node once more."""
        now, silences = self._clock.monotonic(), self._heard.silences
        since = self._missing if silences == self._silences else self._given_up()
        asking = OwnershipCheck(now, silences, {uid: since.get(uid, now) for uid in known})
        if self._is_heard or not asking.missing:
            self._reach(asking)
        return asking

    def _ask_on(self, known: Mapping[str, Launcher]) -> OwnershipCheck:
        self._missing = {uid: since for uid, since in self._missing.items() if uid in known}
        return OwnershipCheck(self._clock.monotonic(), self._silences, self._missing, is_reached=True)

    def _reach(self, asking: OwnershipCheck) -> None:
        asking.is_reached = True
        self._asked_at, self._silences, self._missing = asking.at, asking.silences, asking.missing

    def _given_up(self) -> dict[str, float]:
        return {uid: at for uid, at in self._missing.items() if (UNANSWERED.reason, uid) in self._told}

    def _turn(self, launcher: Launcher) -> tuple[int, bool]:
        """Put those first that were answered so far, and of them those with contact, which can be ended."""
        return self._failures.get(launcher.pod.uid, 0), not launcher.status.is_connected

    async def _settle(self, launcher: Launcher, asking: OwnershipCheck) -> None:
        """Ask about one, and end it at once if it is an orphan."""
        uid = launcher.pod.uid
        if asking.failures >= AT_ONCE and not asking.has_answers:
            return
        try:
            because = await self._why_orphan(launcher)
        except ApiError as error:
            log.warning("cannot ask whose a launcher is", extra={**who(launcher), "error": str(error)})
            asking.failures += 1
            self._failures[uid] = self._failures.get(uid, 0) + 1
            return
        if not asking.is_reached:
            self._reach(asking)
        asking.has_answers = True
        self._failures.pop(uid, None)
        since = asking.missing.pop(uid)
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
        except DecodeError as error:
            log.warning("a VMI cannot be read", extra={**who(launcher), "error": str(error)})
            return ""

    async def _say(self) -> None:
        """Say once what is left where the node is held no more."""
        left = [(one.pod_uid, orphan_event(one)) for one in self._ending.left]
        left += [(uid, UNANSWERED) for uid in self._missing]
        told, self._told = self._told, {(said.reason, uid) for uid, said in left}
        await for_each([one for one in left if (one[1].reason, one[0]) not in told], self._say_of, AT_ONCE)

    async def _say_of(self, left: tuple[str, Told]) -> None:
        uid, said = left
        launcher = self._ending.launcher(uid)
        if launcher is None:
            return
        log.error("a guest is left", extra={**who(launcher), "because": said.message})
        try:
            await self._tell(about(launcher), said)
        except ApiError as error:
            log.warning("cannot tell an Event", extra={"reason": said.reason, "error": str(error)})

    def _ask_in(self) -> float:
        """Tell in how many seconds something is to be asked."""
        if not self._is_to_ask:
            return self._rested_at + self._pause - self._clock.monotonic() if self._missing else inf
        return self._rested_at + min(self._pause, LONGEST_ASK_SECONDS) - self._clock.monotonic()

    def _rest(self) -> float:
        """Tell in how many seconds something is due: a question, a look, the end of the Lease or of a time."""
        due = [self._ask_in()]
        if len(self._ending):
            due.append(LOOK_SECONDS if self.held else END_AGAIN_SECONDS)
        if not self._is_to_ask:
            over = (since + DEADLINE_SECONDS - self._clock.monotonic() for since in self._missing.values())
            due += [max(self._silent_in(), LOOK_SECONDS), *(seconds for seconds in over if seconds > 0)]
        return min(due)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        pass
