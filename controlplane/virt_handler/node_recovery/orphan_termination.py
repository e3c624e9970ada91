# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ends the orphans of a recovered node until they are down. The decisions are in orphans.py."""

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
"""How many orphans the node is searched for at the same time."""


class Launchers(Protocol):
    """The launchers of this node (launchers.registry.Registry)."""

    def launchers(self) -> tuple[Launcher, ...]: ...

    def session(self, pod_uid: str) -> Session | None: ...

    async def find_traces(self, pod_uid: str) -> Traces: ...


class OrphanTermination:
    """The orphans of this node that may still run."""

    def __init__(self, launchers: Launchers, clock: Clock) -> None:
        self._launchers = launchers
        self._clock = clock
        self._remaining: dict[str, Orphan] = {}
        self._blocking_since: dict[str, float] = {}
        """When each orphan began to block starts on this node (monotonic). `_remaining` and this are by Pod UID."""

    def __len__(self) -> int:
        return len(self._remaining)

    @property
    def left(self) -> tuple[Orphan, ...]:
        return tuple(self._remaining.values())

    @property
    def blocking(self) -> int:
        """How many orphans block starts on this node.

        Each blocks for DEADLINE_SECONDS at most: a guest that hangs must not block the node for ever.
        """
        return sum(self.is_in_time(self._blocking_since[uid]) for uid in self._remaining)

    def is_in_time(self, since: float) -> bool:
        return self._clock.monotonic() - since < DEADLINE_SECONDS

    def find(self, orphan: Orphan, since: float) -> None:
        """Add an orphan and end it at once.

        since: when the node came back. An orphan that is detected after its deadline blocks the node from now on.
        """
        uid = orphan.pod_uid
        self._remaining[uid] = orphan
        # If the API server is unreachable later, that does not extend the deadline of an orphan.
        self._blocking_since.setdefault(uid, since if self.is_in_time(since) else self._clock.monotonic())
        self._end((orphan,))

    def end(self) -> None:
        """End again the orphans that are still up."""
        self._end(self.left)

    def _end(self, orphans: Iterable[Orphan]) -> None:
        """End the orphans that are connected. This does not search the node."""
        observed = [Seen(candidate, self.launcher(candidate.pod_uid), None) for candidate in orphans]
        for orphan in decide_orphans(observed, self._clock.monotonic()).end:
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
            log.info("ending an orphan", extra={**who(session.launcher()), "because": orphan.because})
        except NoContact as error:
            log.warning("cannot end an orphan", extra={**who(session.launcher()), "error": str(error)})

    async def look(self) -> None:
        """Search the node for every orphan: first for connected ones, which can be ended."""
        await for_each(sorted(self._remaining.values(), key=self._is_disconnected), self._look_for, AT_ONCE)

    def _is_disconnected(self, orphan: Orphan) -> bool:
        launcher = self.launcher(orphan.pod_uid)
        return launcher is None or not launcher.status.is_connected

    async def _look_for(self, orphan: Orphan) -> None:
        """Forget an orphan that is down. Connect to one that still runs, so that it can be ended."""
        uid = orphan.pod_uid
        try:
            traces = await self._launchers.find_traces(uid)
        except CannotLook as error:
            log.warning("cannot look for an orphan", extra={"pod_uid": uid, "error": str(error)})
            traces = None
        decision = decide_orphans([Seen(orphan, self.launcher(uid), traces)], self._clock.monotonic())
        if decision.dial and (session := self._launchers.session(uid)) is not None:
            session.admit()
        if not decision.left:
            self._remaining.pop(uid, None)
            self._blocking_since.pop(uid, None)
