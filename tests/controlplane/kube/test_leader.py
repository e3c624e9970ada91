# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from controlplane.api.objects.resources import LEASE, Key
from controlplane.engine.errors import NotLeader, Unavailable
from controlplane.kube.leader import (
    EXIT_LATE,
    ElectionTiming,
    Leadership,
    LeadershipLostError,
    LeaseState,
    TakeLease,
    Wait,
    Watchdog,
    decide,
)
from tests.controlplane.kube.virtual import MemoryApi, SlowApi, VirtualTime

KEY = Key("kubevirt", "virt-controller")
TERMS = ElectionTiming()


def lease_of(holder: str = "other", version: str = "7", duration: float = 15.0, transitions: int = 3) -> LeaseState:
    return LeaseState(holder, version, duration, transitions)


@pytest.mark.parametrize(
    ("lease", "still_for", "expected"),
    [
        (None, 0.0, TakeLease("", 0)),
        (lease_of("me"), 0.0, TakeLease("7", 3)),
        (lease_of(""), 0.0, TakeLease("7", 4)),
        (lease_of(), 0.0, Wait(2.0)),
        (lease_of(), 14.0, Wait(1.0)),
        (lease_of(), 15.0, TakeLease("7", 4)),
        (lease_of(duration=40), 15.0, Wait(2.0)),
        (lease_of(duration=2147483647), 119.0, Wait(1.0)),
        (lease_of(duration=2147483647), 120.0, TakeLease("7", 4)),
    ],
    ids=[
        "no lease",
        "mine",
        "given back",
        "just seen",
        "nearly over",
        "stood still",
        "its own duration counts",
        "68 years, just seen",
        "68 years, stood still for longer than any of us would",
    ],
)
def test_the_decision_of_a_candidate(lease: LeaseState | None, still_for: float, expected: TakeLease | Wait) -> None:
    assert decide(lease, "me", still_for, TERMS) == expected


@dataclass
class Candidate:
    leadership: Leadership
    api: MemoryApi
    leading: list[str] = field(default_factory=list)
    exits: list[int] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def lead(self) -> None:
        self.leading.append("began")
        try:
            await self.done.wait()
        finally:
            self.leading.append("ended")


@dataclass
class Election:
    time: VirtualTime = field(default_factory=VirtualTime)
    api: MemoryApi = field(default_factory=MemoryApi)
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def join(self, identity: str, api: MemoryApi | None = None) -> Candidate:
        exits: list[int] = []
        leadership = Leadership(
            api or self.api, KEY, identity, self.time, sleep=self.time.sleep, end_process=exits.append
        )
        candidate = Candidate(leadership, api or self.api, exits=exits)
        self.tasks[identity] = asyncio.create_task(leadership.run(candidate.lead))
        return candidate

    @property
    def holder(self) -> str:
        return str(self.api.objects["leases", KEY]["spec"]["holderIdentity"])


@pytest.fixture
async def election() -> AsyncIterator[Election]:
    running = Election()
    yield running
    for task in running.tasks.values():
        task.cancel()
    await asyncio.gather(*running.tasks.values(), return_exceptions=True)


async def test_a_leader_that_ends_gives_the_lease_back_and_the_next_leads_within_two_seconds(
    election: Election,
) -> None:
    first = election.join("a")
    await election.time.settle()
    second = election.join("b")
    await election.time.advance(60)

    first.done.set()
    await election.time.advance(2.1)

    assert first.leading == ["began", "ended"]
    assert second.leading == ["began"]
    assert election.holder == "b"


async def test_a_partitioned_leader_writes_nothing_when_another_takes_over_and_ends_when_it_reads_that(
    election: Election,
) -> None:
    link = MemoryApi(version=100)  # its versions are none of the other's
    link.objects = election.api.objects
    first = election.join("a", link)
    second = election.join("b")
    await election.time.advance(7)

    link.failing = Unavailable("cut off")
    for _unused in range(200):
        await election.time.advance(0.1)
        assert not (first.leadership.is_leader and second.leadership.is_leader)
    assert second.leading == ["began"]
    with pytest.raises(NotLeader):
        first.leadership.require()

    link.failing = None
    await election.time.advance(1.1)
    assert first.leading == ["began", "ended"]
    with pytest.raises(LeadershipLostError, match="taken by b"):
        await election.tasks["a"]


async def test_a_leader_that_cannot_reach_the_api_server_for_long_ends(election: Election) -> None:
    first = election.join("a")
    await election.time.advance(6)
    election.api.failing = Unavailable("cut off")

    await election.time.advance(TERMS.give_up_seconds + 3)
    assert first.leading == ["began"]
    assert not first.leadership.is_leader

    await election.time.advance(3)
    assert first.leading == ["began", "ended"]
    with pytest.raises(LeadershipLostError, match="could not renew kubevirt/virt-controller for 60 s"):
        await election.tasks["a"]


