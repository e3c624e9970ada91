# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chance against a set, sixty seeds of it. What is judged is in simulation.sets; a failure names its seed."""

from __future__ import annotations

import pytest

from tests.controlplane.simulation.sets import SetPlay

SEEDS = 60
STEPS = 250


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_never_more_are_made_nor_deleted_than_are_wanted(seed: int) -> None:
    SetPlay(seed).run(STEPS)


def test_a_name_that_is_used_again_unseen_is_asked_for_before_the_next_batch() -> None:
    """Found by chance: its answer was lost, and the cache showed the one before, which was over."""
    SetPlay(500115).run(1000)


def test_so_is_one_that_the_cache_still_shows_as_it_was_while_it_counted() -> None:
    """Found by chance: the next batch would begin by it, and then it was heard to be over."""
    SetPlay(7312703).run(1000)


def test_chance_makes_enough_happen() -> None:
    """The seeds make instances and end some, or they prove nothing."""
    plays = [SetPlay(seed) for seed in range(1, 9)]
    for play in plays:
        for _unused in range(STEPS):
            play.step()
    assert sum(play.made for play in plays) > 10
    assert sum(len(play.ended) for play in plays) > 5
