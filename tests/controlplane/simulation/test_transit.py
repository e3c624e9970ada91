# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every bug planted in what moves machines is caught, and each play can be had again. transit_long: what is played."""

from __future__ import annotations

import pytest

from tests.controlplane.simulation.planted_migrations import PLANTED, SELDOM, failure_of
from tests.controlplane.simulation.transit import TransitPlay
from tests.controlplane.simulation.transit_long import silence

__all__ = ("silence",)

BUG_SEEDS = range(1, 9)
"""Not picked: one after the other, until one finds it."""
BUG_STEPS = 2_400


def test_the_same_seed_gives_the_same_play() -> None:
    plays = [TransitPlay(5) for _unused in range(2)]
    for one in plays:
        one.run(500)
    first, second = ([(entry.key, entry.raw) for entry in one.world.store.history] for one in plays)
    assert first == second


@pytest.mark.parametrize("name", list(SELDOM))
def test_a_bug_that_few_seeds_find_can_be_planted_still(name: str) -> None:
    failure_of(SELDOM[name], seed=1, steps=100)


@pytest.mark.parametrize("name", list(PLANTED))
def test_a_bug_in_what_moves_a_guest_is_caught(name: str) -> None:
    """One of the first seeds finds it, and the message says how far to repeat it."""
    found = next(filter(None, (failure_of(PLANTED[name], seed, BUG_STEPS) for seed in BUG_SEEDS)), "no seed found it")
    assert "(transit, seed " in found, found
