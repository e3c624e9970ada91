# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated world: all parts, the records about them, and the path of a call with its checks.

moves: the random steps. settle: the end of a stretch. Everything comes from one seed; the trace explains a failed run.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable

from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.configuration import FURTHER_ATTEMPTS, Configuration
from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import schedule as place
from tests.controlplane.simulation.ledger import Ledger
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.oracles import NOBODY, Oracles
from tests.controlplane.simulation.people import People
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.swarm import Odds
from tests.support.breach import Breach
from tests.support.calls import Fate
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import Store

TRACE_LINES = 80
NAMES = ("web", "mail.example")
OFFSETS = (0.0, 0.0, 0.0, -3600.0, -5.0, 5.0, 90.0, 3600.0)
"""The errors of machines' clocks, in seconds."""


class World:
    """All parts, and the records about them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.true = SimulatedClock()
        self.store = Store(self.true)
        self.configuration = Configuration(FURTHER_ATTEMPTS)
        self.ledger = Ledger()
        self.nodes = [Node(name, self.store, self.true, self.rng) for name in ("node-1", "node-2")]
        self.people = People(self.store, self.rng, NAMES, self.ledger)
        self.oracles = Oracles(self.store, self.nodes, self.ledger)
        self.odds = Odds(self.rng)
        self.controllers: list[Controller] = []
        self.handlers: dict[str, Handler] = {}
        self.steps = 0
        self.faults: Counter[str] = Counter()
        self.coverage: Counter[tuple[str, str, str]] = Counter()
        """Phase changes by the fault before them."""
        self._fault = "none"
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self._started = 0
        self.draw_odds()
        self.start_controller()
        for node in self.nodes:
            self.start_handler(node)

    def draw_odds(self) -> None:
        self.odds.draw()
        self.people.draw_odds()

    def note(self, text: str) -> None:
        self.steps += 1
        if text:
            self.trace.append(f"{self.steps:6} {text}")

    def fault(self, kind: str) -> None:
        self.faults[kind] += 1
        self._fault = kind

    def after_step(self) -> None:
        """Check what this step did and no call has checked."""
        self._check()
        for controller in (*self.controllers, *self.handlers.values()):
            if controller.broken_promises:
                raise Breach(f"promise: {controller.name}: {controller.broken_promises[0]}")
            if controller.bugs:
                raise Breach(f"bug: {controller.name}: {controller.bugs[0]}")

    def end(self) -> None:
        """End all processes."""
        for process in self.processes():
            process.die(None, is_request_out=False)

    def look_for_undone(self) -> None:
        """Check that no process has lost its pending work."""
        for process in self.processes():
            process.look_for_undone()

    def processes(self) -> list[Process]:
        return [*self.controllers, *(handler for handler in self.handlers.values() if not handler.is_dead)]

    def carry(
        self,
        one: Process,
        index: int,
        fate: Fate,
        meanwhile: Callable[[], None] = lambda: None,
        *,
        is_late: bool = False,
    ) -> str:
        """Let a call of a process meet its fate; check its write against the view of the process."""
        call, view = one.passes[index].call, one.passes[index].view
        was_done = one.passes[index].came is not None
        one.carry_out(index, fate, meanwhile, is_late=is_late)
        self._check(view)
        if was_done:
            return f"{one.name}: has its answer to {call}"
        return f"{one.name}: {call}" + ("" if fate == "done" else f" ({fate})") + (", not answered yet" * is_late)

    def start_controller(self) -> None:
        self._started += 1
        clock = WrongClock(self.true, self.rng.choice(OFFSETS), self.true.seconds - self.rng.choice((10.0, 1e6)))
        self.store.actor = "controller"
        name = f"controller-{self._started}"
        self.controllers.append(Controller(name, self.store, clock, self.rng, self.configuration))

    def start_handler(self, node: Node) -> None:
        self.handlers[node.name] = Handler(node, self.store, self.rng)

    def schedule(self, chance: float = 0.0) -> str | None:
        return place(self.store, self.rng, chance)

    def _check(self, view: View = NOBODY) -> None:
        self.oracles.now = self.true.seconds
        seen = self.oracles.phases_seen.total()
        self.oracles.check(view)
        for controller in self.controllers:
            for vm_uid in controller.told.take_dropped():
                self.ledger.dropped(vm_uid)
        if self.oracles.phases_seen.total() != seen:
            self.coverage[(*self.oracles.last_phases, self._fault)] += 1
