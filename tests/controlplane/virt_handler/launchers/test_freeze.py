# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems that a user freezes, and that virt-handler thaws at the deadline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
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
from tests.support.tasks import cancel_task


class Freezable(FakeAgent):
    """An agent that freezes and thaws. `silent`: commands that it executes without an answer."""

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
        return [command for command in self.asked if command in (FREEZE, THAW)]


class Stage:
    """A Freeze with a connected agent."""

    def __init__(self, agent: Freezable, clock: FakeClock) -> None:
        self.agent, self.clock = agent, clock
        self.states: list[AgentState] = []
        self.asking = Agent(clock, lambda: 0.5, asyncio.Semaphore(4), self._hear)
        self.freeze = Freeze(self.asking, clock)

    def _hear(self, state: AgentState) -> None:
        self.states.append(state)
        self.freeze.note(state)

    @property
    def is_frozen(self) -> bool | None:
        return self.states[-1].is_frozen

    async def connect(self) -> None:
        """Connect the agent, and wait for a full round of answers."""
        guest = await FakeConnection(FakeLibvirtd(VMI_UID)).define(domain_text())
        guest.agent = self.agent
        self.asking.look(guest, is_connected=True)
        await until(lambda: bool(self.states) and self.states[-1].is_whole, "a round")


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage(Freezable(), FakeClock())
    tasks = [asyncio.create_task(stage.asking.follow()), asyncio.create_task(stage.freeze.follow())]
    await asyncio.sleep(0)
    await stage.connect()
    yield stage
    for task in tasks:
        await cancel_task(task)


async def test_a_freeze_and_a_thaw_by_a_user_are_published(stage: Stage) -> None:
    assert stage.is_frozen is False
    await stage.freeze.freeze(300)
    assert (stage.agent.is_frozen, stage.is_frozen) == (True, True)
    await stage.freeze.thaw()
    assert (stage.agent.is_frozen, stage.is_frozen) == (False, False)
    await stage.freeze.thaw()
    assert stage.agent.orders == [FREEZE, THAW], "nothing is thawed twice: a hook in the guest would run twice"


async def passes(stage: Stage, seconds: float) -> None:
    """Move the clock and wake up the task that waits for the deadline."""
    stage.clock.seconds += seconds
    stage.freeze._changed.set()
    for _unused in range(20):
        await asyncio.sleep(0)


async def test_a_frozen_guest_is_thawed_at_the_deadline(stage: Stage) -> None:
    await stage.freeze.freeze(60)
    await passes(stage, 59)
    assert stage.agent.is_frozen
    await passes(stage, 2)
    await until(lambda: stage.is_frozen is False, "thawed")
    assert stage.agent.orders == [FREEZE, THAW]


async def test_a_second_freeze_is_not_thawed_at_the_first_deadline(stage: Stage) -> None:
    """The deadline passes while the agent is busy with earlier user requests."""
    await stage.freeze.freeze(10)
    busy = stage.freeze._one_at_a_time
    await busy.acquire()
    requests = [asyncio.create_task(stage.freeze.thaw()), asyncio.create_task(stage.freeze.freeze(100))]
    await asyncio.sleep(0)
    await passes(stage, 10)
    busy.release()
    await asyncio.gather(*requests)
    await passes(stage, 1)
    assert stage.agent.orders == [FREEZE, THAW, FREEZE]


async def test_a_freeze_without_a_deadline_is_never_thawed(stage: Stage) -> None:
    await stage.freeze.freeze(0)
    await passes(stage, 1e6)
    assert stage.agent.orders == [FREEZE]


async def test_a_frozen_guest_keeps_its_first_deadline(stage: Stage) -> None:
    await stage.freeze.freeze(60)
    await stage.freeze.freeze(3600)
    assert stage.agent.orders == [FREEZE]
    await passes(stage, 61)
    await until(lambda: stage.is_frozen is False, "thawed")


