# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a guest's agent is asked, what is told of it, and what one that means harm comes to."""

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
    """An Agent, and what it has told."""

    def __init__(self, questions: int = 4) -> None:
        self.told: list[AgentState] = []
        self.clock = FakeClock()
        self.semaphore = asyncio.Semaphore(questions)
        self.agent = Agent(self.clock, lambda: 0.5, self.semaphore, self.told.append)

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
        await until(lambda: len(self.told) >= number, f"{number} rounds")


async def a_guest(agent: FakeAgent | None) -> FakeGuest:
    guest = await FakeConnection(FakeLibvirtd(VMI_UID)).define(domain_text())
    guest.agent = agent
    return guest


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_SECONDS", "USUAL_SECONDS", "RARE_SECONDS"):
        monkeypatch.setattr(pace, name, 0.001)


async def test_an_agent_is_asked_when_it_is_there_and_what_it_says_is_told_once() -> None:
    asked, agent = Asked(), FakeAgent()
    guest = await a_guest(agent)
    async with asked.following():
        asked.agent.look(guest, is_connected=False)
        await asked.rounds(1)
        assert asked.told == [AgentState()]
        assert not agent.asked, "nobody is there"
        asked.agent.look(guest, is_connected=True)
        await asked.rounds(2)
    assert agent.asked == ALL
    (told,) = asked.told[1:]
    assert told.is_connected
    assert told.is_whole
    assert told.info is not None
    assert told.info.missing == ()
    assert told.interfaces is not None
    assert [one.name for one in told.interfaces.listed] == ["enp1s0"]


@pytest.mark.usefixtures("quickly")
async def test_what_seldom_changes_is_seldom_asked() -> None:
    asked, agent = Asked(), FakeAgent()
    async with asked.following():
        asked.clock.seconds += 1e9  # the bucket is not what is tested here
        asked.agent.look(await a_guest(agent), is_connected=True)
        await until(lambda: len(agent.asked) >= 4 + 14 + 4, "sixteen rounds", clock=_Rushing(asked.clock))
    assert agent.asked[:22] == [*ALL, *[words.INTERFACES] * 14, *ALL]


class _Rushing(FakeClock):
    """Lets another clock go on by an hour whenever a millisecond has passed."""

    def __init__(self, other: FakeClock) -> None:
        self._other = other

    @property  # type: ignore[override]
    def seconds(self) -> float:
        return self._other.seconds

    @seconds.setter
    def seconds(self, _unused: float) -> None:
        self._other.seconds += 3600


async def test_an_agent_is_asked_over_the_next_connection_as_if_nobody_had_ever_seen_it() -> None:
    """That it looks as it did over the last one is no reason to ask nobody."""
    asked = Asked()
    for number in (1, 2):
        agent = FakeAgent()
        async with asked.following():
            asked.agent.look(await a_guest(agent), is_connected=True)
            await asked.rounds(number)
        assert words.INTERFACES in agent.asked


async def test_an_agent_that_goes_is_told_to_be_gone_with_all_that_it_said() -> None:
    asked, guest = Asked(), await a_guest(FakeAgent())
    async with asked.following():
        asked.agent.look(guest, is_connected=True)
        await asked.rounds(1)
        asked.agent.look(guest, is_connected=False)
        await asked.rounds(2)
    assert asked.told[1] == AgentState()


async def test_a_guest_that_is_paused_is_not_asked_and_its_agent_not_lost() -> None:
    agent = FakeAgent()
    asked, guest = Asked(), await a_guest(agent)
    async with asked.following():
        asked.agent.look(guest, is_connected=True)
        await asked.rounds(1)
        asked.agent.look(None, is_connected=True)
        await asked.rounds(2)
    assert agent.asked == ALL
    assert asked.told[1] == asked.told[0]


@pytest.mark.usefixtures("quickly")
async def test_an_agent_that_is_silent_at_first_is_asked_everything_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_module, "_ALL_EVERY", 1_000_000)
    agent = FakeAgent(info=AgentSilent("no"))
    asked = Asked()
    async with asked.following():
        asked.agent.look(await a_guest(agent), is_connected=True)
        await asked.rounds(1)
        assert asked.told[0] == AgentState(is_connected=True)
        agent.answers["guest-info"] = FakeAgent().answers["guest-info"]
        await until(lambda: asked.told[-1].is_whole, "everything")


