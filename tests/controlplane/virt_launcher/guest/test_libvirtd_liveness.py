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


def test_libvirtd_is_hung_after_fifteen_silent_seconds() -> None:
    time = Time()
    liveness = LibvirtdLiveness(time)
    time.seconds += 10
    liveness.answered()
    time.seconds += 14.9
    assert liveness.seconds_left() > 0
    time.seconds += 0.1
    assert liveness.seconds_left() <= 0


def test_the_timeout_doubles_until_a_libvirtd_answers() -> None:
    """On a node too slow for the timeout, every libvirtd would be killed."""
    liveness, timeouts = LibvirtdLiveness(Time()), []
    for _unused in range(5):
        timeouts.append(liveness.seconds_left())
        liveness.killed()
    liveness.answered()
    assert [*timeouts, liveness.seconds_left()] == [15, 30, 60, 120, 120, 15]


def test_a_killed_libvirtd_leaves_its_successor_the_whole_timeout() -> None:
    time = Time()
    liveness = LibvirtdLiveness(time)
    time.seconds += 40
    liveness.killed()
    assert liveness.seconds_left() == 30


def test_an_idle_libvirtd_is_pinged_ten_seconds_after_its_last_answer() -> None:
    time = Time()
    liveness = LibvirtdLiveness(time)
    time.seconds += 4
    liveness.answered()
    time.seconds += 9
    assert liveness.seconds_to_ping() == 1
    time.seconds += 1
    assert liveness.seconds_to_ping() == 0
