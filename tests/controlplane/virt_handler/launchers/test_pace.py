# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.virt_handler.launchers.pace import RESYNC_SECONDS, DomainLooks, Looks, Pauses, Rounds, resync_pause


def pauses() -> Pauses:
    return Pauses(lambda: 0.999999)


def test_a_launcher_that_comes_up_is_called_again_at_once_and_one_that_does_not_ever_less_often() -> None:
    one = pauses()
    assert [round(one.next(0.0), 3) for _unused in range(10)] == [0.02, 0.05, 0.1, 0.3, 1, 3, 10, 30, 30, 30]


def test_launchers_that_fail_together_are_not_called_together() -> None:
    assert Pauses(lambda: 0.0).next(0.0) == 0.01


@pytest.mark.parametrize(("good_for", "pause"), [(9.9, 30.0), (10.0, 0.02)])
def test_only_a_contact_that_was_good_for_a_while_makes_up_for_failures(good_for: float, pause: float) -> None:
    """One that breaks at the first question is a failure, however often it is made."""
    one = pauses()
    for _unused in range(8):
        one.next(0.0)
    assert one.next(good_for) == pytest.approx(pause, rel=1e-3)


def test_a_trouble_that_lasts_is_told_ever_less_often() -> None:
    """A launcher that fails for a day, every 30 s, has ten lines in the log."""
    one, told = pauses(), []
    for number in range(1, 2881):
        one.next(0.0)
        if one.is_worth_a_warning:
            told.append(number)
    assert told == [8, 16, 32, 64, 128, 256, 512, 1024, 2048]


def test_a_contact_that_flaps_is_no_news() -> None:
    one = pauses()
    seen = []
    for _unused in range(9):
        seen.append(one.is_ordinary)
        one.next(1.0)
    assert seen == [True] * 8 + [False]


def test_a_flood_of_events_is_answered_twice_a_second() -> None:
    looks, now, taken = Looks(), 1000.0, 0
    while now < 1060.0:
        now += looks.next(now) or 0.0001
        taken += 1
    assert 20 + 118 <= taken <= 20 + 122


def test_quick_events_of_a_start_are_answered_at_once() -> None:
    looks = Looks()
    assert [looks.next(1000.0) for _unused in range(20)] == [0.0] * 20
    assert looks.next(1000.0) == 0.5


def test_one_that_goes_on_is_looked_at_ever_less_often_in_the_long_run() -> None:
    """Each look may be a write of its status: a launcher that says something else each time would never end."""
    looks, now, taken = DomainLooks(), 1000.0, 0
    while now < 1600.0:
        now += looks.next(now) or 0.0001
        taken += 1
    assert 100 + 55 <= taken <= 100 + 65


@pytest.mark.parametrize(("random", "seconds"), [(0.0, 270.0), (0.5, 300.0), (1.0, 330.0)])
def test_a_domain_of_which_nothing_is_heard_is_looked_at_every_five_minutes(random: float, seconds: float) -> None:
    """Launchers that were found together are not looked at together."""
    assert resync_pause(RESYNC_SECONDS, random) == pytest.approx(seconds)


def rests(rounds: int, **how: bool) -> list[float]:
    counted = Rounds()
    return [counted.next(**{"is_silent": False, "is_changed": False, **how}, took=0.1) for _unused in range(rounds)]


def test_an_agent_is_asked_ever_less_often_up_to_what_is_usual() -> None:
    assert rests(7) == [10, 20, 40, 80, 120, 120, 120]


def test_an_agent_that_is_silent_or_always_says_something_else_is_asked_seldom() -> None:
    assert rests(6, is_silent=True) == [10, 20, 80, 320, 600, 600]
    assert rests(9, is_changed=True) == [10, 20, 40, 80, 120, 240, 480, 600, 600]


def test_an_agent_that_answers_slowly_has_a_twentieth_of_the_time() -> None:
    assert Rounds().next(is_silent=False, is_changed=False, took=4) == 80
    assert Rounds().next(is_silent=False, is_changed=False, took=3600) == 600


def test_an_agent_that_is_silent_twice_is_asked_soon_again_and_then_has_its_twentieth() -> None:
    """A guest that boots on a busy node opens its channel long before it has time to answer."""
    counted = Rounds()
    assert [counted.next(is_silent=True, is_changed=False, took=10) for _unused in range(3)] == [10, 20, 200]
    counted.next(is_silent=False, is_changed=False, took=0.1)
    assert counted.next(is_silent=True, is_changed=False, took=10) == 120, "the pace of one that has long answered"
