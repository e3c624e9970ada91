# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of machines that start, stop and fail on two nodes."""

from __future__ import annotations

import random

from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.configuration import FURTHER_ATTEMPTS, Configuration
from tests.controlplane.simulation.kubernetes import schedule
from tests.controlplane.simulation.ledger import Ledger
from tests.controlplane.simulation.machines.odds import Odds
from tests.controlplane.simulation.machines.oracles import Oracles
from tests.controlplane.simulation.machines.people import People
from tests.controlplane.simulation.world import NAMES, World
from tests.support.store import RESOURCES


class MachineWorld(World):
    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, nodes=2, resources=RESOURCES, configuration=Configuration(FURTHER_ATTEMPTS))
        self.ledger = Ledger()
        self.people = People(self.store, rng, NAMES, self.ledger)
        self.oracles = Oracles(self.store, self.nodes, self.ledger)
        self.odds = Odds(rng)
        self.draw_odds()
        self.begin()

    def draw_odds(self) -> None:
        self.odds.draw()
        self.people.draw_odds()

    def leaders_changed(self) -> None:
        is_one = len(self.controllers) == 1
        self.oracles.is_one_leader_since = self.store.version + 1 if is_one else 1 << 60

    def schedule(self, chance: float = 0.0) -> str | None:
        return schedule(self.store, self.rng, chance)

    def check_invariants(self, view: View) -> None:
        self.oracles.now = self.true.seconds
        self.oracles.check(view)
        for controller in self.controllers:
            for vm_uid in controller.recorded.take_dropped():
                self.ledger.dropped(vm_uid)
