# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When virt-handler asks a guest agent, what it publishes, and the limits for a hostile agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from controlplane.domain import agent as words
from controlplane.domain.agent import AgentState, Interfaces
from controlplane.hypervisor.errors import AgentSilent, ResponseTooLong
from controlplane.virt_handler.launchers import agent as agent_module
from controlplane.virt_handler.launchers import pace
from controlplane.virt_handler.launchers.agent import FRESH_SECONDS, Agent, NoAgent
from tests.controlplane.virt_handler.builders import VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeClock, FakeConnection, FakeGuest, FakeLibvirtd, until

ALL = [words.INFO, words.OS, words.FREEZE_STATUS, words.INTERFACES]


class Asked:
    """An Agent, and the states that it published."""

    def __init__(self, questions: int = 4) -> None:
        self.states: list[AgentState] = []
        self.clock = FakeClock()
        self.semaphore = asyncio.Semaphore(questions)
        self.agent = Agent(self.clock, lambda: 0.5, self.semaphore, self.states.append)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.agent.follow())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def rounds(self, number: int) -> None:
        await until(lambda: len(self.states) >= number, f"{number} rounds")


async def a_guest(agent: FakeAgent | None) -> FakeGuest:
    guest = await FakeConnection(FakeLibvirtd(VMI_UID)).define(domain_text())
    guest.agent = agent
    return guest


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_SECONDS", "USUAL_SECONDS", "RARE_SECONDS"):
        monkeypatch.setattr(pace, name, 0.001)


async def test_a_connected_agent_is_asked_and_its_answers_published_once() -> None:
    stage, agent = Asked(), FakeAgent()
    guest = await a_guest(agent)
    async with stage.following():
        stage.agent.look(guest, is_connected=False)
        await stage.rounds(1)
        assert stage.states == [AgentState()]
        assert not agent.asked, "nobody is there"
        stage.agent.look(guest, is_connected=True)
        await stage.rounds(2)
    assert agent.asked == ALL
    (state,) = stage.states[1:]
    assert state.is_connected
    assert state.is_whole
    assert state.info is not None
    assert state.info.missing == ()
    assert state.interfaces is not None
    assert [interface.name for interface in state.interfaces.listed] == ["enp1s0"]


@pytest.mark.usefixtures("quickly")
async def test_rarely_changing_answers_are_rarely_asked_for() -> None:
    stage, agent = Asked(), FakeAgent()
    async with stage.following():
        stage.clock.seconds += 1e9  # the token bucket is not under test
        stage.agent.look(await a_guest(agent), is_connected=True)
        await until(lambda: len(agent.asked) >= 4 + 14 + 4, "sixteen rounds", clock=_Rushing(stage.clock))
    assert agent.asked[:22] == [*ALL, *[words.INTERFACES] * 14, *ALL]


class _Rushing(FakeClock):
    """Moves another clock by an hour per millisecond."""

    def __init__(self, other: FakeClock) -> None:
        self._other = other

    @property  # type: ignore[override]
    def seconds(self) -> float:
        return self._other.seconds

    @seconds.setter
    def seconds(self, _unused: float) -> None:
        self._other.seconds += 3600


async def test_a_paused_guest_is_not_asked_and_keeps_its_agent() -> None:
    agent = FakeAgent()
    stage, guest = Asked(), await a_guest(agent)
    async with stage.following():
        stage.agent.look(guest, is_connected=True)
        await stage.rounds(1)
        stage.agent.look(None, is_connected=True)
        await stage.rounds(2)
    assert agent.asked == ALL
    assert stage.states[1] == stage.states[0]


@pytest.mark.usefixtures("quickly")
async def test_an_agent_that_is_silent_at_first_is_asked_everything_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_ALL_EVERY", 1_000_000)
    agent = FakeAgent(info=AgentSilent("no"))
    stage = Asked()
    async with stage.following():
        stage.agent.look(await a_guest(agent), is_connected=True)
        await stage.rounds(1)
        assert stage.states[0] == AgentState(is_connected=True)
        agent.answers["guest-info"] = FakeAgent().answers["guest-info"]
        await until(lambda: stage.states[-1].is_whole, "everything")


