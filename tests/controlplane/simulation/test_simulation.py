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

from tests.controlplane.simulation.machines.scenario import MachineScenario
from tests.controlplane.simulation.migrations.scenario import MigrationScenario

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
    scenario = MachineScenario(seed)
    scenario.run(3_000)
    assert scenario.writes > 500, "a run that writes little proves little"
    assert scenario.faults.total() > 50


@LONG
@pytest.mark.parametrize("seed", range(5, 13))
def test_machines_survive_long_runs(seed: int) -> None:
    scenario = MachineScenario(seed)
    scenario.run(10_000)
    assert {"cut and force", "power", "relist", "second leader", "clock", "crash", "moment", "blind"} <= set(
        scenario.faults
    )
    assert len(scenario.phases) >= 9


@pytest.mark.parametrize("seed", range(1, 5))
def test_no_fault_loses_duplicates_or_strands_a_migrating_machine(seed: int) -> None:
    scenario = MigrationScenario(seed)
    scenario.run(1_200)
    assert {"migrations Succeeded", "migrations Failed"} <= set(scenario.phases)


@LONG
@pytest.mark.parametrize("seed", range(5, 18))
def test_migrations_survive_long_runs(seed: int) -> None:
    scenario = MigrationScenario(seed)
    scenario.run(6_250)
    assert min(scenario.phases["migrations Succeeded"], scenario.phases["migrations Failed"]) >= AT_LEAST


@pytest.mark.parametrize("kind", [MachineScenario, MigrationScenario])
def test_the_same_seed_gives_the_same_run(kind: Any) -> None:
    scenarios = [kind(5), kind(5)]
    for scenario in scenarios:
        scenario.run(400)
    first, second = ([(entry.key, entry.raw) for entry in scenario.world.store.history] for scenario in scenarios)
    assert first == second
