# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that are frozen at a person's word, and that nobody leaves frozen for longer than was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from controlplane.domain.agent import FREEZE, FREEZE_STATUS, INTERFACES, THAW, AgentState
from controlplane.hypervisor.errors import AgentSilent
from controlplane.links.handler import USUAL_THAW_SECONDS
from controlplane.virt_handler.launchers import agent as agent_module
from controlplane.virt_handler.launchers import freeze as freeze_module
from controlplane.virt_handler.launchers import pace
from controlplane.virt_handler.launchers.agent import Agent
from controlplane.virt_handler.launchers.freeze import Freeze
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from tests.controlplane.virt_handler.builders import VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeClock, FakeConnection, FakeLibvirtd, until


class Freezable(FakeAgent):
    """An agent that freezes and thaws. `silent`: commands that it carries out without an answer."""

    def __init__(self, **answers: Any) -> None:
        super().__init__(**answers)
        del self.answers[FREEZE_STATUS]
        self.is_frozen = False
        self.silent: set[str] = set()

    async def answer(self, command: str) -> str:
        if command not in (FREEZE, THAW, FREEZE_STATUS) or command in self.answers:
            return await super().answer(command)
        self.asked.append(command)
        if command != FREEZE_STATUS:
            self.is_frozen = command == FREEZE
        if command in self.silent:
            raise AgentSilent("no answer")
        return json.dumps({"return": "frozen" if self.is_frozen else "thawed"})

    @property
    def orders(self) -> list[str]:
        return [one for one in self.asked if one in (FREEZE, THAW)]


class Stage:
    """A Freeze whose guest's agent is there."""

    def __init__(self, agent: Freezable, clock: FakeClock) -> None:
        self.agent, self.clock = agent, clock
        self.told: list[AgentState] = []
        self.asking = Agent(clock, lambda: 0.5, asyncio.Semaphore(4), self._hear)
        self.freeze = Freeze(self.asking, clock)

    def _hear(self, told: AgentState) -> None:
        self.told.append(told)
        self.freeze.note(told)

    @property
    def is_frozen(self) -> bool | None:
        return self.told[-1].is_frozen

    async def connect(self) -> None:
        """Let the agent be seen, and everything be told once."""
        guest = await FakeConnection(FakeLibvirtd(VMI_UID)).define(domain_text())
        guest.agent = self.agent
        self.asking.look(guest, is_connected=True)
        await until(lambda: bool(self.told) and self.told[-1].is_whole, "a round")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    one = Stage(Freezable(), FakeClock())
    tasks = [asyncio.create_task(one.asking.follow()), asyncio.create_task(one.freeze.follow())]
    await asyncio.sleep(0)
    await one.connect()
    yield one
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_a_person_freezes_is_told_and_thawed_by_a_person(stage: Stage) -> None:
    assert stage.is_frozen is False
    await stage.freeze.freeze(300)
    assert (stage.agent.is_frozen, stage.is_frozen) == (True, True)
    await stage.freeze.thaw()
    assert (stage.agent.is_frozen, stage.is_frozen) == (False, False)
    await stage.freeze.thaw()
    assert stage.agent.orders == [FREEZE, THAW], "nothing is thawed twice: a hook in the guest would run twice"


async def passes(stage: Stage, seconds: float) -> None:
    """Let time pass, and whoever waits for it look at the clock."""
    stage.clock.seconds += seconds
    stage.freeze._news.set()
    for _unused in range(20):
        await asyncio.sleep(0)


async def test_what_is_frozen_is_thawed_when_its_time_is_over(stage: Stage) -> None:
    await stage.freeze.freeze(60)
    await passes(stage, 59)
    assert stage.agent.is_frozen
    await passes(stage, 2)
    await until(lambda: stage.is_frozen is False, "thawed")
    assert stage.agent.orders == [FREEZE, THAW]


async def test_what_a_person_has_frozen_anew_is_not_thawed_at_its_former_end(stage: Stage) -> None:
    """The end comes while the agent is busy with what a person asked for before it."""
    await stage.freeze.freeze(10)
    busy = stage.freeze._one_at_a_time
    await busy.acquire()
    anew = [asyncio.create_task(stage.freeze.thaw()), asyncio.create_task(stage.freeze.freeze(100))]
    await asyncio.sleep(0)
    await passes(stage, 10)
    busy.release()
    await asyncio.gather(*anew)
    await passes(stage, 1)
    assert stage.agent.orders == [FREEZE, THAW, FREEZE]


async def test_one_that_has_no_end_is_never_thawed_by_itself(stage: Stage) -> None:
    await stage.freeze.freeze(0)
    await passes(stage, 1e6)
    assert stage.agent.orders == [FREEZE]


async def test_one_that_is_frozen_already_keeps_its_end(stage: Stage) -> None:
    await stage.freeze.freeze(60)
    await stage.freeze.freeze(3600)
    assert stage.agent.orders == [FREEZE]
    await passes(stage, 61)
    await until(lambda: stage.is_frozen is False, "thawed")


