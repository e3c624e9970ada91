# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that start, stop and fail: random steps, and rest at the end of every stretch."""

from __future__ import annotations

import random
from collections import Counter

from tests.controlplane.simulation.machines.moves import Moves
from tests.controlplane.simulation.machines.settle import Settling
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.support.breach import Breach

STRETCH = 400
"""Steps between two settlements."""


class MachineScenario:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.world = MachineWorld(random.Random(seed))
        self._moves = Moves(self.world)
        self._settling = Settling(self.world, self._moves.mishaps)

    @property
    def steps(self) -> int:
        return self.world.steps

    @property
    def writes(self) -> int:
        return self.world.store.version

    @property
    def faults(self) -> Counter[str]:
        return self.world.faults

    @property
    def phases(self) -> Counter[str]:
        """Return the number of phase changes of VMIs."""
        return self.world.oracles.phases_seen

    def run(self, steps: int) -> None:
        """Take random steps; from time to time end all faults and require that everything recovers. Raises Breach."""
        world = self.world
        try:
            for number in range(1, steps + 1):
                self._moves.step()
                if number % STRETCH == 0 or number == steps:
                    self._settling.run()
                    world.draw_odds()
        except Breach as breach:
            trace = "\n  ".join(world.trace)
            raise Breach(f"{breach}\n  {trace}\n(machines, seed {self.seed}, step {world.steps})") from breach
        finally:
            world.end()
