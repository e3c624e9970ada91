# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated world: a store, nodes and processes, and the path of a call with its checks.

machines and migrations add users, faults and invariants. Everything comes from one seed; the trace explains a failed
run.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable

from controlplane.api.objects.resources import Resource
from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.configuration import Configuration
from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.support.breach import Breach
from tests.support.calls import Fate
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import Store

TRACE_LINES = 100
NAMES = ("web", "mail.example")
"""Of the machines."""
OFFSETS = (0.0, 0.0, 0.0, -3600.0, -5.0, 5.0, 90.0, 3600.0)
"""The errors of clocks, in seconds."""
NOBODY = View()


class World:
    def __init__(
        self,
        rng: random.Random,
        *,
        nodes: int,
        resources: tuple[Resource, ...],
        configuration: Configuration,
        kind: type[Launcher] = Launcher,
    ) -> None:
        """kind: the class of launchers."""
        self.rng = rng
        self.true = SimulatedClock()
        self.store = Store(self.true, resources)
        self.configuration = configuration
        names = (f"node-{number}" for number in range(1, nodes + 1))
        self.nodes = [Node(name, self.store, self.true, rng, kind=kind) for name in names]
        self.controllers: list[Controller] = []
        self.handlers: dict[str, Handler] = {}
        self.steps = 0
        self.faults: Counter[str] = Counter()
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self._started = 0

    def begin(self) -> None:
        self.start_controller()
        for node in self.nodes:
            self.start_handler(node)

    def check_invariants(self, view: View) -> None:
        """Raise Breach when an invariant is violated. view: the state of the writer of this step."""
        raise NotImplementedError

    def new_controller(self, name: str, clock: WrongClock) -> Controller:
        return Controller(name, self.store, clock, self.rng, self.configuration)

    def new_handler(self, node: Node) -> Handler:
        return Handler(node, self.store, self.rng)

    def start_controller(self) -> None:
        self._started += 1
        clock = WrongClock(self.true, self.rng.choice(OFFSETS), self.true.seconds - self.rng.choice((10.0, 1e6)))
        self.store.actor = "controller"
        self.controllers.append(self.new_controller(f"controller-{self._started}", clock))

    def start_handler(self, node: Node) -> None:
        self.handlers[node.name] = self.new_handler(node)

    def processes(self) -> list[Process]:
        return [*self.controllers, *(handler for handler in self.handlers.values() if not handler.is_dead)]

    def reachable(self) -> list[Process]:
        """List the processes that can receive events from the API server."""
        return [process for process in self.processes() if not is_unreachable(process)]

    def keep_one_leader(self) -> None:
        for old in self.controllers[:-1]:
            old.die(None, is_request_out=False)
        del self.controllers[:-1]
        self.leaders_changed()

    def leaders_changed(self) -> None:
        """Record that another set of virt-controllers acts as the leader."""

    def note(self, text: str | None) -> None:
        self.steps += 1
        if text:
            self.trace.append(f"{self.steps:6} {text}")

    def fault(self, kind: str) -> None:
        self.faults[kind] += 1

    def carry(
        self,
        process: Process,
        index: int,
        fate: Fate,
        meanwhile: Callable[[], None] = lambda: None,
        *,
        is_late: bool = False,
    ) -> str:
        """Let a call of a process meet its fate; check its write against the view of the process."""
        call, view = process.passes[index].call, process.passes[index].view
        was_done = process.passes[index].came is not None
        process.carry_out(index, fate, meanwhile, is_late=is_late)
        self.check(view)
        if was_done:
            return f"{process.name}: gets the response to {call}"
        return f"{process.name}: {call}" + ("" if fate == "done" else f" ({fate})") + (", response is late" * is_late)

    def check(self, view: View = NOBODY) -> None:
        """Raise Breach when an invariant or a precondition is violated, or a process has a bug."""
        self.check_invariants(view)
        everybody: Iterable[Process] = (*self.controllers, *self.handlers.values())
        for process in everybody:
            if process.unmet_preconditions:
                raise Breach(f"precondition: {process.name}: {process.unmet_preconditions[0]}")
            if process.bugs:
                raise Breach(f"bug: {process.name}: {process.bugs[0]}")

    def look_for_undone(self) -> None:
        """Check that no process has lost its pending work."""
        for process in self.processes():
            process.look_for_undone()
        self.check()

    def end(self) -> None:
        """End all processes."""
        for process in self.processes():
            process.die(None, is_request_out=False)


def is_unreachable(process: Process) -> bool:
    return isinstance(process, Handler) and process.node.is_unreachable
