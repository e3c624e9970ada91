# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run: the simulations of parts, then random steps, and rest at the end of every stretch. A failure says how to
repeat it.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.controlplane.simulation.comebacks import ReturnPlay
from tests.controlplane.simulation.guests import GuestPlay
from tests.controlplane.simulation.marks import MarkPlay
from tests.controlplane.simulation.moves import Moves
from tests.controlplane.simulation.sets import SetPlay
from tests.controlplane.simulation.settle import Settling
from tests.controlplane.simulation.transit import TransitPlay
from tests.controlplane.simulation.wires import WirePlay
from tests.controlplane.simulation.world import World
from tests.support.breach import Breach

STRETCH = 400
"""Steps between two settlements."""


class Failure(AssertionError):
    """A failed run: seed, step, violation and the last lines of the trace."""


class Simulation:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self._moves = Moves(self.world)
        self._settling = Settling(self.world, self._moves.mishaps)

    def run(self, steps: int) -> None:
        """Take random steps; from time to time end all faults and require that everything recovers."""
        try:
            self._guarded(lambda: WirePlay(self.world.seed).run(steps // 50))
            self._guarded(lambda: ReturnPlay(self.world.seed).run(min(6, 2 + steps // 2500)))
            self._guarded(lambda: GuestPlay(self.world.seed).run(min(8, 1 + steps // 1250)))
            self._guarded(lambda: SetPlay(self.world.seed).run(steps // 10))
            self._guarded(lambda: MarkPlay(self.world.seed).run(steps // 4))
            self._guarded(lambda: TransitPlay(self.world.seed).run(steps // 25))
            for number in range(1, steps + 1):
                self._guarded(self._moves.step)
                if number % STRETCH == 0 or number == steps:
                    self._guarded(self._settling.run)
                    self.world.draw_odds()
        finally:
            self.world.end()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Breach as breach:
            world = self.world
            trace = "\n  ".join(world.trace)
            where = f"seed {world.seed}, step {world.steps}; the last {len(world.trace)} steps"
            raise Failure(f"{breach}\n{where}:\n  {trace}") from breach
