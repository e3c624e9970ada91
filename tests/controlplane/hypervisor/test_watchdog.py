# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import math
import threading
from pathlib import Path

import pytest

from controlplane.hypervisor.watchdog import Watchdog, watchdog

FAR = 3600.0


class Looked:
    """Returns these answers in order and sets `is_over` with the last."""

    def __init__(self, *answers: float | None) -> None:
        self._answers = list(answers)
        self.is_over = threading.Event()

    def look(self) -> float | None:
        answer = self._answers.pop(0)
        if not self._answers:
            self.is_over.set()
        return answer


class Failing:
    def look(self) -> float | None:
        raise RuntimeError("oops")


def ends_at(timer: Watchdog) -> str:
    """Return when the timer ends, as the kernel shows it."""
    lines = Path(f"/proc/self/fdinfo/{timer._timer}").read_text().splitlines()
    return next(line for line in lines if line.startswith("it_value"))


def test_work_is_looked_at_as_often_as_it_requests() -> None:
    work = Looked(0.0, 0.001, None)
    watchdog().begin(work, 0.0)
    assert work.is_over.wait(30)


def test_later_work_that_is_due_sooner_is_looked_at_first() -> None:
    later, sooner = Looked(None), Looked(None)
    watchdog().begin(later, FAR)
    watchdog().begin(sooner, 0.001)
    assert sooner.is_over.wait(30)
    watchdog().end(later)
    assert not later.is_over.is_set()


def test_a_failing_look_does_not_affect_others(caplog: pytest.LogCaptureFixture) -> None:
    work = Looked(None)
    watchdog().begin(Failing(), 0.0)
    watchdog().begin(work, 0.001)
    assert work.is_over.wait(30)
    assert "cannot check a libvirt call" in caplog.text


def test_the_timer_is_off_while_no_work_is_under_way() -> None:
    """An idle process must not be woken."""
    idle_watchdog, work = Watchdog(), Looked(None)
    assert "(0, 0)" in ends_at(idle_watchdog)
    idle_watchdog.begin(work, FAR)
    assert "(0, 0)" not in ends_at(idle_watchdog)
    idle_watchdog.end(work)
    assert "(0, 0)" in ends_at(idle_watchdog)
    assert idle_watchdog._set_to == math.inf
