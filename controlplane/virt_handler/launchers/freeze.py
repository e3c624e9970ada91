# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Freezes the file systems of one launcher's guest on a user's request, and thaws them after a timeout.

A guest with frozen file systems hangs at its next write. A freeze therefore has a timeout: a backup tool may crash
before it thaws. Only this process stores the timeout. A guest that is frozen when virt-handler restarts gets the
default timeout. A restarted agent reports whether it is frozen; without an agent nothing can be thawed.
"""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import suppress

from controlplane.api.objects.pod import sanitize
from controlplane.domain.agent import FREEZE, FREEZE_STATUS, THAW, AgentState, read_freeze_status
from controlplane.domain.agent_response import UnreadableResponse
from controlplane.engine.ports import Clock
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError, ResponseTooLong, TimedOut
from controlplane.links.handler import USUAL_THAW_SECONDS
from controlplane.virt_handler.launchers.agent import Agent, NoAgent
from controlplane.virt_handler.launchers.pace import pause_after_silence
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

log = logging.getLogger(__name__)

_FREEZE_SECONDS = 10
"""Timeout of a freeze or thaw: the guest first writes back its page cache."""


class Freeze:
    """Implements the user requests freeze and unfreeze for one launcher."""

    def __init__(self, agent: Agent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock
        self._until: float | None = None
        """When to thaw (monotonic). None: nothing is frozen. Infinity: on request only."""
        self._one_at_a_time = asyncio.Lock()
        self._changed = asyncio.Event()

    def note(self, state: AgentState) -> None:
        """Record the agent's state. An unknown freeze state does not change the timeout."""
        if state.is_frozen is False or not state.is_connected:
            self._thaw_at(None)
        elif state.is_frozen and self._until is None:
            self._thaw_at(self._clock.monotonic() + USUAL_THAW_SECONDS)

    async def freeze(self, thaw_after: int) -> None:
        """Freeze. A frozen guest keeps its timeout. thaw_after: seconds; 0: never. VerbRefused, NoContact."""
        async with self._one_at_a_time:
            if await self._is_frozen():
                return
            # Set the timeout before the freeze: a freeze without a response may have taken effect.
            self._thaw_at(self._clock.monotonic() + thaw_after if thaw_after else math.inf)
            self._agent.note_frozen(None)
            try:
                await self._order(FREEZE)
            except VerbRefused:
                self._agent.note_frozen(False)
                raise
            self._agent.note_frozen(True)

    async def thaw(self) -> None:
        """Thaw if frozen. VerbRefused, NoContact."""
        async with self._one_at_a_time:
            await self._thaw()

    async def follow(self) -> None:
        """Thaw after the timeout, while the connection lasts."""
        while True:
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds_left()):
                    await self._changed.wait()
            if self._seconds_left() == 0.0:
                await self._thaw_overdue()

    async def _thaw_overdue(self) -> None:
        began = self._clock.monotonic()
        try:
            async with self._one_at_a_time:
                if self._seconds_left() == 0.0:  # not thawed or frozen again in the meantime
                    await self._thaw()
                    log.warning("thawed a guest's file systems after the timeout")
        except (VerbRefused, NoContact) as error:
            log.warning("cannot thaw a guest's file systems", extra={"error": sanitize(str(error))})
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_after_silence(self._clock.monotonic() - began)):
                    await self._changed.wait()

    async def _thaw(self) -> None:
        if await self._is_frozen():
            await self._order(THAW)
        self._agent.note_frozen(False)

    def _thaw_at(self, until: float | None) -> None:
        if until != self._until:
            self._until = until
            self._changed.set()

    def _seconds_left(self) -> float | None:
        """Return the seconds until the timeout; None when there is none."""
        if self._until is None or self._until == math.inf:
            return None
        return max(0.0, self._until - self._clock.monotonic())

    async def _is_frozen(self) -> bool:
        try:
            return read_freeze_status(await self._order(FREEZE_STATUS))
        except UnreadableResponse as error:
            raise VerbRefused(
                f"the guest's agent does not report whether its file systems are frozen: {error}"
            ) from error

    async def _order(self, command: str) -> str:
        try:
            return await self._agent.order(command, _FREEZE_SECONDS)
        except NoAgent as error:
            raise VerbRefused(str(error)) from error
        except (AgentSilent, ResponseTooLong, TimedOut, Disconnected) as error:
            raise NoContact(str(error)) from error
        except HypervisorError as error:
            raise VerbRefused(f"the guest's agent refuses it: {sanitize(str(error))}") from error