async def test_a_leader_leads_again_after_an_outage_in_which_nobody_took_over(election: Election) -> None:
    """Renewing needs the version that it wrote last: nobody has led meanwhile."""
    first = election.join("a")
    await election.time.advance(6)
    election.api.failing = Unavailable("API server restarts")
    await election.time.advance(30)
    assert not first.leadership.is_leader
    election.api.failing = None
    await election.time.advance(1.1)

    assert first.leadership.is_leader
    assert first.leading == ["began"]


async def test_a_few_failed_renewals_do_not_end_a_leadership(election: Election) -> None:
    first = election.join("a")
    await election.time.advance(6)
    election.api.failing = Unavailable("API server restarts")
    await election.time.advance(7)
    election.api.failing = None
    await election.time.advance(30)

    assert first.leading == ["began"]
    assert first.leadership.is_leader


@pytest.mark.parametrize(("holder", "name"), [("thief", "thief"), ("", "nobody")])
async def test_a_lease_that_was_given_to_another_or_to_nobody_ends_the_leadership_at_once(
    election: Election, holder: str, name: str
) -> None:
    """Any candidate may take a Lease without a holder at this moment."""
    first = election.join("a")
    await election.time.advance(6)
    await election.api.patch(LEASE, KEY, {"spec": {"holderIdentity": holder}})
    await election.time.advance(5)

    assert first.leading == ["began", "ended"]
    assert election.holder == holder
    with pytest.raises(LeadershipLostError, match=f"taken by {name}"):
        await election.tasks["a"]


async def test_a_deleted_lease_ends_the_leadership(election: Election) -> None:
    first = election.join("a")
    await election.time.advance(6)
    await election.api.delete(LEASE, KEY)
    await election.time.advance(5)

    assert first.leading == ["began", "ended"]
    with pytest.raises(LeadershipLostError, match="deleted"):
        await election.tasks["a"]


async def test_a_failing_leader_gives_the_lease_back_and_its_error_is_raised(election: Election) -> None:
    first = election.join("a")

    async def broken() -> None:
        raise RuntimeError("bug")

    election.tasks["a"].cancel()
    with suppress(asyncio.CancelledError):
        await election.tasks["a"]
    with pytest.raises(RuntimeError, match="bug"):
        await first.leadership.run(broken)

    assert election.holder == ""


async def test_a_renewal_counts_from_its_send_time(election: Election) -> None:
    api = SlowApi(time=election.time)
    first = election.join("a", api)
    await election.time.advance(1)
    api.answers_after = 8
    await election.time.advance(12.5)  # A renewal was sent after 5 s and answered after 13.
    assert [verb for verb, *_unused in api.writes] == ["create", "patch"]
    api.failing = Unavailable("cut off")

    await election.time.advance(1.4)
    assert first.leadership.is_leader
    await election.time.advance(0.2)
    assert not first.leadership.is_leader


async def test_a_renewal_without_a_response_does_not_keep_a_leader_from_ending() -> None:
    class Mute(MemoryApi):
        is_mute = False

        async def patch(self, *arguments: Any, **options: Any) -> Any:
            if self.is_mute:
                await asyncio.Event().wait()
            return await super().patch(*arguments, **options)

    time, api, terms = VirtualTime(), Mute(), ElectionTiming(renew_deadline_seconds=0.02, give_up_seconds=0.0)
    leadership = Leadership(api, KEY, "a", time, terms=terms, sleep=time.sleep, end_process=lambda _unused: None)
    leading = asyncio.create_task(leadership.run(asyncio.Event().wait))  # type: ignore[arg-type]
    await time.settle()
    api.is_mute = True
    await time.advance(terms.renew_seconds)
    async with asyncio.timeout(5):
        with pytest.raises(LeadershipLostError, match="could not renew"):
            await leading


async def test_taking_the_lease_counts_from_its_send_time_too(election: Election) -> None:
    first = election.join("a", SlowApi(time=election.time, answers_after=8))
    await election.time.advance(9.9)
    assert first.leadership.is_leader
    await election.time.advance(0.2)
    assert not first.leadership.is_leader


