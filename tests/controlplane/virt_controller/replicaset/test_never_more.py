# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random plays against a replica set. The checks are in simulation.sets; a failure names its seed."""

from __future__ import annotations

import pytest

from tests.controlplane.simulation.sets import SetPlay

SEEDS = 60
STEPS = 250


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_no_surplus_is_created_and_no_wanted_vmi_deleted(seed: int) -> None:
    SetPlay(seed).run(STEPS)


def test_a_name_that_was_created_again_unseen_is_confirmed_before_the_next_batch() -> None:
    """The response was lost, and the cache shows the old, final member."""
    SetPlay(500115).run(1000)


def test_an_alive_member_in_an_old_cache_is_confirmed_before_the_next_batch() -> None:
    """The next batch began, and then the watch showed that the member was final."""
    SetPlay(7312703).run(1000)


def test_the_seeds_create_and_end_vmis() -> None:
    """Otherwise the plays prove nothing."""
    plays = [SetPlay(seed) for seed in range(1, 9)]
    for play in plays:
        for _unused in range(STEPS):
            play.step()
    assert sum(play.made for play in plays) > 10
    assert sum(len(play.ended) for play in plays) > 5
