# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Freezes the file systems of one launcher's guest at a person's word, and thaws them when their time is over.

A guest whose file systems are frozen hangs at its next write, so whoever freezes says for how long, and dies or forgets
without harm. That time is kept here and nowhere else: a guest that is found frozen by a process that knows of none, as
after a restart of virt-handler, has the usual time from then on. An agent that was restarted in its guest says itself
what it is; one that is gone has nothing frozen that could be thawed.
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
"""An agent has this long to freeze or to thaw: what was not written yet is written first."""


class Freeze:
    """Implements the verbs freeze and unfreeze, for as long as the launcher is there."""

    def __init__(self, agent: Agent, clock: Clock) -> None:
        self._agent, self._clock = agent, clock
        self._until: float | None = None
        """When to thaw (monotonic). None: nothing is frozen. Infinity: when a person says so."""
        self._one_at_a_time = asyncio.Lock()
        self._news = asyncio.Event()

    def note(self, told: AgentState) -> None:
        """Take note of what the agent has told. That nobody knows whether something is frozen, ends nothing."""
        if told.is_frozen is False or not told.is_connected:
            self._thaw_at(None)
        elif told.is_frozen and self._until is None:
            self._thaw_at(self._clock.monotonic() + USUAL_THAW_SECONDS)

    async def freeze(self, thaw_after: int) -> None:
        """Freeze; what is frozen stays so, and its end too. thaw_after: seconds; 0: never. VerbRefused, NoContact."""
        async with self._one_at_a_time:
            if await self._is_frozen():
                return
            # First the end, then the beginning: that may take effect although no answer comes.
            self._thaw_at(self._clock.monotonic() + thaw_after if thaw_after else math.inf)
            self._agent.note_frozen(None)
            try:
                await self._order(FREEZE)
            except VerbRefused:
                self._agent.note_frozen(False)
                raise
            self._agent.note_frozen(True)

    async def thaw(self) -> None:
        """Thaw what is frozen. VerbRefused, NoContact."""
        async with self._one_at_a_time:
            await self._thaw()

    async def follow(self) -> None:
        """Thaw when it is time, for as long as a connection lasts."""
        while True:
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._left()):
                    await self._news.wait()
            if self._left() == 0.0:
                await self._thaw_overdue()

    async def _thaw_overdue(self) -> None:
        began = self._clock.monotonic()
        try:
            async with self._one_at_a_time:
                if self._left() == 0.0:  # nobody has thawed it, or frozen it anew, in the meantime
                    await self._thaw()
                    log.warning("thawed a guest's file systems: their time was over")
        except (VerbRefused, NoContact) as error:
            log.warning("cannot thaw a guest's file systems", extra={"error": sanitize(str(error))})
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_after_silence(self._clock.monotonic() - began)):
                    await self._news.wait()

    async def _thaw(self) -> None:
        if await self._is_frozen():
            await self._order(THAW)
        self._agent.note_frozen(False)

    def _thaw_at(self, until: float | None) -> None:
        if until != self._until:
            self._until = until
            self._news.set()

    def _left(self) -> float | None:
        """Return the seconds until it is time; None when it never will be."""
        if self._until is None or self._until == math.inf:
            return None
        return max(0.0, self._until - self._clock.monotonic())

    async def _is_frozen(self) -> bool:
        try:
            return read_freeze_status(await self._order(FREEZE_STATUS))
        except UnreadableResponse as error:
            raise VerbRefused(f"the guest's agent does not say whether its file systems are frozen: {error}") from error

    async def _order(self, command: str) -> str:
        try:
            return await self._agent.order(command, _FREEZE_SECONDS)
        except NoAgent as error:
            raise VerbRefused(str(error)) from error
        except (AgentSilent, ResponseTooLong, TimedOut, Disconnected) as error:
            raise NoContact(str(error)) from error
        except HypervisorError as error:
            raise VerbRefused(f"the guest's agent refuses it: {sanitize(str(error))}") from error