async def test_what_was_answered_before_a_silence_is_told() -> None:
    asked = Asked()
    async with asked.following():
        asked.agent.look(await a_guest(FakeAgent(get_osinfo=AgentSilent("no"))), is_connected=True)
        await asked.rounds(1)
    assert asked.told[0].info is not None
    assert not asked.told[0].is_whole


@pytest.mark.parametrize("answers_between", [False, True])
async def test_a_silent_agent_that_comes_again_is_no_new_one_until_it_has_answered(
    answers_between: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    silences = list[int]()

    def rest(rounds: pace.Rounds, *, is_silent: bool, is_changed: bool, took: float) -> float:
        rounds.silences = rounds.silences + 1 if is_silent else 0
        silences.append(rounds.silences)
        return 1_000_000.0

    monkeypatch.setattr(pace.Rounds, "next", rest)
    agent, asked = FakeAgent(info=AgentSilent("no")), Asked()
    async with asked.following():
        for number in range(3):
            agent.answers["guest-info"] = (
                FakeAgent().answers["guest-info"] if answers_between and number == 1 else AgentSilent("no")
            )
            asked.agent.look(await a_guest(agent), is_connected=True)
            await asked.rounds(2 * number + 1)
            asked.agent.look(None, is_connected=False)
            await asked.rounds(2 * number + 2)
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
async def test_what_one_question_comes_to_keeps_no_other_from_being_told(
    answers: dict[str, Any], expected: Interfaces | None
) -> None:
    asked = Asked()
    async with asked.following():
        asked.agent.look(await a_guest(FakeAgent(**answers)), is_connected=True)
        await asked.rounds(1)
    assert asked.told[0].interfaces is not None
    assert asked.told[0].interfaces == expected or asked.told[0].interfaces.listed


@pytest.mark.usefixtures("quickly")
async def test_an_agent_that_comes_and_goes_is_believed_ever_less_often() -> None:
    asked, guest = Asked(), await a_guest(FakeAgent())
    async with asked.following():
        for number in range(1000):
            asked.agent.look(guest, is_connected=number % 2 == 0)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    assert len(asked.told) <= 31


async def test_a_person_who_tries_all_verbs_in_a_minute_is_told_of_each() -> None:
    """Each pause, reset and reboot is two; with ten of them the last ones were told a minute late."""
    asked, guest = Asked(), await a_guest(FakeAgent())
    async with asked.following():
        for number in range(1, 15):
            asked.agent.look(guest, is_connected=True)
            await asked.rounds(2 * number - 1)
            asked.agent.look(None, is_connected=False)
            await asked.rounds(2 * number)
    assert asked.told[-1] == AgentState()


@pytest.mark.usefixtures("quickly")
async def test_rounds_that_are_due_take_nothing_from_those_of_an_agent_that_comes() -> None:
    """Else one that was there for a while would be seen a minute late when it has come again."""
    asked, agent = Asked(), FakeAgent()
    guest = await a_guest(agent)
    async with asked.following():
        asked.agent.look(guest, is_connected=True)
        await asked.rounds(30)
        asked.agent.look(guest, is_connected=False)
        await until(lambda: asked.told[-1] == AgentState(), "it is said to be gone")
        asked.agent.look(guest, is_connected=True)
        await until(lambda: asked.told[-1].is_connected, "and to be there")


async def test_a_few_questions_are_under_way_at_once_whoever_went_away() -> None:
    """An answer may take megabytes, until it is found to be too long."""
    held = [FakeAgent() for _unused in range(5)]
    asked = [Asked() for _unused in held]
    shared = asyncio.Semaphore(2)
    for one, agent in zip(asked, held, strict=True):
        agent.may_answer.clear()
        one.agent = Agent(one.clock, lambda: 0.5, shared, one.told.append)
    askers = [
        asyncio.create_task(one.agent.ask(await a_guest(agent), words.OS))
        for one, agent in zip(asked, held, strict=True)
    ]
    await until(lambda: sum(len(agent.asked) for agent in held) == 2, "two questions")
    for task in askers[:2]:
        task.cancel()
    for _unused in range(20):
        await asyncio.sleep(0)
    assert sum(len(agent.asked) for agent in held) == 2, "theirs are under way yet"
    for agent in held:
        agent.may_answer.set()
    await asyncio.gather(*askers[2:])
    assert sum(len(agent.asked) for agent in held) == 5


async def test_one_question_at_a_time_is_put_to_a_launcher() -> None:
    asked, agent = Asked(), FakeAgent()
    agent.may_answer.clear()
    guest = await a_guest(agent)
    askers = [asyncio.create_task(asked.agent.ask(guest, command)) for command in ALL]
    await until(lambda: bool(agent.asked), "a question")
    for _unused in range(20):
        await asyncio.sleep(0)
    assert agent.asked == [words.INFO]
    agent.may_answer.set()
    await asyncio.gather(*askers)
    assert agent.asked == ALL


async def test_a_bug_in_asking_costs_nobody_the_contact(caplog: pytest.LogCaptureFixture) -> None:
    asked = Asked()
    agent = FakeAgent(info=ZeroDivisionError("a bug"))
    async with asked.following():
        asked.agent.look(await a_guest(agent), is_connected=True)
        await until(lambda: "bug in asking an agent" in caplog.text, "the line")


async def test_a_person_is_told_what_the_agent_answers_and_for_a_moment_the_same() -> None:
    """Whoever may look at a machine must not be able to keep its launcher busy."""
    asked, agent = Asked(), FakeAgent(get_users=None)
    asked.agent.look(await a_guest(agent), is_connected=True)
    wanted = [words.OS, "guest-get-users"]
    many = await asyncio.gather(*(asked.agent.inquire(wanted) for _unused in range(5)))
    assert [set(one) for one in many] == [{words.OS}] * 5, "what it refuses is missing"
    assert agent.asked == wanted
    asked.clock.seconds += FRESH_SECONDS
    await asked.agent.inquire(wanted)
    assert agent.asked == wanted * 2


async def test_another_agent_is_asked_anew() -> None:
    asked, agent = Asked(), FakeAgent()
    guest = await a_guest(agent)
    for is_connected in (True, False, True):
        asked.agent.look(guest, is_connected=is_connected)
        if is_connected:
            await asked.agent.inquire([words.OS])
    assert agent.asked == [words.OS] * 2


@pytest.mark.parametrize(
    ("is_connected", "runs", "said"), [(False, True, "does not have guest agent"), (True, False, "VMI is paused")]
)
async def test_where_nobody_can_answer_nobody_is_asked(is_connected: bool, runs: bool, said: str) -> None:
    asked, agent = Asked(), FakeAgent()
    asked.agent.look(await a_guest(agent) if runs else None, is_connected=is_connected)
    with pytest.raises(NoAgent, match=said):
        await asked.agent.inquire([words.OS])
    assert not agent.asked


async def test_an_agent_that_is_silent_costs_a_person_one_question() -> None:
    asked, agent = Asked(), FakeAgent(get_osinfo=AgentSilent("no answer"))
    asked.agent.look(await a_guest(agent), is_connected=True)
    with pytest.raises(AgentSilent):
        await asked.agent.inquire([words.OS, words.INFO])
    assert agent.asked == [words.OS]


async def test_an_agent_that_is_silent_is_asked_for_persons_a_small_share_of_the_time() -> None:
    """A few of them, and somebody who asks without end, would have all of a node's questions."""
    asked, agent = Asked(), FakeAgent(get_osinfo=AgentSilent("no answer"))
    guest = await a_guest(agent)
    asked.agent.look(guest, is_connected=True)
    with pytest.raises(AgentSilent):
        await asked.agent.inquire([words.OS])
    with pytest.raises(NoAgent, match="did not answer; it is asked again in 10 s"):
        await asked.agent.inquire([words.INFO])
    assert agent.asked == [words.OS]
    asked.clock.seconds += pace.FIRST_SECONDS
    await asked.agent.inquire([words.INFO])
    with pytest.raises(AgentSilent):
        await asked.agent.inquire([words.OS])
    asked.agent.look(None, is_connected=True)
    asked.agent.look(guest, is_connected=True)
    await asked.agent.inquire([words.INFO])
    assert agent.asked[-1] == words.INFO, "it may be another by now"