async def test_answers_before_a_silence_are_published() -> None:
    stage = Asked()
    async with stage.following():
        stage.agent.look(await a_guest(FakeAgent(get_osinfo=AgentSilent("no"))), is_connected=True)
        await stage.rounds(1)
    assert stage.states[0].info is not None
    assert not stage.states[0].is_whole


@pytest.mark.parametrize("answers_between", [False, True])
async def test_a_reconnected_silent_agent_keeps_its_silences_until_it_answers(
    answers_between: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    silences = list[int]()

    def rest(rounds: pace.Rounds, *, is_silent: bool, is_changed: bool, took: float) -> float:
        rounds.silences = rounds.silences + 1 if is_silent else 0
        silences.append(rounds.silences)
        return 1_000_000.0

    monkeypatch.setattr(pace.Rounds, "next", rest)
    agent, stage = FakeAgent(info=AgentSilent("no")), Asked()
    async with stage.following():
        for number in range(3):
            agent.answers["guest-info"] = (
                FakeAgent().answers["guest-info"] if answers_between and number == 1 else AgentSilent("no")
            )
            stage.agent.look(await a_guest(agent), is_connected=True)
            await stage.rounds(2 * number + 1)
            stage.agent.look(None, is_connected=False)
            await stage.rounds(2 * number + 2)
    assert silences == ([1, 0, 1] if answers_between else [1, 2, 3])


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"network_get_interfaces": ResponseTooLong("too long")}, Interfaces(is_cut=True)),
        ({"get_osinfo": None}, None),
        ({"get_osinfo": "no JSON", "info": '{"return":[]}'}, None),
    ],
    ids=["too many interfaces", "a command that it has not", "nonsense"],
)
async def test_one_failed_command_does_not_hide_the_other_answers(
    answers: dict[str, Any], expected: Interfaces | None
) -> None:
    stage = Asked()
    async with stage.following():
        stage.agent.look(await a_guest(FakeAgent(**answers)), is_connected=True)
        await stage.rounds(1)
    assert stage.states[0].interfaces is not None
    assert stage.states[0].interfaces == expected or stage.states[0].interfaces.listed


