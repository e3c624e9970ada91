# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness


class Time:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_libvirtd_is_hung_when_it_was_silent_for_fifteen_seconds() -> None:
    time = Time()
    liveness = LibvirtdLiveness(time)
    time.seconds += 10
    liveness.answered()
    time.seconds += 14.9
    assert liveness.seconds_left() > 0
    time.seconds += 0.1
    assert liveness.seconds_left() <= 0


def test_a_new_libvirtd_has_ever_more_time_until_one_answers() -> None:
    """On a node that is too slow for any, killing them would be all that happens."""
    liveness, given = LibvirtdLiveness(Time()), []
    for _unused in range(5):
        given.append(liveness.seconds_left())
        liveness.killed()
    liveness.answered()
    assert [*given, liveness.seconds_left()] == [15, 30, 60, 120, 120, 15]


def test_one_that_was_given_up_takes_nothing_of_the_next_ones_time() -> None:
    time = Time()
    liveness = LibvirtdLiveness(time)
    time.seconds += 40
    liveness.killed()
    assert liveness.seconds_left() == 30


def test_an_idle_libvirtd_is_asked_ten_seconds_after_its_last_answer() -> None:
    time = Time()
    liveness = LibvirtdLiveness(time)
    time.seconds += 4
    liveness.answered()
    time.seconds += 9
    assert liveness.seconds_to_ping() == 1
    time.seconds += 1
    assert liveness.seconds_to_ping() == 0
