# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that move survive whatever goes wrong on their way; every bug planted in what moves them is caught."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.controlplane.simulation.planted_migrations import PLANTED, failure_of
from tests.controlplane.simulation.transit import TransitPlay

SEEDS = range(1, 7)
STEPS = 6_000
"""Of each seed: about five seconds of a processor."""
BUG_SEEDS = range(1, 9)
"""Not picked: one after the other, until one finds it."""
BUG_STEPS = 2_400


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Refusals are the point here; thousands of log records about them are not."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_machine_is_lost_doubled_or_left_standing_by_moving_it(seed: int) -> None:
    play = TransitPlay(seed)
    play.run(STEPS)
    assert play.outcomes["Succeeded"] >= 10, "who never arrives proves little"
    assert play.outcomes["Failed"] >= 10
    assert sum(play.struck.values()) > 10


def test_the_same_seed_gives_the_same_play() -> None:
    plays = [TransitPlay(5) for _unused in range(2)]
    for one in plays:
        one.run(500)
    first, second = ([(entry.key, entry.raw) for entry in one.world.store.history] for one in plays)
    assert first == second


@pytest.mark.parametrize("name", list(PLANTED))
def test_a_bug_in_what_moves_a_guest_is_caught(name: str) -> None:
    """One of the first seeds finds it, and the message says how far to repeat it."""
    found = next(filter(None, (failure_of(PLANTED[name], seed, BUG_STEPS) for seed in BUG_SEEDS)), "no seed found it")
    assert "(transit, seed " in found, found
