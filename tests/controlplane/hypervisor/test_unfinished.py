# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from controlplane.hypervisor import unfinished
from controlplane.hypervisor.unfinished import Unfinished
from controlplane.hypervisor.wire import Wire


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Unfinished:
    made = Unfinished(most=1000)
    monkeypatch.setattr(unfinished, "OF_PROCESS", made)
    return made


@pytest.mark.usefixtures("together")
def test_whoever_holds_most_is_cut_and_whoever_came_last_is_not() -> None:
    small, large, honest = Wire(), Wire(), Wire()
    small.took_in(400, 0.0)
    large.took_in(300, 0.0)
    large.took_in(250, 0.0)
    honest.took_in(100, 0.0)
    assert [one.because for one in (small, large, honest)] == ["", unfinished.TOO_MUCH, ""]
    honest.took_in(300, 0.0)
    assert [one.because for one in (small, large, honest)] == ["", unfinished.TOO_MUCH, ""], "there is room again"


def test_nothing_is_held_of_what_is_whole(together: Unfinished) -> None:
    """An event is told, or a call has ended, before what it read is counted to its end."""
    wire = Wire()
    for _unused in range(3):
        wire.took_in(600, 0.0)
        wire.completed()
        wire.took_in(300, 0.0)
        assert together.held == 0
        with wire.at_work():
            wire.took_in(600, 0.0)
            assert together.held == 600
        wire.took_in(300, 0.0)
        assert together.held == 0
    assert not wire.because


def test_an_ended_connection_holds_nothing(together: Unfinished) -> None:
    wire = Wire()
    wire.took_in(600, 0.0)
    wire.detach(7)
    assert together.held == 0


def test_what_comes_while_a_connection_is_closed_is_held_by_nobody(together: Unfinished) -> None:
    """It is counted when the thread that closed it has ended, and so after its end."""
    wire = Wire()
    wire.retire(0.0)
    wire.took_in(600, 0.0)
    assert together.held == 0
