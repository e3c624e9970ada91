# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real control plane under random faults: no invariant is violated and nothing stays stuck."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.controlplane.simulation.machines.play import MachinePlay
from tests.controlplane.simulation.migrations.play import MigrationPlay

LONG = pytest.mark.nightly
AT_LEAST = 10
"""Migrations of each outcome in a long run: events that never happen prove little."""


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


@pytest.mark.parametrize("seed", range(1, 5))
def test_machines_start_and_stop_safely(seed: int) -> None:
    play = MachinePlay(seed)
    play.run(3_000)
    assert play.writes > 500, "a run that writes little proves little"
    assert play.faults.total() > 50


@LONG
@pytest.mark.parametrize("seed", range(5, 13))
def test_machines_survive_long_runs(seed: int) -> None:
    play = MachinePlay(seed)
    play.run(10_000)
    assert {"cut and force", "power", "relist", "second leader", "clock", "crash", "moment", "blind"} <= set(
        play.faults
    )
    assert len(play.phases) >= 9


@pytest.mark.parametrize("seed", range(1, 5))
def test_no_fault_loses_duplicates_or_strands_a_migrating_machine(seed: int) -> None:
    play = MigrationPlay(seed)
    play.run(1_200)
    assert {"migrations Succeeded", "migrations Failed"} <= set(play.phases)


@LONG
@pytest.mark.parametrize("seed", range(5, 18))
def test_migrations_survive_long_runs(seed: int) -> None:
    play = MigrationPlay(seed)
    play.run(6_250)
    assert min(play.phases["migrations Succeeded"], play.phases["migrations Failed"]) >= AT_LEAST


@pytest.mark.parametrize("kind", [MachinePlay, MigrationPlay])
def test_the_same_seed_gives_the_same_run(kind: Any) -> None:
    plays = [kind(5), kind(5)]
    for play in plays:
        play.run(400)
    first, second = ([(entry.key, entry.raw) for entry in play.world.store.history] for play in plays)
    assert first == second
