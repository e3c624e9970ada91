# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a guest's clock is set. After which states it is behind: domain/test_state."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import AgentSilent, Disconnected, HypervisorError
from controlplane.virt_handler.launchers import guest_time
from controlplane.virt_handler.launchers.pace import FIRST_SECONDS
from tests.controlplane.virt_handler.builders import NOW, RUNNING
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeGuest, until
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage
from tests.support.tasks import cancel_task

PAUSED, RESUMED = State(Life.PAUSED, "user"), State(Life.RUNNING, "unpaused")


class Stage(SessionStage):
    """A session with a guest and its agent."""

    guest: FakeGuest
    following: asyncio.Task[None]

    async def follow(self) -> None:
        self.following = asyncio.create_task(self.session.guest_time.follow())
        await self.settle()

    async def reconnect(self) -> None:
        """Follow on another connection."""
        await cancel_task(self.following)
        await self.follow()

    async def see(self, life: State) -> None:
        """Let the session see the domain in this state."""
        self.guest.life = life
        await self.look()

    async def settle(self) -> None:
        for _unused in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    stage.guest = await stage.define()
    stage.guest.agent = FakeAgent()
    await stage.look()
    await stage.follow()
    yield stage
    await cancel_task(stage.following)


async def test_a_resumed_guest_gets_the_time_once(stage: Stage) -> None:
    await stage.see(PAUSED)
    stage.clock.seconds += 60
    await stage.settle()
    assert stage.guest.times == []
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")
    for _twice in range(2):
        await stage.see(RESUMED)
        await stage.settle()
    assert stage.guest.times == [NOW + 60]


async def test_unpause_does_not_wait_for_the_time(stage: Stage) -> None:
    assert stage.guest.agent is not None
    stage.guest.agent.may_answer.clear()
    await stage.session.user_requests.execute("pause", None)
    await stage.session.user_requests.execute("unpause", None)
    await until(lambda: stage.guest.agent is not None and "guest-set-time" in stage.guest.agent.asked, "the request")
    assert stage.guest.times == []
    stage.guest.agent.may_answer.set()
    await until(lambda: bool(stage.guest.times), "the time")


async def test_the_time_is_read_when_it_is_sent(stage: Stage) -> None:
    """Other queries come first, and an agent has seconds for each."""
    await stage.session.agent._one_at_a_time.acquire()
    await stage.see(PAUSED)
    await stage.see(RESUMED)
    await stage.settle()
    stage.clock.seconds += 5
    stage.session.agent._one_at_a_time.release()
    await until(lambda: bool(stage.guest.times), "the time")
    assert stage.guest.times == [NOW + 5]


async def test_a_guest_that_runs_without_a_pause_keeps_its_time(stage: Stage) -> None:
    await stage.see(RUNNING)
    await stage.settle()
    assert stage.guest.times == []


async def test_a_guest_gets_the_time_as_soon_as_its_agent_is_connected(stage: Stage) -> None:
    agent, stage.guest.agent = stage.guest.agent, None
    stage.session.connection.domain.note(())
    await stage.see(PAUSED)
    await stage.see(RESUMED)
    await stage.settle()
    stage.guest.agent = agent
    stage.session.connection.domain.note(())
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")


class OutOfStep(FakeAgent):
    """An agent that still responds to an earlier request at the first one."""

    async def answer(self, command: str) -> str:
        if command in self.asked:
            return await super().answer(command)
        self.asked.append(command)
        raise AgentSilent("out of step")


async def test_a_late_response_from_before_the_pause_is_no_failure(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.guest.agent = OutOfStep()
    await stage.see(PAUSED)
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("error", "attempts"), [(AgentSilent("hangs"), 2), (Disconnected("gone"), 1)], ids=["silent", "disconnects"]
)
async def test_a_silent_agent_is_asked_rarely(error: Exception, attempts: int, stage: Stage) -> None:
    """Otherwise a few users who pause and unpause a guest in a loop would take all of a node's requests to agents."""
    agent = stage.guest.agent
    assert agent is not None
    agent.answers["guest-set-time"] = error
    for _repeatedly in range(3):
        await stage.see(PAUSED)
        await stage.see(RESUMED)
        await stage.settle()
        await stage.reconnect()
    assert agent.asked == ["guest-set-time"] * attempts

    stage.clock.seconds += FIRST_SECONDS
    agent.answers["guest-set-time"] = {}
    await stage.reconnect()
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")
    assert agent.asked == ["guest-set-time"] * (attempts + 1)


async def test_a_connection_that_ends_during_a_request_changes_neither_the_pause_nor_the_need(stage: Stage) -> None:
    agent = stage.guest.agent
    assert agent is not None
    agent.may_answer.clear()
    for _repeatedly in range(3):
        await stage.see(PAUSED)
        await stage.see(RESUMED)
        await stage.settle()
        await stage.reconnect()
    assert agent.asked == ["guest-set-time"]

    agent.may_answer.set()
    await until(lambda: len(stage.guest.times) == 1, "the first request, which continues")
    stage.clock.seconds += FIRST_SECONDS
    await stage.reconnect()
    await stage.see(RESUMED)
    await until(lambda: len(stage.guest.times) == 2, "the time")


async def test_the_time_is_set_after_the_pause(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_time, "pause_after_silence", lambda _unused: 0.001)
    assert stage.guest.agent is not None
    stage.guest.agent.answers["guest-set-time"] = AgentSilent("hangs")
    await stage.see(PAUSED)
    await stage.see(RESUMED)
    await stage.settle()
    stage.guest.agent.answers["guest-set-time"] = {}
    await stage.see(PAUSED)
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(AgentSilent("hangs"), 2), (HypervisorError("unknown command"), 1)],
    ids=["silent", "refuses"],
)
async def test_a_failure_is_only_logged(
    error: Exception, attempts: int, stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    assert stage.guest.agent is not None
    stage.guest.agent.answers["guest-set-time"] = error
    with caplog.at_level(logging.WARNING):
        await stage.see(PAUSED)
        await stage.see(RESUMED)
        await until(lambda: "cannot set a guest's time" in caplog.text, "the warning")
    await stage.see(RESUMED)
    await stage.settle()
    assert stage.guest.agent.asked == ["guest-set-time"] * attempts


async def test_the_next_connection_sets_the_time_if_this_one_breaks(stage: Stage) -> None:
    assert stage.guest.agent is not None
    stage.guest.agent.answers["guest-set-time"] = Disconnected("gone")
    await stage.see(PAUSED)
    await stage.see(RESUMED)
    await until(lambda: stage.guest.agent is not None and "guest-set-time" in stage.guest.agent.asked, "the request")
    await stage.settle()
    stage.guest.agent.answers["guest-set-time"] = {}
    stage.clock.seconds += FIRST_SECONDS
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")
