# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends the orphans that were found when the node came back, until they are down. What is done: orphans.py."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from controlplane.engine.ports import Clock
from controlplane.virt_handler.node_recovery.concurrency import for_each
from controlplane.virt_handler.node_recovery.orphans import DEADLINE_SECONDS, Orphan, Seen, decide_orphans
from controlplane.virt_handler.node_recovery.recovery_report import who
from controlplane.virt_handler.vmi.ports import CannotLook, NoContact, Session
from controlplane.virt_handler.vmi.world import Destroy, Launcher, Traces

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Looks."""


class Launchers(Protocol):
    """The launchers of this node (launchers.registry.Registry)."""

    def launchers(self) -> tuple[Launcher, ...]: ...

    def session(self, pod_uid: str) -> Session | None: ...

    async def find_traces(self, pod_uid: str) -> Traces: ...


class OrphanTermination:
    """The orphans of this node that may run yet."""

    def __init__(self, launchers: Launchers, clock: Clock) -> None:
        self._launchers = launchers
        self._clock = clock
        self._left: dict[str, Orphan] = {}
        self._since: dict[str, float] = {}
        """From when each of them holds the node. Both by the UID of the Pod."""

    def __len__(self) -> int:
        return len(self._left)

    @property
    def left(self) -> tuple[Orphan, ...]:
        return tuple(self._left.values())

    @property
    def holding(self) -> int:
        """How many of them hold the node."""
        return sum(self.is_in_time(self._since[uid]) for uid in self._left)

    def is_in_time(self, since: float) -> bool:
        return self._clock.monotonic() - since < DEADLINE_SECONDS

    def find(self, orphan: Orphan, since: float) -> None:
        """Take an orphan in and end it. since: when the node came back; one that came to light too late counts anew."""
        uid = orphan.pod_uid
        self._left[uid] = orphan
        self._since.setdefault(uid, since if self.is_in_time(since) else self._clock.monotonic())
        self._end((orphan,))

    def end(self) -> None:
        """Tell those again that are up yet."""
        self._end(self.left)

    def _end(self, orphans: Iterable[Orphan]) -> None:
        """Tell those to end that can be told: it takes no look at the node."""
        seen = [Seen(one, self.launcher(one.pod_uid), None) for one in orphans]
        for orphan in decide_orphans(seen, self._clock.monotonic()).end:
            self._destroy(orphan)

    def launcher(self, pod_uid: str) -> Launcher | None:
        session = self._launchers.session(pod_uid)
        return None if session is None else session.launcher()

    def _destroy(self, orphan: Orphan) -> None:
        session = self._launchers.session(orphan.pod_uid)
        if session is None:
            return
        try:
            session.perform(Destroy(orphan.pod_uid, orphan.because))
            log.info("an orphan is ended", extra={**who(session.launcher()), "because": orphan.because})
        except NoContact as error:
            log.warning("cannot end an orphan", extra={**who(session.launcher()), "error": str(error)})

    async def look(self) -> None:
        """Look at the node for every orphan, at those first that can be ended."""
        await for_each(sorted(self._left.values(), key=self._is_out_of_contact), self._look_for, AT_ONCE)

    def _is_out_of_contact(self, orphan: Orphan) -> bool:
        launcher = self.launcher(orphan.pod_uid)
        return launcher is None or not launcher.status.is_connected

    async def _look_for(self, orphan: Orphan) -> None:
        """Forget an orphan that is down; see that one can be told to end that runs yet."""
        uid = orphan.pod_uid
        try:
            traces = await self._launchers.find_traces(uid)
        except CannotLook as error:
            log.warning("cannot look for an orphan", extra={"pod_uid": uid, "error": str(error)})
            traces = None
        turn = decide_orphans([Seen(orphan, self.launcher(uid), traces)], self._clock.monotonic())
        if turn.dial and (session := self._launchers.session(uid)) is not None:
            session.admit()
        if not turn.left:
            self._left.pop(uid, None)
            self._since.pop(uid, None)