async def test_a_freeze_that_was_not_answered_has_its_end_all_the_same(stage: Stage) -> None:
    stage.agent.silent = {FREEZE}
    with pytest.raises(NoContact):
        await stage.freeze.freeze(60)
    assert stage.is_frozen is None, "nobody knows"
    await passes(stage, 61)
    await until(lambda: not stage.agent.is_frozen, "thawed")


async def test_one_that_the_agent_refuses_is_refused_and_has_no_end(stage: Stage) -> None:
    stage.agent.answers[FREEZE] = None
    with pytest.raises(VerbRefused, match="has not been found"):
        await stage.freeze.freeze(60)
    assert stage.is_frozen is False
    await passes(stage, 61)
    assert THAW not in stage.agent.asked


async def test_an_agent_that_does_not_thaw_is_told_so_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_SECONDS", 0.001)
    await stage.freeze.freeze(60)
    stage.agent.answers[THAW] = AgentSilent("no answer")
    await passes(stage, 61)
    await until(lambda: stage.agent.orders.count(THAW) >= 3, "told three times")
    assert stage.is_frozen is True
    del stage.agent.answers[THAW]
    await until(lambda: stage.is_frozen is False, "thawed")


async def test_a_silent_agent_is_asked_for_a_small_share_of_the_time() -> None:
    assert [pace.pause_after_silence(took) for took in (0.0, 5.0)] == [10.0, 100.0]


async def test_what_is_found_frozen_has_the_usual_time(stage: Stage) -> None:
    """As after a restart of virt-handler, which has forgotten how long was asked for."""
    stage.agent.is_frozen = True
    stage.freeze.note(AgentState(is_connected=True, is_frozen=True))
    await passes(stage, USUAL_THAW_SECONDS - 1)
    stage.freeze.note(AgentState(is_connected=True, is_frozen=True))
    assert stage.agent.orders == []
    await passes(stage, 2)
    await until(lambda: stage.agent.orders == [THAW], "thawed")


async def test_the_end_comes_when_the_guest_goes_on_that_was_paused_meanwhile(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freeze_module, "pause_after_silence", lambda _unused: 0.001)
    await stage.freeze.freeze(60)
    guest = stage.asking._guest
    stage.asking.look(None, is_connected=True)
    await passes(stage, 61)
    assert stage.agent.orders == [FREEZE]
    with pytest.raises(VerbRefused, match="paused"):
        await stage.freeze.thaw()
    stage.asking.look(guest, is_connected=True)
    await until(lambda: not stage.agent.is_frozen, "thawed")


async def test_an_agent_that_is_gone_has_nothing_to_thaw(stage: Stage) -> None:
    await stage.freeze.freeze(60)
    stage.asking.look(None, is_connected=False)
    await until(lambda: stage.told[-1] == AgentState(), "told to be gone")
    await passes(stage, 61)
    assert stage.agent.orders == [FREEZE]
    with pytest.raises(VerbRefused, match="does not have guest agent connected"):
        await stage.freeze.freeze(60)


async def test_an_agent_that_comes_back_to_a_frozen_guest_has_the_usual_time(stage: Stage) -> None:
    """It says itself what it is; what was asked for before it went ends nothing."""
    await stage.freeze.freeze(60)
    guest = stage.asking._guest
    stage.asking.look(None, is_connected=False)
    await until(lambda: stage.told[-1] == AgentState(), "told to be gone")
    stage.asking.look(guest, is_connected=True)
    await until(lambda: stage.is_frozen is True, "found frozen")
    await passes(stage, 61)
    assert stage.agent.orders == [FREEZE]
    await passes(stage, USUAL_THAW_SECONDS)
    await until(lambda: not stage.agent.is_frozen, "thawed")


async def test_one_without_a_word_about_it_is_refused(stage: Stage) -> None:
    stage.agent.answers[FREEZE_STATUS] = "no JSON"
    with pytest.raises(VerbRefused, match="does not say whether"):
        await stage.freeze.freeze(60)
    assert stage.agent.orders == []


async def test_while_it_is_frozen_every_round_asks_whether_it_is_yet(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_SECONDS", "USUAL_SECONDS", "RARE_SECONDS"):
        monkeypatch.setattr(pace, name, 0.001)
    monkeypatch.setattr(agent_module, "_ALL_EVERY", 1_000_000)
    stage.clock.seconds += 30  # the bucket is not what is tested here
    stage.asking._news.set()
    stage.agent.asked.clear()
    await until(lambda: stage.agent.asked.count(INTERFACES) >= 3, "rounds one after the other")
    await stage.freeze.freeze(60)
    stage.agent.is_frozen = False  # somebody in the guest
    await until(lambda: stage.is_frozen is False, "told")
