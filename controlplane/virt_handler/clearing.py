# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that comes back ends what is no longer its own before it starts anything, or is listed again.

It comes back when this process begins, and when the API server has not heard from it for as long as its Lease lasts:
meanwhile its machines may have been given to others. Each launcher's VMI is asked for; which of them are orphans, and
how they are ended, is decided in vmi/orphans. Until they are down `held` says why nothing starts; not for ever, and not
where nobody answers: a start asks the same server for its grant.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from controlplane.api.objects.decode import DecodeError, decode_vmi
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.engine.errors import ApiError, NotFound
from controlplane.engine.ports import Api, Clock, Json
from controlplane.virt_handler.vmi.orphans import (
    DEADLINE_SECONDS,
    END_AGAIN_SECONDS,
    Orphan,
    Seen,
    decide_round,
    why_orphan,
)
from controlplane.virt_handler.vmi.ports import CannotLook, NoContact, Session
from controlplane.virt_handler.vmi.story import TellEvent, Told
from controlplane.virt_handler.vmi.world import Launcher, Traces

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between looks at orphans that hold the node."""
ASK_SECONDS, LONGEST_ASK_SECONDS = 1.0, 8.0
"""Before asking again where nobody has answered, doubling."""


class Heard(Protocol):
    """When the API server has heard from this node (kube.lease.Heartbeat)."""

    @property
    def last_beat(self) -> float | None: ...

    @property
    def silences(self) -> int: ...

    @property
    def duration_seconds(self) -> int: ...

    def subscribe(self, callback: Callable[[], None]) -> None: ...


class Launchers(Protocol):
    """The launchers of this node (launchers.registry.Registry)."""

    def launchers(self) -> tuple[Launcher, ...]: ...

    def session(self, pod_uid: str) -> Session | None: ...

    async def find_traces(self, pod_uid: str) -> Traces: ...


class Clearing:
    """Holds the node until it is clear. `changed` is called when it is not held any more."""

    def __init__(
        self,
        launchers: Launchers,
        api: Api,
        clock: Clock,
        heard: Heard,
        *,
        changed: Callable[[], None],
        tell: TellEvent,
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
        """When (monotonic) the last questions were begun that were all answered."""
        self._silences = 0
        """How many of them that was after."""
        self._left: tuple[Orphan, ...] = ()
        self._since: dict[str, float] = {}
        """When each of them was found first, by the UID of its Pod."""
        self._told: set[str] = set()
        """Those of which was said that they are left."""
        self._was_held = True
        heard.subscribe(self.wake)

    @property
    def held(self) -> str:
        """Why nothing is started here now; "" when it may be."""
        if self._is_to_ask:
            return "the API server is yet to say which guests on this node are still its own"
        now = self._clock.monotonic()
        if holding := [one for one in self._left if now - self._since[one.pod_uid] < DEADLINE_SECONDS]:
            return f"{len(holding)} guests on this node that are not its own any more are being ended"
        return ""

    @property
    def orphans(self) -> int:
        return len(self._left)

    def wake(self) -> None:
        """Look again now."""
        self._wake.set()

    async def run(self) -> None:
        """Clear the node whenever it comes back, until cancelled. The launchers are all known when this begins."""
        pause = ASK_SECONDS
        while True:
            self._wake.clear()
            self._was_held = self._was_held or self.held != ""
            is_answered = not self._is_to_ask or await self._ask()
            await self._end()
            if self._was_held and not self.held:
                self._was_held = False
                log.info(
                    "the node is clear" if not self._left else "the node is not clear", extra={"left": self.orphans}
                )
                self._changed()
                await self._say()
            pause = ASK_SECONDS if is_answered else min(pause * 2, LONGEST_ASK_SECONDS)
            await self._wait(self._wake, self._rest(pause))

    @property
    def _is_to_ask(self) -> bool:
        if self._asked_at is None or self._heard.silences != self._silences:
            return True
        return self._silent_in() <= 0

    def _silent_in(self) -> float:
        """Tell in how many seconds this node has not been heard for as long as its Lease lasts."""
        last = max(self._asked_at or 0.0, self._heard.last_beat or 0.0)
        return last + self._heard.duration_seconds - self._clock.monotonic()

    async def _ask(self) -> bool:
        """Ask about every launcher; tell whether all was answered. What was found before stays found."""
        at, silences, found = self._clock.monotonic(), self._heard.silences, list[Orphan]()
        for launcher in self._launchers.launchers():
            try:
                because = await self._why_orphan(launcher)
            except ApiError as error:
                log.warning("cannot ask whose a launcher is", extra={**_who(launcher), "error": str(error)})
                return False
            if because:
                found.append(Orphan(launcher.pod.uid, because))
        self._asked_at, self._silences = at, silences
        now = self._clock.monotonic()
        self._left = tuple(found)
        self._since = {one.pod_uid: self._since.get(one.pod_uid, now) for one in found}
        return True

    async def _why_orphan(self, launcher: Launcher) -> str:
        key = launcher.pod.vmi_key
        if key is None:
            return ""
        try:
            return why_orphan(launcher, decode_vmi(await self._api.get(VIRTUAL_MACHINE_INSTANCE, key)))
        except NotFound:
            return why_orphan(launcher, None)
        except DecodeError as error:
            log.warning("a VMI cannot be read", extra={**_who(launcher), "error": str(error)})
            return ""

    async def _end(self) -> None:
        """See to the orphans once; keep those that may run yet."""
        known = {one.pod.uid: one for one in self._launchers.launchers()}
        seen = [Seen(one, known.get(one.pod_uid), await self._look(one)) for one in self._left]
        turn = decide_round(seen, self._clock.monotonic())
        for orphan in turn.dial:
            if (session := self._launchers.session(orphan.pod_uid)) is not None:
                session.admit()
        for orphan in turn.end:
            self._destroy(orphan)
        self._left = turn.left

    def _destroy(self, orphan: Orphan) -> None:
        session = self._launchers.session(orphan.pod_uid)
        if session is None:
            return
        try:
            session.destroy()
            log.info("an orphan is ended", extra={**_who(session.launcher()), "because": orphan.because})
        except NoContact as error:
            log.warning("cannot end an orphan", extra={**_who(session.launcher()), "error": str(error)})

    async def _look(self, orphan: Orphan) -> Traces | None:
        try:
            return await self._launchers.find_traces(orphan.pod_uid)
        except CannotLook as error:
            log.warning("cannot look for an orphan", extra={"pod_uid": orphan.pod_uid, "error": str(error)})
            return None

    async def _say(self) -> None:
        """Say which orphans are left where the node is held no more."""
        known = {one.pod.uid: one for one in self._launchers.launchers()}
        left = {one.pod_uid for one in self._left}
        told, self._told = self._told & left, left
        for orphan in self._left:
            launcher = known.get(orphan.pod_uid)
            if launcher is None or orphan.pod_uid in told:
                continue
            so_long = f"{DEADLINE_SECONDS:.0f} s"
            said = f"{orphan.because}, and its guest is not known to have ended in {so_long}: machines start beside it"
            log.error("an orphan is left", extra={**_who(launcher), "because": said})
            try:
                await self._tell(_about(launcher), Told("OrphanLeft", said, is_warning=True))
            except ApiError as error:
                log.warning("cannot tell an Event", extra={"reason": "OrphanLeft", "error": str(error)})

    def _rest(self, ask_in: float) -> float:
        """Tell in how many seconds something is due: a question, a look at orphans, the end of the Lease."""
        if self._is_to_ask:
            return ask_in
        if self.held:
            return LOOK_SECONDS
        return min(self._silent_in(), END_AGAIN_SECONDS) if self._left else self._silent_in()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await event.wait()
    except TimeoutError:
        pass


def _who(launcher: Launcher) -> Mapping[str, str]:
    owner = launcher.pod.owner
    return {
        "key": str(launcher.pod.vmi_key),
        "uid": "" if owner is None else owner.uid,
        "pod": launcher.pod.metadata.name,
    }


def _about(launcher: Launcher) -> Json:
    """Name the instance that a launcher was made for, whether or not it still exists."""
    pod, kind = launcher.pod, VIRTUAL_MACHINE_INSTANCE
    key, uid = pod.vmi_key, "" if pod.owner is None else pod.owner.uid
    named = {"name": "" if key is None else key.name, "namespace": pod.metadata.namespace, "uid": uid}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": named}
