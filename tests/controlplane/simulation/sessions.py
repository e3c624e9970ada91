# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The launchers of one node: the real registry, sessions and guest requests, with a record of each result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Cache
from controlplane.virt_handler.launchers.registry import Registry
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.ports import NoContact, OperationInputs, StartRefused
from controlplane.virt_handler.vmi.world import Destroy, Operation, PrepareNetwork, Resume, ShutDown, StartDomain
from tests.controlplane.simulation.launcher import STALLED
from tests.controlplane.simulation.libvirt import LauncherConnections

FIRST_SECONDS, LAST_SECONDS = 0.05, 30.0
"""Of the pause after a guest request without a result."""
RESUME_SECONDS = 10.0
"""The minimum between two attempts to resume a guest."""
PAUSED = {PrepareNetwork: "prepare the network", StartDomain: "start"}
"""Operations with a pause after a failure."""
COUNTED = (*PAUSED, ShutDown, Destroy, Resume)


@dataclass(slots=True)
class _InVain:
    count: int = 0
    """Consecutive guest requests without a result."""
    at: float = 0.0
    resumed_at: float | None = None

    def left(self, now: float) -> float:
        if not self.count:
            return 0.0
        return min(LAST_SECONDS, FIRST_SECONDS * 2.0 ** min(self.count - 1, 30)) - (now - self.at)


class WatchedRegistry(Registry):
    """complain: receives requests that come too early; found: receives the names of bugs."""

    def __init__(
        self,
        pods: Cache,
        tools: Tools,
        changed: Callable[[Key], None],
        connections: LauncherConnections,
        *,
        complain: Callable[[str], None],
        found: Callable[[str], None],
    ) -> None:
        super().__init__(pods, tools, changed)
        self._connections = connections
        self._complain = complain
        self._found = found
        self._in_vain: dict[str, _InVain] = {}

    def pause_left(self, pod_uid: str) -> float:
        """Return how long to wait after a guest request without a result."""
        known = self._in_vain.get(pod_uid)
        return 0.0 if known is None else known.left(self._tools.clock.monotonic())

    def is_unpausing(self, pod_uid: str) -> bool:
        """Whether a user is just now asking to resume or thaw the guest of that Pod."""
        return self._connections.unpaused[pod_uid] > 0

    @contextmanager
    def unpausing(self, pod_uid: str) -> Iterator[None]:
        """Record inside the block that a user asks to resume or thaw the guest of that Pod."""
        self._connections.unpaused[pod_uid] += 1
        try:
            yield
        finally:
            self._connections.unpaused[pod_uid] -= 1

    def steps(self) -> list[Callable[[], None]]:
        """Return what can be delivered to sessions now."""
        return self._connections.steps()

    def _add(self, group: asyncio.TaskGroup, pod: Pod, vmi_uid: str, key: Key) -> Session:
        self._in_vain[pod.uid] = _InVain()
        session: Any = super()._add(group, pod, vmi_uid, key)
        session.operations.perform = partial(self._counted, session, session.operations.perform)
        session.run = partial(self._reported, session.run)
        return session  # type: ignore[no-any-return]

    async def _counted(
        self, session: Session, perform: Callable[..., Awaitable[None]], action: Operation, inputs: OperationInputs
    ) -> None:
        if not isinstance(action, COUNTED):
            await perform(action, inputs)
            return
        known, clock, kind, record = self._in_vain[action.pod_uid], self._tools.clock, type(action), session.record
        if kind in PAUSED and record.is_over:
            self._complain(f"{record.pod.vmi_key}: asked to {PAUSED[kind]}, and its Pod is gone or over")
        if kind in PAUSED and (remaining := known.left(clock.monotonic())) > 0:
            text = f"asked to {PAUSED[kind]} {remaining:.2f} s too early, {known.count} came to nothing"
            self._complain(f"{record.pod.vmi_key}: {text}")
        if kind is Resume and not self._connections.is_moving(action.pod_uid):
            self._note_resume(session, known, clock.monotonic())
        try:
            await self._reported(perform, action, inputs)
        except (NoContact, StartRefused):
            known.count, known.at = known.count + 1, clock.monotonic()
            raise
        known.count, known.at = 0, clock.monotonic()

    def _note_resume(self, session: Session, known: _InVain, now: float) -> None:
        """A guest paused by an I/O error is resumed, and not again before ten seconds."""
        state = session.record.status.state
        if state is None or (state.life.value, state.reason) != (STALLED.life.value, STALLED.reason):
            self._complain(f"{session.record.pod.vmi_key}: asked to resume, and no I/O error has paused it")
        if known.resumed_at is not None and now - known.resumed_at < RESUME_SECONDS:
            self._complain(
                f"{session.record.pod.vmi_key}: asked to resume {now - known.resumed_at:.2f} s after the last time"
            )
        known.resumed_at = now

    async def _reported(self, doing: Callable[..., Awaitable[None]], *given: Any) -> None:
        """Report exceptions that the real sessions survive."""
        try:
            await doing(*given)
        except (NoContact, StartRefused):
            raise
        except Exception as bug:
            self._found(f"{doing}: {bug!r}")
            raise
