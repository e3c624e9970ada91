# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries the guest agent of one launcher in rounds while the agent is connected.

The guest controls when its agent connects, disconnects and responds, so everything is bounded: one query at a time for
a launcher, a few for the node, each with a deadline. After each round there is a pause (pace.py). Extra rounds, when
the agent connects or disconnects, take a token from a bucket. domain/agent.py parses the responses;
vmi/agent_status.py writes them to the status.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from controlplane.api.objects.pod import sanitize
from controlplane.domain import agent
from controlplane.domain.agent import AgentState, Interfaces
from controlplane.domain.agent_response import UnreadableResponse
from controlplane.engine.ports import Clock
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError, ResponseTooLong, TimedOut
from controlplane.virt_handler.launchers.pace import Looks, Rounds, pause_after_silence
from controlplane.virt_handler.launchers.ports import Guest

log = logging.getLogger(__name__)
Parsed = TypeVar("Parsed")
Response = TypeVar("Response")

QUESTIONS = 4
"""Queries at the same time on a node: a response may take 4 MiB of memory, and a silent agent the whole deadline."""
ANSWER_SECONDS = 5
FRESH_SECONDS = 10.0
"""How long a response to a user's query is reused. Upstream queries an agent for its users as often."""
_ALL_EVERY = 15
"""Every this many rounds, query also what seldom changes: every half hour at the usual pace."""
_EXTRA_ROUNDS, _EXTRA_ROUNDS_RATE = 30, 1 / 60
"""Extra rounds because an agent connects or disconnects: the bucket's size, and its refill per second. A guest that
boots, is paused and resumes takes five, a reset takes two: a user may try all verbs in a minute."""


class NoAgent(Exception):
    """No agent is connected, or the guest does not run."""