@pytest.mark.usefixtures("quickly")
async def test_a_flapping_agent_is_published_with_back_off() -> None:
    stage, guest = Asked(), await a_guest(FakeAgent())
    async with stage.following():
        for number in range(1000):
            stage.agent.look(guest, is_connected=number % 2 == 0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    assert len(stage.states) <= 31


@pytest.mark.usefixtures("quickly")
async def test_periodic_rounds_leave_the_burst_for_reconnects() -> None:
    """Otherwise an agent that was connected for a while would be seen a minute late after a reconnect."""
    stage, agent = Asked(), FakeAgent()
    guest = await a_guest(agent)
    async with stage.following():
        stage.agent.look(guest, is_connected=True)
        await stage.rounds(30)
        stage.agent.look(guest, is_connected=False)
        await until(lambda: stage.states[-1] == AgentState(), "it is said to be gone")
        stage.agent.look(guest, is_connected=True)
        await until(lambda: stage.states[-1].is_connected, "and to be there")


async def test_concurrent_questions_are_limited_across_cancelled_callers() -> None:
    """An answer can take megabytes until it proves too long."""
    agents = [FakeAgent() for _unused in range(5)]
    stages = [Asked() for _unused in agents]
    shared = asyncio.Semaphore(2)
    for stage, agent in zip(stages, agents, strict=True):
        agent.may_answer.clear()
        stage.agent = Agent(stage.clock, lambda: 0.5, shared, stage.states.append)
    askers = [
        asyncio.create_task(stage.agent.ask(await a_guest(agent), words.OS))
        for stage, agent in zip(stages, agents, strict=True)
    ]
    await until(lambda: sum(len(agent.asked) for agent in agents) == 2, "two questions")
    for task in askers[:2]:
        task.cancel()
    for _unused in range(20):
        await asyncio.sleep(0)
    assert sum(len(agent.asked) for agent in agents) == 2, "theirs are under way yet"
    for agent in agents:
        agent.may_answer.set()
    await asyncio.gather(*askers[2:])
    assert sum(len(agent.asked) for agent in agents) == 5


async def test_a_launcher_gets_one_question_at_a_time() -> None:
    stage, agent = Asked(), FakeAgent()
    agent.may_answer.clear()
    guest = await a_guest(agent)
    askers = [asyncio.create_task(stage.agent.ask(guest, command)) for command in ALL]
    await until(lambda: bool(agent.asked), "a question")
    for _unused in range(20):
        await asyncio.sleep(0)
    assert agent.asked == [words.INFO]
    agent.may_answer.set()
    await asyncio.gather(*askers)
    assert agent.asked == ALL


async def test_a_bug_while_asking_costs_no_connection(caplog: pytest.LogCaptureFixture) -> None:
    stage = Asked()
    agent = FakeAgent(info=ZeroDivisionError("a bug"))
    async with stage.following():
        stage.agent.look(await a_guest(agent), is_connected=True)
        await until(lambda: "bug in asking an agent" in caplog.text, "the line")


async def test_answers_for_users_are_cached_for_a_moment() -> None:
    """A user with read access must not keep the launcher busy."""
    stage, agent = Asked(), FakeAgent(get_users=None)
    stage.agent.look(await a_guest(agent), is_connected=True)
    wanted = [words.OS, "guest-get-users"]
    many = await asyncio.gather(*(stage.agent.inquire(wanted) for _unused in range(5)))
    assert [set(answers) for answers in many] == [{words.OS}] * 5, "what it refuses is missing"
    assert agent.asked == wanted
    stage.clock.seconds += FRESH_SECONDS
    await stage.agent.inquire(wanted)
    assert agent.asked == wanted * 2


@pytest.mark.parametrize(
    ("is_connected", "runs", "said"), [(False, True, "does not have guest agent"), (True, False, "VMI is paused")]
)
async def test_an_unavailable_agent_is_not_asked(is_connected: bool, runs: bool, said: str) -> None:
    stage, agent = Asked(), FakeAgent()
    stage.agent.look(await a_guest(agent) if runs else None, is_connected=is_connected)
    with pytest.raises(NoAgent, match=said):
        await stage.agent.inquire([words.OS])
    assert not agent.asked


async def test_a_silent_agent_gets_one_question_per_request() -> None:
    stage, agent = Asked(), FakeAgent(get_osinfo=AgentSilent("no answer"))
    stage.agent.look(await a_guest(agent), is_connected=True)
    with pytest.raises(AgentSilent):
        await stage.agent.inquire([words.OS, words.INFO])
    assert agent.asked == [words.OS]


async def test_a_silent_agent_is_asked_for_users_rarely() -> None:
    """Otherwise a few silent agents and one busy user would take all of a node's questions."""
    stage, agent = Asked(), FakeAgent(get_osinfo=AgentSilent("no answer"))
    guest = await a_guest(agent)
    stage.agent.look(guest, is_connected=True)
    with pytest.raises(AgentSilent):
        await stage.agent.inquire([words.OS])
    with pytest.raises(NoAgent, match="did not answer; it is asked again in 10 s"):
        await stage.agent.inquire([words.INFO])
    assert agent.asked == [words.OS]
    stage.clock.seconds += pace.FIRST_SECONDS
    await stage.agent.inquire([words.INFO])
    with pytest.raises(AgentSilent):
        await stage.agent.inquire([words.OS])
    stage.agent.look(None, is_connected=True)
    stage.agent.look(guest, is_connected=True)
    await stage.agent.inquire([words.INFO])
    assert agent.asked[-1] == words.INFO, "it may be another by now"
