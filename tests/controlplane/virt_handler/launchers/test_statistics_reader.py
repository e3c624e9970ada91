# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statistics of launchers, some of which do not answer. The others answer without a wait, so limits may be tiny."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.api.objects.resources import Key
from controlplane.domain.statistics import Statistics
from controlplane.hypervisor.calls import DEADLINE_SECONDS
from controlplane.virt_handler.launchers import statistics_reader
from controlplane.virt_handler.launchers.pace import LATE_FIRST_SECONDS
from controlplane.virt_handler.launchers.statistics_reader import AT_ONCE, StatisticsReader
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused
from tests.controlplane.virt_handler.fakes import FakeClock

COUNTERS = Statistics({"cpu.time": 1})


class Launcher:
    """Answers at once, raises an error, or hangs."""

    def __init__(self, error: Exception | None = None, *, hangs: bool = False) -> None:
        self.error, self.hangs, self.asked = error, hangs, 0

    async def statistics(self) -> Statistics:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return COUNTERS


class Stage:
    """A node with launchers, by name."""

    def __init__(self, **launchers: Launcher) -> None:
        self.launchers, self.clock = launchers, FakeClock()
        self.reader = StatisticsReader(self.clock)

    async def read(self) -> set[str]:
        """Return whose statistics were read."""
        found = await self.reader.read([(Key("t", name), launcher) for name, launcher in self.launchers.items()])
        assert all(counters == COUNTERS for counters in found.values())
        return {key.name for key in found}

    def add_hanging(self, number: int) -> None:
        self.launchers = {f"hangs-{index}": Launcher(hangs=True) for index in range(number)} | self.launchers


async def test_a_launcher_without_an_answer_does_not_count() -> None:
    stage = Stage(web=Launcher(), away=Launcher(NoContact("gone")), off=Launcher(VerbRefused("not running")))
    for _twice in range(2):
        assert await stage.read() == {"web"}
    assert {launcher.asked for launcher in stage.launchers.values()} == {2}


async def test_a_late_launcher_is_left_out_and_asked_again_after_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(statistics_reader, "LAUNCHER_SECONDS", 0.01)
    monkeypatch.setattr(statistics_reader, "ALL_SECONDS", 600.0)
    slow = Launcher(hangs=True)
    stage = Stage(web=Launcher(), slow=slow)

    for pause in (LATE_FIRST_SECONDS, 2 * LATE_FIRST_SECONDS):
        asked = slow.asked
        for seconds in (0.0, pause - 1):
            stage.clock.seconds += seconds
            assert await stage.read() == {"web"}
            assert slow.asked == asked + 1
        stage.clock.seconds += 1

    slow.hangs = False
    assert await stage.read() == {"web", "slow"}
    slow.hangs = True
    await stage.read()
    stage.clock.seconds += LATE_FIRST_SECONDS
    slow.hangs = False
    assert await stage.read() == {"web", "slow"}, "the next pause is the first again"


async def test_late_launchers_do_not_take_the_time_of_the_others_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough of them take all places until the page is due. They are asked last when their pause is over."""
    monkeypatch.setattr(statistics_reader, "LAUNCHER_SECONDS", 600.0)
    monkeypatch.setattr(statistics_reader, "ALL_SECONDS", 0.01)
    stage = Stage(web=Launcher())
    stage.add_hanging(AT_ONCE)

    assert await stage.read() == set()
    assert await stage.read() == {"web"}
    stage.clock.seconds += LATE_FIRST_SECONDS
    assert await stage.read() == {"web"}
    assert {launcher.asked for launcher in stage.launchers.values()} == {2}


async def test_a_launcher_without_a_guest_does_not_hide_the_other_one_of_its_machine() -> None:
    class WithoutGuest:
        async def statistics(self) -> None:
            pass

    reader, key = StatisticsReader(FakeClock()), Key("t", "web")
    for launchers in ((Launcher(), WithoutGuest()), (WithoutGuest(), Launcher())):
        assert await reader.read([(key, launcher) for launcher in launchers]) == {key: COUNTERS}


async def test_late_launchers_give_their_places_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_reader, "LAUNCHER_SECONDS", 0.01)
    monkeypatch.setattr(statistics_reader, "ALL_SECONDS", 600.0)
    stage = Stage(web=Launcher())
    stage.add_hanging(2 * AT_ONCE)
    assert await stage.read() == {"web"}


def test_a_call_that_was_given_up_ends_before_the_next_one() -> None:
    assert DEADLINE_SECONDS < LATE_FIRST_SECONDS