class Agent:
    """The agent of one guest, across libvirt connections."""

    def __init__(
        self,
        clock: Clock,
        random: Callable[[], float],
        questions: asyncio.Semaphore,
        publish: Callable[[AgentState], None],
    ) -> None:
        """random: numbers in [0, 1), for jitter. questions: the node's limit. publish: called with each new state."""
        self._clock, self._random, self._questions, self._publish = clock, random, questions, publish
        self._extra_rounds = Looks(left=_EXTRA_ROUNDS, burst=_EXTRA_ROUNDS, rate=_EXTRA_ROUNDS_RATE)
        self._one_at_a_time = asyncio.Lock()
        self._guest: Guest | None = None
        self._is_connected: bool | None = None
        """None: still unknown on this connection."""
        self._changed = asyncio.Event()
        self._state = AgentState()
        self._is_frozen: bool | None = None
        """From the last response about it. It may be newer than the state of the current round."""
        self._inquiry_lock = asyncio.Lock()
        self._silent_until = 0.0
        """Before this time (monotonic) no user's query is sent, because the agent did not respond to the last one."""
        self._responses: dict[str, tuple[float, str | None]] = {}
        """Responses to users' queries, by command: time and text; None: the agent refuses the command."""

    def look(self, guest: Guest | None, *, is_connected: bool) -> None:
        """Record the state of the domain. guest: the guest to query; None while it does not run."""
        has_changed = (self._is_connected, self._guest is None) != (is_connected, guest is None)
        self._guest, self._is_connected = guest, is_connected
        if has_changed:
            self._responses.clear()  # the guest may have rebooted
            self._silent_until = 0.0
            self._changed.set()

    async def follow(self) -> None:
        """Query the agent while the connection lasts. A bug in here must not affect more than the agent's data."""
        self._guest, self._is_connected = None, None
        self._changed.clear()
        try:
            await self._follow()
        except Exception:
            log.exception("bug in querying an agent")

    async def _follow(self) -> None:
        rounds = Rounds()
        pause: float | None = None
        while True:
            with suppress(TimeoutError):  # the next regular round is due: it takes no token
                async with asyncio.timeout(pause):
                    await self._changed.wait()
                rounds = Rounds(silences=rounds.silences)  # reconnecting does not reset the count of silences
                if (delay := self._extra_rounds.next(self._clock.monotonic())) > 0:
                    await asyncio.sleep(delay)
            self._changed.clear()
            pause = await self._round(rounds)

    async def _round(self, rounds: Rounds) -> float | None:
        """Send the queries that are due, and publish the result. Return the seconds until the next round.

        None: there is no agent.
        """
        guest = self._guest
        if not self._is_connected:
            self._is_frozen = None
            self._publish_state(AgentState())
            return None
        if guest is None:
            self._publish_state(replace(self._state, is_connected=True))
            return None
        began, before, is_silent = self._clock.monotonic(), self._state, False
        state = replace(before, is_connected=True)
        try:
            with_rare = rounds.count % _ALL_EVERY == 0 or not before.is_whole
            async for partial in self._ask_all(guest, state, with_rare=with_rare):
                state = partial  # to publish it even if the agent does not respond to the next query
        except (AgentSilent, ResponseTooLong, TimedOut, Disconnected) as error:
            is_silent = True
            log.debug("an agent does not respond", extra={"error": sanitize(str(error))})
        self._publish_state(state)
        state = self._state
        took = self._clock.monotonic() - began
        pause = rounds.next(is_silent=is_silent, is_changed=state != before, took=took)
        return pause * (0.9 + 0.2 * self._random())

    async def _ask_all(self, guest: Guest, state: AgentState, *, with_rare: bool) -> AsyncIterator[AgentState]:
        """Send one query after the other, and yield the state after each. A refused query leaves its part as it was.

        HypervisorError: the agent does not respond.
        """
        if with_rare:
            if (info := await self._read(guest, agent.INFO, agent.read_info)) is not None:
                yield (state := replace(state, info=info))
            if (system := await self._read(guest, agent.OS, agent.read_os)) is not None:
                yield (state := replace(state, os=system))
        if with_rare or self._is_frozen is not False:
            frozen = await self._read(guest, agent.FREEZE_STATUS, agent.read_freeze_status)
            self._is_frozen = self._is_frozen if frozen is None else frozen
        try:
            interfaces = await self._read(guest, agent.INTERFACES, agent.read_interfaces)
        except ResponseTooLong:
            interfaces = Interfaces(is_cut=True)
        yield state if interfaces is None else replace(state, interfaces=interfaces)

    async def _read(self, guest: Guest, command: str, read: Callable[[str], Parsed]) -> Parsed | None:
        """Query and parse; None when the agent refuses the command or its response is malformed."""
        try:
            return read(await self.ask(guest, command))
        except (AgentSilent, ResponseTooLong, TimedOut, Disconnected):
            raise
        except (HypervisorError, UnreadableResponse) as error:
            log.debug("an agent's response is not usable", extra={"command": command, "error": sanitize(str(error))})
            return None

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """Send a user's queries; return the responses by command, without those that the agent refuses.

        Responses are reused for FRESH_SECONDS: a user who may read a VM must not keep its launcher busy. NoAgent.
        HypervisorError: the agent does not respond.
        """
        async with self._inquiry_lock:
            responses: dict[str, str] = {}
            for command in commands:
                guest, now = self._require_guest(), self._clock.monotonic()
                if now < self._silent_until:
                    raise NoAgent(f"the guest's agent did not respond; try again in {self._silent_until - now:.0f} s")
                if command not in self._responses or now - self._responses[command][0] >= FRESH_SECONDS:
                    self._responses[command] = (now, await self._ask_or_none(guest, command))
                if (response := self._responses[command][1]) is not None:
                    responses[command] = response
            return responses

    async def order(
        self, command: str, seconds: int = ANSWER_SECONDS, arguments: Mapping[str, str] | None = None
    ) -> str:
        """Send the agent an order; return its response. NoAgent, HypervisorError."""
        return await self._ask_on(self._require_guest(), agent.request(command, arguments), seconds)

    async def set_time(self, now: Callable[[], float]) -> None:
        """Set the guest's clock. now: seconds since the epoch, read when it is sent. NoAgent, HypervisorError."""
        guest = self._require_guest()
        await self._in_turn(lambda: guest.set_time(now, ANSWER_SECONDS))

    def note_frozen(self, is_frozen: bool | None) -> None:
        """Publish the result of a freeze or thaw. None: unknown, the next round queries the agent."""
        self._is_frozen = is_frozen
        self._responses.clear()
        self._publish_state(replace(self._state, is_connected=self._is_connected is True))

    def _require_guest(self) -> Guest:
        if not self._is_connected:
            raise NoAgent("VMI does not have guest agent connected")
        if self._guest is None:
            raise NoAgent("VMI is paused: its guest agent cannot respond")
        return self._guest

    async def _ask_or_none(self, guest: Guest, command: str) -> str | None:
        began = self._clock.monotonic()
        try:
            return await self.ask(guest, command)
        except (AgentSilent, TimedOut, Disconnected):
            now = self._clock.monotonic()
            self._silent_until = now + pause_after_silence(now - began)
            raise
        except HypervisorError:
            return None

    async def ask(self, guest: Guest, command: str, seconds: int = ANSWER_SECONDS) -> str:
        """Send one query, after those that wait. HypervisorError."""
        return await self._ask_on(guest, agent.request(command), seconds)

    async def _ask_on(self, guest: Guest, query: str, seconds: int) -> str:
        return await self._in_turn(lambda: guest.ask_agent(query, seconds))

    async def _in_turn(self, send: Callable[[], Awaitable[Response]]) -> Response:
        """Send a request. It continues when the caller is cancelled, and counts against the limits until it has
        ended."""
        task = asyncio.create_task(self._send(send))
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())  # the caller may be gone
        return await asyncio.shield(task)

    async def _send(self, send: Callable[[], Awaitable[Response]]) -> Response:
        async with self._one_at_a_time, self._questions:
            return await send()

    def _publish_state(self, state: AgentState) -> None:
        self._state = replace(state, is_frozen=self._is_frozen)
        self._publish(self._state)
