# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When virt-handler asks a guest agent, what it publishes, and the limits for a hostile agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controlplane.domain import agent as words
from controlplane.domain.agent import AgentState
from controlplane.hypervisor.errors import AgentSilent, ResponseTooLong
from controlplane.virt_handler.launchers import agent as agent_module
from controlplane.virt_handler.launchers import pace
from controlplane.virt_handler.launchers.agent import FRESH_SECONDS, Agent, NoAgent
from tests.controlplane.virt_handler.builders import VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeAgent, FakeClock, FakeConnection, FakeGuest, FakeLibvirtd, until
from tests.support.tasks import cancel_task

ALL = [words.INFO, words.OS, words.FREEZE_STATUS, words.INTERFACES]


class Stage:
    """An Agent, the guest's agent, and the states that were published."""

    def __init__(self, agent: FakeAgent, questions: asyncio.Semaphore | None = None) -> None:
        self.states: list[AgentState] = []
        self.clock, self.fake = FakeClock(), agent
        self.agent = Agent(self.clock, lambda: 0.5, questions or asyncio.Semaphore(4), self.states.append)
        self.guest: FakeGuest | None = None

    @property
    def asked(self) -> list[str]:
        return self.fake.asked

    async def look(self, *, is_connected: bool = True, runs: bool = True) -> None:
        """Let the session see the domain like this."""
        if self.guest is None:
            self.guest = await FakeConnection(FakeLibvirtd(VMI_UID)).define(domain_text())
            self.guest.agent = self.fake
        self.agent.look(self.guest if runs else None, is_connected=is_connected)

    async def ask(self, command: str) -> str:
        await self.look()
        assert self.guest is not None
        return await self.agent.ask(self.guest, command)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.agent.follow())
        await asyncio.sleep(0)
        try:
            yield
        finally:
            await cancel_task(task)

    async def rounds(self, number: int) -> None:
        await until(lambda: len(self.states) >= number, f"{number} rounds")


def a_stage(**answers: Any) -> Stage:
    return Stage(FakeAgent(**answers))


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_SECONDS", "USUAL_SECONDS", "RARE_SECONDS"):
        monkeypatch.setattr(pace, name, 0.001)


async def test_a_connected_agent_is_asked_and_its_answers_published_once() -> None:
    stage = a_stage()
    async with stage.following():
        await stage.look(is_connected=False)
        await stage.rounds(1)
        assert (stage.states, stage.asked) == ([AgentState()], [])
        await stage.look()
        await stage.rounds(2)
        await stage.look(runs=False)
        await stage.rounds(3)
        await stage.look(is_connected=False)
        await stage.rounds(4)
    assert stage.asked == ALL
    state = stage.states[1]
    assert (state.is_connected, state.is_whole) == (True, True)
    assert state.info is not None
    assert state.info.missing == ()
    assert state.interfaces is not None
    assert [interface.name for interface in state.interfaces.listed] == ["enp1s0"]
    assert stage.states[2:] == [state, AgentState()], "a paused guest keeps its agent's answers"


@pytest.mark.usefixtures("quickly")
async def test_rarely_changing_answers_are_rarely_asked_for() -> None:
    stage = a_stage()
    async with stage.following():
        stage.clock.seconds += 1e9  # the token bucket is not under test
        await stage.look()
        await until(lambda: len(stage.asked) >= 4 + 14 + 4, "sixteen rounds", clock=_Rushing(stage.clock))
    assert stage.asked[:22] == [*ALL, *[words.INTERFACES] * 14, *ALL]


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


@pytest.mark.usefixtures("quickly")
async def test_an_agent_that_is_silent_at_first_is_asked_everything_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_ALL_EVERY", 1_000_000)
    stage = a_stage(info=AgentSilent("no"))
    async with stage.following():
        await stage.look()
        await stage.rounds(1)
        assert stage.states[0] == AgentState(is_connected=True)
        stage.fake.answers["guest-info"] = FakeAgent().answers["guest-info"]
        await until(lambda: stage.states[-1].is_whole, "everything")


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
    stage, answer = a_stage(), FakeAgent().answers["guest-info"]
    async with stage.following():
        for number in range(3):
            answers = answers_between and number == 1
            stage.fake.answers["guest-info"] = answer if answers else AgentSilent("no")
            await stage.look()
            await stage.rounds(2 * number + 1)
            await stage.look(runs=False, is_connected=False)
            await stage.rounds(2 * number + 2)
    assert silences == ([1, 0, 1] if answers_between else [1, 2, 3])


@pytest.mark.parametrize(
    ("answers", "has_info", "has_os", "is_cut"),
    [
        ({"get_osinfo": AgentSilent("no")}, True, False, None),
        ({"network_get_interfaces": ResponseTooLong("too long")}, True, True, True),
        ({"get_osinfo": None}, True, False, False),
        ({"get_osinfo": "no JSON", "info": '{"return":[]}'}, False, False, False),
    ],
    ids=["silence", "too many interfaces", "unknown command", "malformed"],
)
async def test_one_failed_command_does_not_hide_the_other_answers(
    answers: dict[str, Any], has_info: bool, has_os: bool, is_cut: bool | None
) -> None:
    """After a silence nothing more is asked."""
    stage = a_stage(**answers)
    async with stage.following():
        await stage.look()
        await stage.rounds(1)
    (state,) = stage.states
    assert (state.info is not None, state.os is not None) == (has_info, has_os)
    assert (None if state.interfaces is None else state.interfaces.is_cut) is is_cut


