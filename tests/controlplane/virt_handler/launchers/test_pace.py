# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.virt_handler.launchers.pace import (
    RESYNC_SECONDS,
    DomainLooks,
    LatePauses,
    Looks,
    Pauses,
    Rounds,
    resync_pause,
)


def pauses() -> Pauses:
    return Pauses(lambda: 0.999999)


def test_a_starting_launcher_is_dialled_again_at_once_and_a_failing_one_with_back_off() -> None:
    back_off = pauses()
    assert [round(back_off.next(0.0), 3) for _unused in range(10)] == [0.02, 0.05, 0.1, 0.3, 1, 3, 10, 30, 30, 30]


@pytest.mark.parametrize(("good_for", "pause"), [(9.9, 30.0), (10.0, 0.02)])
def test_only_a_connection_that_lasted_resets_the_back_off(good_for: float, pause: float) -> None:
    """A connection that breaks at the first request is a failure, however often it is made."""
    back_off = pauses()
    for _unused in range(8):
        back_off.next(0.0)
    assert back_off.next(good_for) == pytest.approx(pause, rel=1e-3)


def test_a_lasting_failure_is_logged_ever_less_often() -> None:
    """A launcher that fails every 30 s for a day has ten lines in the log."""
    back_off, warnings = pauses(), []
    for number in range(1, 2881):
        back_off.next(0.0)
        if back_off.is_worth_a_warning:
            warnings.append(number)
    assert warnings == [8, 16, 32, 64, 128, 256, 512, 1024, 2048]


def test_a_flapping_connection_is_ordinary_only_at_first() -> None:
    back_off = pauses()
    ordinary = []
    for _unused in range(9):
        ordinary.append(back_off.is_ordinary)
        back_off.next(1.0)
    assert ordinary == [True] * 8 + [False]


def test_a_flood_of_events_is_read_twice_a_second() -> None:
    looks, now, taken = Looks(), 1000.0, 0
    while now < 1060.0:
        now += looks.next(now) or 0.0001
        taken += 1
    assert 20 + 118 <= taken <= 20 + 122


def test_a_burst_of_events_at_a_start_is_read_at_once() -> None:
    looks = Looks()
    assert [looks.next(1000.0) for _unused in range(20)] == [0.0] * 20
    assert looks.next(1000.0) == 0.5


def test_a_lasting_flood_is_read_ever_less_often() -> None:
    """Each read may be a status write. A launcher that always reports something else would cause writes for ever."""
    looks, now, taken = DomainLooks(), 1000.0, 0
    while now < 1600.0:
        now += looks.next(now) or 0.0001
        taken += 1
    assert 100 + 55 <= taken <= 100 + 65


@pytest.mark.parametrize(("random", "seconds"), [(0.0, 270.0), (0.5, 300.0), (1.0, 330.0)])
def test_a_silent_domain_is_read_every_five_minutes(random: float, seconds: float) -> None:
    """Jitter spreads launchers that connected at the same time."""
    assert resync_pause(RESYNC_SECONDS, random) == pytest.approx(seconds)


def test_a_launcher_that_is_always_late_is_asked_ever_less_often() -> None:
    pauses, taken = LatePauses(), []
    for _unused in range(7):
        pauses.note(1000.0)
        taken.append(pauses.until - 1000.0)
    assert taken == [30, 60, 120, 240, 480, 600, 600]


def rests(rounds: int, **how: bool) -> list[float]:
    counted = Rounds()
    return [counted.next(**{"is_silent": False, "is_changed": False, **how}, took=0.1) for _unused in range(rounds)]


def test_agent_rounds_slow_down_to_the_usual_pause() -> None:
    assert rests(7) == [10, 20, 40, 80, 120, 120, 120]


def test_a_silent_or_always_changing_agent_is_asked_rarely() -> None:
    assert rests(6, is_silent=True) == [10, 20, 80, 320, 600, 600]
    assert rests(9, is_changed=True) == [10, 20, 40, 80, 120, 240, 480, 600, 600]


def test_a_slow_agent_gets_a_twentieth_of_the_time() -> None:
    assert Rounds().next(is_silent=False, is_changed=False, took=4) == 80
    assert Rounds().next(is_silent=False, is_changed=False, took=3600) == 600


def test_an_agent_is_asked_again_soon_after_two_silences_only() -> None:
    """A guest that boots on a busy node opens its channel long before it can answer."""
    counted = Rounds()
    assert [counted.next(is_silent=True, is_changed=False, took=10) for _unused in range(3)] == [10, 20, 200]
    counted.next(is_silent=False, is_changed=False, took=0.1)
    assert counted.next(is_silent=True, is_changed=False, took=10) == 120, "the pace of one that has long answered"
