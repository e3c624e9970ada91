# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated virt-controller runs what its table lists."""

from __future__ import annotations

import random

import pytest

from tests.controlplane.simulation.controller import SIMULATED
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.controlplane.simulation.migrations.world import MigrationWorld
from tests.controlplane.stories.stage import Stage


@pytest.fixture(scope="module")
def ran() -> set[str]:
    """The controllers that run in any world."""
    ran: set[str] = set()
    for world in (MachineWorld(random.Random(1)), MigrationWorld(random.Random(1))):
        ran.update(*(controller.work for controller in world.controllers))
        world.end()
    with Stage() as stage:
        return ran.union(stage.controller.work)


@pytest.mark.parametrize("name", SIMULATED)
def test_a_world_runs_each_simulated_controller(name: str, ran: set[str]) -> None:
    assert name in ran, f"{name}: no world has all of its kinds: add them to one's tuple in tests/support/store.py"