async def test_a_freeze_without_an_answer_has_its_deadline(stage: Stage) -> None:
    stage.agent.silent = {FREEZE}
    with pytest.raises(NoContact):
        await stage.freeze.freeze(60)
    assert stage.is_frozen is None
    await passes(stage, 61)
    await until(lambda: not stage.agent.is_frozen, "thawed")


async def test_a_freeze_that_the_agent_refuses_has_no_deadline(stage: Stage) -> None:
    stage.agent.answers[FREEZE] = None
    with pytest.raises(VerbRefused, match="has not been found"):
        await stage.freeze.freeze(60)
    assert stage.is_frozen is False
    await passes(stage, 61)
    assert THAW not in stage.agent.asked


async def test_a_failed_thaw_is_repeated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_SECONDS", 0.001)
    await stage.freeze.freeze(60)
    stage.agent.answers[THAW] = AgentSilent("no answer")
    await passes(stage, 61)
    await until(lambda: stage.agent.orders.count(THAW) >= 3, "three requests")
    assert stage.is_frozen is True
    del stage.agent.answers[THAW]
    await until(lambda: stage.is_frozen is False, "thawed")


async def test_a_guest_that_was_already_frozen_gets_the_default_deadline(stage: Stage) -> None:
    """As after a restart of virt-handler, which does not know the requested deadline."""
    stage.agent.is_frozen = True
    stage.freeze.note(AgentState(is_connected=True, is_frozen=True))
    await passes(stage, USUAL_THAW_SECONDS - 1)
    stage.freeze.note(AgentState(is_connected=True, is_frozen=True))
    assert stage.agent.orders == []
    await passes(stage, 2)
    await until(lambda: stage.agent.orders == [THAW], "thawed")


async def test_a_thaw_that_is_due_during_a_pause_happens_on_resume(
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


async def test_a_disconnected_agent_is_not_thawed(stage: Stage) -> None:
    await stage.freeze.freeze(60)
    stage.asking.look(None, is_connected=False)
    await until(lambda: stage.states[-1] == AgentState(), "a disconnected agent")
    await passes(stage, 61)
    assert stage.agent.orders == [FREEZE]
    with pytest.raises(VerbRefused, match="does not have guest agent connected"):
        await stage.freeze.freeze(60)


async def test_a_reconnected_agent_of_a_frozen_guest_gets_the_default_deadline(stage: Stage) -> None:
    """The agent reports the state. The deadline from before the disconnect is dropped."""
    await stage.freeze.freeze(60)
    guest = stage.asking._guest
    stage.asking.look(None, is_connected=False)
    await until(lambda: stage.states[-1] == AgentState(), "a disconnected agent")
    stage.asking.look(guest, is_connected=True)
    await until(lambda: stage.is_frozen is True, "frozen")
    await passes(stage, 61)
    assert stage.agent.orders == [FREEZE]
    await passes(stage, USUAL_THAW_SECONDS)
    await until(lambda: not stage.agent.is_frozen, "thawed")


async def test_a_freeze_without_a_known_status_is_refused(stage: Stage) -> None:
    stage.agent.answers[FREEZE_STATUS] = "no JSON"
    with pytest.raises(VerbRefused, match="does not report whether"):
        await stage.freeze.freeze(60)
    assert stage.agent.orders == []


async def test_a_frozen_guest_is_asked_for_its_status_in_every_round(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_SECONDS", "USUAL_SECONDS", "RARE_SECONDS"):
        monkeypatch.setattr(pace, name, 0.001)
    monkeypatch.setattr(agent_module, "_ALL_EVERY", 1_000_000)
    stage.clock.seconds += 30  # the token bucket is not under test
    stage.asking._changed.set()
    stage.agent.asked.clear()
    await until(lambda: stage.agent.asked.count(INTERFACES) >= 3, "rounds one after the other")
    await stage.freeze.freeze(60)
    stage.agent.is_frozen = False  # thawed by a user in the guest
    await until(lambda: stage.is_frozen is False, "thawed")
