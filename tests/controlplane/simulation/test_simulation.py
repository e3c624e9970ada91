# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real control plane under random faults: no invariant is violated and nothing stays stuck."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from tests.controlplane.simulation.run import Simulation

SEEDS = [*range(1, 5), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(5, 11))]
"""Of 10,000 steps each."""


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    """Refusals are expected here; thousands of log records about them are noise."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def _no_threads() -> Iterator[None]:
    """A thread left over by a run would wake in every later test of this process."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("seed", SEEDS)
def test_no_invariant_is_violated_and_nothing_stays_stuck(seed: int) -> None:
    simulation = Simulation(seed)
    simulation.run(10_000)
    world = simulation.world
    assert world.store.version > 1000, "a run that writes little proves little"
    assert world.faults.total() > 100
    assert {"cut and force", "power", "relist", "second leader", "clock", "crash", "moment", "blind"} <= set(
        world.faults
    )
    assert len(world.oracles.phases_seen) >= 9


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [Simulation(5) for _unused in range(2)]
    for run in runs:
        run.run(1_500)
    first, second = ([(entry.key, entry.raw) for entry in run.world.store.history] for run in runs)
    assert first == second
