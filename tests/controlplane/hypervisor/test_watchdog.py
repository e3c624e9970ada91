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
    """Counts looks, and ends with the last of these answers."""

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


def ends_at(one: Watchdog) -> str:
    """When the timer ends, as the kernel says it."""
    lines = Path(f"/proc/self/fdinfo/{one._timer}").read_text().splitlines()
    return next(line for line in lines if line.startswith("it_value"))


def test_what_is_under_way_is_looked_at_as_often_as_it_asks() -> None:
    one = Looked(0.0, 0.001, None)
    watchdog().begin(one, 0.0)
    assert one.is_over.wait(30)


def test_what_begins_later_and_is_due_sooner_is_not_kept_waiting() -> None:
    later, sooner = Looked(None), Looked(None)
    watchdog().begin(later, FAR)
    watchdog().begin(sooner, 0.001)
    assert sooner.is_over.wait(30)
    watchdog().end(later)
    assert not later.is_over.is_set()


def test_one_that_cannot_be_looked_at_costs_the_others_nothing(caplog: pytest.LogCaptureFixture) -> None:
    one = Looked(None)
    watchdog().begin(Failing(), 0.0)
    watchdog().begin(one, 0.001)
    assert one.is_over.wait(30)
    assert "cannot check a libvirt call" in caplog.text


def test_it_sleeps_while_nothing_is_under_way() -> None:
    """A process that does nothing is not to be woken."""
    made, one = Watchdog(), Looked(None)
    assert "(0, 0)" in ends_at(made)
    made.begin(one, FAR)
    assert "(0, 0)" not in ends_at(made)
    made.end(one)
    assert "(0, 0)" in ends_at(made)
    assert made._set_to == math.inf
