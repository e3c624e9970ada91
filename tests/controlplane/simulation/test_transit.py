# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrating machines survive every fault on their way: 10^5 steps."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.controlplane.simulation.transit import TransitPlay

STEPS = 6_250
SEEDS = [*range(1, 6), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(6, 17))]
"""About twenty CPU seconds each."""
AT_LEAST = 10
"""Of each end, and of the faults at critical places: events that never happen prove little."""


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Refusals are expected here; thousands of log records about them are noise."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_fault_loses_duplicates_or_strands_a_machine(seed: int) -> None:
    play = TransitPlay(seed)
    play.run(STEPS)
    assert min(play.outcomes["Succeeded"], play.outcomes["Failed"]) >= AT_LEAST
    assert sum(play.struck.values()) >= AT_LEAST


def test_the_same_seed_gives_the_same_run() -> None:
    plays = [TransitPlay(5) for _unused in range(2)]
    for play in plays:
        play.run(500)
    first, second = ([(entry.key, entry.raw) for entry in play.world.store.history] for play in plays)
    assert first == second
