# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent of one launcher's guest: asked while it is there, in rounds that become rare; never while there is none.

A guest chooses when its agent comes, goes, answers and what it says, so all of that is bounded: one question at a time
to a launcher, a few on the whole node, each with a deadline; after a round a pause (pace.py); and rounds out of turn,
because the agent came or went, from a bucket. What an answer means is in domain/agent.py, what is said of it in
vmi/guest_told.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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
Answer = TypeVar("Answer")

QUESTIONS = 4
"""Questions under way at once on a node: an answer may take 4 MiB, and a silent agent takes its time."""
ANSWER_SECONDS = 5
FRESH_SECONDS = 10.0
"""So long an answer to a person is good for others; upstream asks an agent for its users so often."""
_ALL_EVERY = 15
"""So many rounds after it was told, what seldom changes is asked again: half an hour at the usual pace."""
_TURNS, _TURNS_RATE = 30, 1 / 60
"""Rounds that an agent can have out of turn by coming and going, and how many come back in a second. A guest that
boots, is paused and goes on has five, and one that is reset two: who tries all verbs in a minute is told of each."""


class NoAgent(Exception):
    """There is no agent to ask, or the guest does not run."""


class Agent:
    """What the agent tells, over one connection after the other. publish: gets what it has told, when that changed."""

    def __init__(
        self,
        clock: Clock,
        random: Callable[[], float],
        questions: asyncio.Semaphore,
        publish: Callable[[AgentState], None],
    ) -> None:
        """random: numbers in [0, 1), for jitter. questions: the node's."""
        self._clock, self._random, self._questions, self._publish = clock, random, questions, publish
        self._turns = Looks(left=_TURNS, burst=_TURNS, rate=_TURNS_RATE)
        self._one_at_a_time = asyncio.Lock()
        self._guest: Guest | None = None
        self._is_connected: bool | None = None
        """None: nobody has looked yet, on this connection."""
        self._news = asyncio.Event()
        self._told = AgentState()
        self._is_frozen: bool | None = None
        """By its last word about that; a round that began before does not know."""
        self._inquiry = asyncio.Lock()
        self._silent_until = 0.0
        """It did not answer a person, and is not asked for one until then."""
        self._answers: dict[str, tuple[float, str | None]] = {}
        """To what a person asked, by command: when, and what; None: the agent refuses it."""

    def look(self, guest: Guest | None, *, is_connected: bool) -> None:
        """Take note of what was seen of the domain. guest: whom to ask; None while it does not run."""
        is_news = (self._is_connected, self._guest is None) != (is_connected, guest is None)
        self._guest, self._is_connected = guest, is_connected
        if is_news:
            self._answers.clear()
            self._silent_until = 0.0
            self._news.set()

    async def follow(self) -> None:
        """Ask, for as long as a connection lasts. A bug in here costs what this agent tells, and nothing else."""
        self._guest, self._is_connected = None, None
        self._news.clear()
        try:
            await self._follow()
        except Exception:
            log.exception("bug in asking an agent")

    async def _follow(self) -> None:
        rounds = Rounds()
        pause: float | None = None
        while True:
            with suppress(TimeoutError):  # the next round is due, which takes no turn
                async with asyncio.timeout(pause):
                    await self._news.wait()
                rounds = Rounds(silences=rounds.silences)  # to come and go makes up for none
                if (wait := self._turns.next(self._clock.monotonic())) > 0:
                    await asyncio.sleep(wait)
            self._news.clear()
            pause = await self._round(rounds)

    async def _round(self, rounds: Rounds) -> float | None:
        """Ask what is due, and tell; return the seconds until the next round, None when there is nobody to ask."""
        guest = self._guest
        if not self._is_connected:
            self._is_frozen = None
            self._tell(AgentState())
            return None
        if guest is None:
            self._tell(replace(self._told, is_connected=True))
            return None
        began, before, is_silent = self._clock.monotonic(), self._told, False
        told = replace(before, is_connected=True)
        try:
            with_rare = rounds.count % _ALL_EVERY == 0 or not before.is_whole
            async for known in self._ask_all(guest, told, with_rare=with_rare):
                told = known  # which is told, also when silence follows
        except (AgentSilent, ResponseTooLong, TimedOut, Disconnected) as error:
            is_silent = True
            log.debug("an agent does not answer", extra={"error": sanitize(str(error))})
        self._tell(told)
        told = self._told
        took = self._clock.monotonic() - began
        pause = rounds.next(is_silent=is_silent, is_changed=told != before, took=took)
        return pause * (0.9 + 0.2 * self._random())

    async def _ask_all(self, guest: Guest, told: AgentState, *, with_rare: bool) -> AsyncIterator[AgentState]:
        """Ask one thing after the other, and yield what is known after each; what is not answered stays as it was.

        HypervisorError: no use to go on.
        """
        if with_rare:
            if (info := await self._read(guest, agent.INFO, agent.read_info)) is not None:
                yield (told := replace(told, info=info))
            if (system := await self._read(guest, agent.OS, agent.read_os)) is not None:
                yield (told := replace(told, os=system))
        if with_rare or self._is_frozen is not False:
            frozen = await self._read(guest, agent.FREEZE_STATUS, agent.read_freeze_status)
            self._is_frozen = self._is_frozen if frozen is None else frozen
        try:
            interfaces = await self._read(guest, agent.INTERFACES, agent.read_interfaces)
        except ResponseTooLong:
            interfaces = Interfaces(is_cut=True)
        yield told if interfaces is None else replace(told, interfaces=interfaces)

    async def _read(self, guest: Guest, command: str, read: Callable[[str], Answer]) -> Answer | None:
        """Ask and read; None when the agent refuses the command, or answers what is no answer to it."""
        try:
            return read(await self.ask(guest, command))
        except (AgentSilent, ResponseTooLong, TimedOut, Disconnected):
            raise
        except (HypervisorError, UnreadableResponse) as error:
            log.debug("an agent does not tell", extra={"command": command, "error": sanitize(str(error))})
            return None

    async def inquire(self, commands: Sequence[str]) -> Mapping[str, str]:
        """Ask what a person wants to know; return the answers by command, without those that the agent refuses.

        What was answered a moment ago is answered again: whoever may look at a machine could else keep its launcher,
        and us, busy. NoAgent: there is none to ask. HypervisorError: it does not answer.
        """
        async with self._inquiry:
            answers: dict[str, str] = {}
            for command in commands:
                guest, now = self._present(), self._clock.monotonic()
                if now < self._silent_until:
                    raise NoAgent(
                        f"the guest's agent did not answer; it is asked again in {self._silent_until - now:.0f} s"
                    )
                if command not in self._answers or now - self._answers[command][0] >= FRESH_SECONDS:
                    self._answers[command] = (now, await self._ask_or_none(guest, command))
                if (answer := self._answers[command][1]) is not None:
                    answers[command] = answer
            return answers

    async def order(
        self, command: str, seconds: int = ANSWER_SECONDS, arguments: Mapping[str, str] | None = None
    ) -> str:
        """Have the agent do something; return its answer. NoAgent, HypervisorError."""
        return await self._ask_on(self._present(), agent.request(command, arguments), seconds)

    def note_frozen(self, is_frozen: bool | None) -> None:
        """Tell what came of an order to freeze, or to thaw. None: nobody knows, it is asked in the next round."""
        self._is_frozen = is_frozen
        self._answers.clear()
        self._tell(replace(self._told, is_connected=self._is_connected is True))

    def _present(self) -> Guest:
        if not self._is_connected:
            raise NoAgent("VMI does not have guest agent connected")
        if self._guest is None:
            raise NoAgent("VMI is paused: its guest agent cannot answer")
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
        """Put one question, when it is its turn. HypervisorError."""
        return await self._ask_on(guest, agent.request(command), seconds)

    async def _ask_on(self, guest: Guest, question: str, seconds: int) -> str:
        """Ask, and go on when the asker does not wait any more: what is under way is counted until it has ended."""
        task = asyncio.create_task(self._ask(guest, question, seconds))
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())  # nobody may be there
        return await asyncio.shield(task)

    async def _ask(self, guest: Guest, question: str, seconds: int) -> str:
        async with self._one_at_a_time, self._questions:
            return await guest.ask_agent(question, seconds)

    def _tell(self, told: AgentState) -> None:
        self._told = replace(told, is_frozen=self._is_frozen)
        self._publish(self._told)