@dataclass
class FailingOnce(MemoryApi):
    """Some patches fail before they reach the server."""

    failures: int = 0

    async def patch(self, *arguments: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise Unavailable("lost on the way")
        return await super().patch(*arguments, **options)


async def test_a_leader_that_slept_while_another_took_over_ends_without_a_write(election: Election) -> None:
    first = election.join("a")
    await election.time.advance(7)
    election.time.suspend(3600)
    await election.api.patch(LEASE, KEY, {"spec": {"holderIdentity": "other"}})
    writes = len(election.api.writes)
    await election.time.advance(5)

    assert first.leading == ["began", "ended"]
    assert len(election.api.writes) == writes
    with pytest.raises(LeadershipLostError, match="other"):
        await election.tasks["a"]


async def test_a_leader_that_slept_without_a_rival_leads_on_after_a_renewal(election: Election) -> None:
    first = election.join("a")
    await election.time.advance(7)
    election.time.suspend(3600)
    assert not first.leadership.is_leader
    await election.time.advance(3.1)

    assert first.leadership.is_leader
    assert first.leading == ["began"]


async def test_a_lease_that_another_took_is_not_renewed_after_a_failure(election: Election) -> None:
    """The holder is checked even when the first sign was a failed renewal and not a conflict."""
    election.api = api = FailingOnce()
    first = election.join("a")
    await election.time.advance(4)
    await election.api.patch(LEASE, KEY, {"spec": {"holderIdentity": "thief"}})
    api.failures = 1
    await election.time.advance(4)

    assert first.leading == ["began", "ended"]
    with pytest.raises(LeadershipLostError, match="thief"):
        await election.tasks["a"]


async def test_a_stalled_leader_leads_on_although_its_first_renewal_fails(election: Election) -> None:
    """A busy machine: the event loop stood still past the deadline, and the next request fails, too."""
    election.api = api = FailingOnce()
    first = election.join("a")
    await election.time.advance(7)
    election.time.suspend(50)
    api.failures = 3
    await election.time.advance(3.1)
    assert not first.leadership.is_leader
    await election.time.advance(3.1)

    assert first.leadership.is_leader
    assert first.leading == ["began"]
    assert first.exits == []


class QuickWatchdog(Watchdog):
    CHECK_SECONDS = 0.001


@dataclass
class Watched:
    """A watchdog over a leader that is late by `late` seconds at each check."""

    late: list[float]
    exits: list[int] = field(default_factory=list)
    checked: threading.Event = field(default_factory=threading.Event)

    def seconds_late(self) -> float:
        if not self.late:
            self.checked.set()
            return -1.0
        return self.late.pop(0)

    def end(self, code: int) -> None:
        self.exits.append(code)
        self.checked.set()


@pytest.mark.parametrize(
    ("late", "exits"),
    [
        ([1.0] * (Watchdog.LATE_CHECKS - 1), []),
        ([3600.0], []),
        ([1.0] * (Watchdog.LATE_CHECKS - 1) + [-1.0] + [1.0] * (Watchdog.LATE_CHECKS - 1), []),
        ([1.0] * Watchdog.LATE_CHECKS, [EXIT_LATE]),
    ],
    ids=["a long stall", "the host was suspended", "two stalls, and a renewal between them", "it hangs for good"],
)
def test_only_an_event_loop_that_hangs_for_good_ends_the_process(late: list[float], exits: list[int]) -> None:
    watched = Watched(list(late))
    watchdog = QuickWatchdog(watched.seconds_late, watched.end)
    assert watched.checked.wait(30)
    watchdog.stop()
    assert watched.exits == exits


def test_a_leader_gives_up_before_its_watchdog_ends_the_process() -> None:
    assert TERMS.renew_deadline_seconds + TERMS.give_up_seconds < Watchdog.LATE_CHECKS * Watchdog.CHECK_SECONDS


async def test_a_leader_that_wakes_after_its_deadline_does_not_give_the_lease_back(election: Election) -> None:
    election.join("a")
    await election.time.advance(1)
    election.time.suspend(20)
    before = len(election.api.writes)
    election.tasks["a"].cancel()
    await election.time.settle()
    assert len(election.api.writes) == before


async def test_a_leader_cancelled_twice_leaves_no_thread_behind() -> None:
    """Once while it leads, and once while its return of the Lease waits for a response."""
    time = VirtualTime()
    api = SlowApi(time=time)
    before = set(threading.enumerate())
    leadership = Leadership(api, KEY, "a", time, sleep=time.sleep)
    leading = asyncio.create_task(leadership.run(asyncio.Event().wait))  # type: ignore[arg-type]
    await time.advance(1)
    assert leadership.is_leader
    api.answers_after = 60.0
    for _unused in range(2):
        leading.cancel()
        await time.settle()

    assert leading.cancelled()
    assert set(threading.enumerate()) <= before
