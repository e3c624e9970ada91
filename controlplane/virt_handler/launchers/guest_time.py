# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets a guest's clock, through its agent, after the guest was paused: it does not count the time of its pause.

A pause is a user's, one because of an I/O error, or the end of a migration. Nothing waits for the clock, and a failure
is only logged, as upstream. Without an agent the guest keeps its time until one connects. After an agent was silent
there is a pause (pace.py), as after a query: users may pause and unpause a guest at any rate.
"""

from __future__ import annotations

import asyncio
import logging

from controlplane.api.objects.pod import sanitize
from controlplane.domain.state import State, was_resumed
from controlplane.engine.ports import Clock
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError, TimedOut
from controlplane.virt_handler.launchers.agent import Agent, NoAgent
from controlplane.virt_handler.launchers.pace import pause_after_silence

log = logging.getLogger(__name__)


class GuestTime:
    """The clock of one launcher's guest, across libvirt connections."""

    def __init__(self, agent: Agent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock
        self._state: State | None = None
        """State at the last look."""
        self._is_behind = False
        self._is_due = asyncio.Event()
        """The clock is behind, and there is an agent to set it."""
        self._silent_until = 0.0
        """Before this time (monotonic) the clock is not set, because the agent did not respond to the last request."""

    def look(self, state: State | None, *, has_agent: bool) -> None:
        """Record the state of the domain. has_agent: the guest runs, and its agent is connected."""
        self._is_behind = self._is_behind or was_resumed(self._state, state)
        self._state = state
        if self._is_behind and has_agent:
            self._is_due.set()

    async def follow(self) -> None:
        """Set the clock whenever it is due, while the connection lasts. A bug in here must not affect more."""
        try:
            while True:
                await self._is_due.wait()
                await asyncio.sleep(max(0.0, self._silent_until - self._clock.monotonic()))
                self._is_due.clear()
                await self._set()
        except Exception:
            log.exception("bug in setting a guest's time")

    async def _set(self) -> None:
        self._is_behind = False
        try:
            await self._set_with_retry()
        except (NoAgent, Disconnected):
            self._is_behind = True  # until the next look with an agent
        except asyncio.CancelledError:  # the connection has ended
            self._is_behind = True
            raise
        except HypervisorError as error:
            log.warning("cannot set a guest's time", extra={"error": sanitize(str(error))})

    async def _set_with_retry(self) -> None:
        """Try twice: an agent that was paused during an earlier request first sends the response to that request."""
        try:
            await self._send()
        except (AgentSilent, TimedOut):
            await self._send()
        self._silent_until = 0.0

    async def _send(self) -> None:
        began = self._clock.monotonic()
        try:
            await self._agent.set_time(self._clock.now)
        except (AgentSilent, TimedOut, Disconnected, asyncio.CancelledError):
            now = self._clock.monotonic()
            self._silent_until = now + pause_after_silence(now - began)
            raise