@pytest.mark.usefixtures("quickly")
async def test_a_flapping_agent_is_published_with_back_off() -> None:
    stage = a_stage()
    async with stage.following():
        for number in range(1000):
            await stage.look(is_connected=number % 2 == 0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    assert len(stage.states) <= 31


@pytest.mark.usefixtures("quickly")
async def test_periodic_rounds_leave_the_burst_for_reconnects() -> None:
    """Otherwise an agent that was connected for a while would be seen a minute late after a reconnect."""
    stage = a_stage()
    async with stage.following():
        await stage.look()
        await stage.rounds(30)
        await stage.look(is_connected=False)
        await until(lambda: stage.states[-1] == AgentState(), "a disconnected agent")
        await stage.look()
        await until(lambda: stage.states[-1].is_connected, "a connected agent")


async def test_concurrent_questions_are_limited_across_cancelled_callers() -> None:
    """An answer can take megabytes until it proves too long."""
    shared = asyncio.Semaphore(2)
    stages = [Stage(FakeAgent(), shared) for _unused in range(5)]
    for stage in stages:
        stage.fake.may_answer.clear()
    askers = [asyncio.create_task(stage.ask(words.OS)) for stage in stages]
    await until(lambda: sum(len(stage.asked) for stage in stages) == 2, "two questions")
    for task in askers[:2]:
        task.cancel()
    for _unused in range(20):
        await asyncio.sleep(0)
    assert sum(len(stage.asked) for stage in stages) == 2, "theirs are still under way"
    for stage in stages:
        stage.fake.may_answer.set()
    await asyncio.gather(*askers[2:])
    assert sum(len(stage.asked) for stage in stages) == 5


async def test_a_launcher_gets_one_question_at_a_time() -> None:
    stage = a_stage()
    stage.fake.may_answer.clear()
    askers = [asyncio.create_task(stage.ask(command)) for command in ALL]
    await until(lambda: bool(stage.asked), "a question")
    for _unused in range(20):
        await asyncio.sleep(0)
    assert stage.asked == [words.INFO]
    stage.fake.may_answer.set()
    await asyncio.gather(*askers)
    assert stage.asked == ALL


async def test_a_bug_while_asking_costs_no_connection(caplog: pytest.LogCaptureFixture) -> None:
    stage = a_stage(info=ZeroDivisionError("a bug"))
    async with stage.following():
        await stage.look()
        await until(lambda: "bug in querying an agent" in caplog.text, "the line")


async def test_answers_for_users_are_cached_for_a_moment() -> None:
    """A user with read access must not keep the launcher busy. A reconnected agent may be another one."""
    stage, wanted = a_stage(get_users=None), [words.OS, "guest-get-users"]
    await stage.look()
    many = await asyncio.gather(*(stage.agent.inquire(wanted) for _unused in range(5)))
    assert [set(answers) for answers in many] == [{words.OS}] * 5, "what it refuses is missing"
    assert stage.asked == wanted
    stage.clock.seconds += FRESH_SECONDS
    await stage.agent.inquire(wanted)
    assert stage.asked == wanted * 2
    await stage.look(is_connected=False)
    await stage.look()
    await stage.agent.inquire(wanted)
    assert stage.asked == wanted * 3
    stage.agent.note_frozen(True)
    await stage.agent.inquire(wanted)
    assert stage.asked == wanted * 4, "a freeze changes what it answers"


@pytest.mark.parametrize(
    ("is_connected", "runs", "refusal"), [(False, True, "does not have guest agent"), (True, False, "VMI is paused")]
)
async def test_an_unavailable_agent_is_not_asked(is_connected: bool, runs: bool, refusal: str) -> None:
    stage = a_stage()
    await stage.look(is_connected=is_connected, runs=runs)
    with pytest.raises(NoAgent, match=refusal):
        await stage.agent.inquire([words.OS])
    assert not stage.asked


async def test_a_silent_agent_is_asked_for_users_rarely() -> None:
    """Otherwise a few silent agents and one busy user would take all of a node's questions."""
    stage = a_stage(get_osinfo=AgentSilent("no answer"))
    await stage.look()
    with pytest.raises(AgentSilent):
        await stage.agent.inquire([words.OS, words.INFO])
    with pytest.raises(NoAgent, match="did not respond; try again in 10 s"):
        await stage.agent.inquire([words.INFO])
    assert stage.asked == [words.OS]
    stage.clock.seconds += pace.FIRST_SECONDS
    await stage.agent.inquire([words.INFO])
    with pytest.raises(AgentSilent):
        await stage.agent.inquire([words.OS])
    await stage.look(runs=False)
    await stage.look()
    await stage.agent.inquire([words.INFO])
    assert stage.asked[-1] == words.INFO, "it may be another agent by now"
