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
from tests.controlplane.virt_handler.builders import NOW, RUNNING
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeGuest, until
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage
from tests.support.tasks import cancel_task

PAUSED, RESUMED = State(Life.PAUSED, "user"), State(Life.RUNNING, "unpaused")


class Stage(SessionStage):
    """A session with a guest and its agent."""

    guest: FakeGuest

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
    task = asyncio.create_task(stage.session.guest_time.follow())
    yield stage
    await cancel_task(task)


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
    stage.guest.agent.answers["guest-set-time"] = {}
    await stage.see(RESUMED)
    await until(lambda: bool(stage.guest.times), "the time")
