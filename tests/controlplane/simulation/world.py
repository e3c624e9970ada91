# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The random schedule: who moves next, which faults strike, and the fair end in which everything must come right.

Each stretch draws its own weights (a swarm), so that combinations that are rare together occur in some run. Everything
comes from one seed; the trace of a failed run is its explanation.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from itertools import accumulate

from controlplane.api.objects.resources import POD, Resource
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.controller import Controller, Fate, Reconcilers, real_reconcilers
from tests.controlplane.simulation.fair import fair_round
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.oracles import Breach, Oracles, check_delete, stuck
from tests.controlplane.simulation.people import People
from tests.controlplane.simulation.store import RESOURCES, Store

TRACE_LINES = 80
FAIR_ROUNDS = 3000
SLOW_DELIVERY = 0.02
"""How often a watch that is slow in this stretch delivers when its turn comes."""
NAMES = ("web", "db", "mail.example")


USUAL = {
    "deliver": 30.0,
    "begin": 15.0,
    "carry out": 25.0,
    "kubelet": 15.0,
    "handler": 12.0,
    "schedule": 8.0,
    "collect": 4.0,
    "people": 1.2,
    "time": 2.0,
    "guest": 0.4,
    "crash": 0.4,
    "second leader": 0.3,
    "cut": 0.12,
    "heal": 0.5,
    "power": 0.08,
    "handler down": 0.12,
}
"""How often who moves, before each stretch multiplies it by chance."""


class Failure(AssertionError):
    """A run that went wrong: seed, step, breach and the last lines of the trace."""


class Simulation:
    def __init__(self, seed: int, build: Reconcilers = real_reconcilers) -> None:
        self.seed = seed
        self._rng = random.Random(seed)
        self._build = build
        self._clock = SimulatedClock()
        self._trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.store = Store(self._clock)
        self.nodes = [Node(name, self.store, self._clock, self._rng) for name in ("node-1", "node-2")]
        self.people = People(self.store, self._rng, NAMES)
        self.oracles = Oracles(self.store, self.nodes)
        self.steps = 0
        self.faults = 0
        self.controllers: list[Controller] = []
        self._started = 0
        self._moves = self._list_moves()
        self._names = tuple(USUAL)
        self._cumulative: list[float] = []
        self._fault_rate = 0.0
        self._slow: Resource | None = None
        self._draw_odds()
        self._start_controller()

    def run(self, steps: int, *, settle_every: int = 1000) -> None:
        """Take random steps; every so often end all faults and require that everything comes right."""
        for number in range(1, steps + 1):
            self._guarded(self._random_step)
            if number % settle_every == 0 or number == steps:
                self._guarded(self._settle)
                self._draw_odds()

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Breach as breach:
            trace = "\n  ".join(self._trace)
            text = f"{breach}\nseed {self.seed}, step {self.steps}; the last {len(self._trace)} steps:\n  {trace}"
            raise Failure(text) from breach

    def _draw_odds(self) -> None:
        self._fault_rate = self._rng.choice((0.0, 0.02, 0.1, 0.3))
        self._slow = self._rng.choice((None, None, *RESOURCES))
        self._cumulative = list(accumulate(one * self._rng.choice((0.2, 1.0, 1.0, 3.0)) for one in USUAL.values()))

    def _random_step(self) -> None:
        """Let somebody move who can."""
        text: str | None = None
        while text is None:
            text = self._moves[self._rng.choices(self._names, cum_weights=self._cumulative)[0]]()
        self._note(text)
        self._after_step()

    def _list_moves(self) -> dict[str, Callable[[], str | None]]:
        return {
            "deliver": self._deliver,
            "begin": self._begin,
            "carry out": self._carry_out,
            "kubelet": self._kubelet,
            "handler": self._handler,
            "schedule": self._schedule,
            "collect": lambda: "garbage collector" if self.store.collect_garbage() else None,
            "people": self._people,
            "time": self._time,
            "guest": self._guest,
            "crash": self._crash,
            "second leader": self._second_leader,
            "cut": self._cut,
            "heal": self._heal,
            "power": self._power,
            "handler down": self._handler_down,
        }

    def _note(self, text: str) -> None:
        self.steps += 1
        if text:
            self._trace.append(f"{self.steps:6} {text}")

    def _after_step(self) -> None:
        self.oracles.check()
        for one in self.controllers:
            if one.bugs:
                raise Breach(f"bug: {one.bugs[0]}")

    def _start_controller(self) -> None:
        self._started += 1
        name = f"controller-{self._started}"
        self.controllers.append(Controller(name, self.store, self._clock, self._rng, self._build))

    def _any_controller(self) -> Controller:
        return self._rng.choice(self.controllers)

    def _deliver(self) -> str | None:
        behind = [
            cache
            for one in self.controllers
            for resource, cache in one.caches.items()
            if cache.is_behind and (resource != self._slow or self._rng.random() < SLOW_DELIVERY)
        ]
        if not behind:
            return None
        self._rng.choice(behind).advance()
        return ""

    def _people(self) -> str | None:
        done = self.people.act()
        return None if done == "nothing" else f"user: {done}"

    def _begin(self) -> str | None:
        return "" if self._any_controller().begin(self._rng.choice(("vm", "vmi"))) else None

    def _carry_out(self) -> str | None:
        one = self._any_controller()
        if not one.passes:
            return None
        fate: Fate = "done"
        if self._rng.random() < self._fault_rate:
            fate = self._rng.choice(("request lost", "answer lost"))
            self.faults += 1
        return self._carry(one, self._rng.randrange(len(one.passes)), fate)

    def _carry(self, one: Controller, index: int, fate: Fate) -> str:
        call = one.passes[index].call
        if call.verb == "delete" and fate != "request lost":
            self._check_delete(call.resource.kind, one, index)
        one.carry_out(index, fate)
        return f"{one.name}: {call}" + ("" if fate == "done" else f" ({fate})")

    def _check_delete(self, kind: str, one: Controller, index: int) -> None:
        """Only a delete whose preconditions hold takes effect; try it on the real store by its own rules."""
        before = self.store.version
        call = one.passes[index].call
        snapshot = self.store.would_accept(call.run)
        assert before == self.store.version
        if snapshot:
            check_delete(self.store, kind, call.key)

    def _kubelet(self) -> str | None:
        node = self._rng.choice(self.nodes)
        due = node.kubelet_steps()
        if not due:
            return None
        key, uid = self._rng.choice(due)
        node.kubelet_step(key, uid)
        return f"{node.name} kubelet: {key}"

    def _handler(self) -> str | None:
        node = self._rng.choice(self.nodes)
        due = node.handler_steps()
        if not due:
            return None
        uid = self._rng.choice(due)
        launcher = node.launchers.get(uid)
        node.handler_step(uid)
        if launcher is None:
            return f"{node.name} handler: nothing is left of Pod {uid}"
        return f"{node.name} handler: {launcher.vmi} domain {launcher.domain or 'none'}"

    def _schedule(self) -> str | None:
        waiting = [(key, body) for key, body in self.store.list(POD) if "nodeName" not in body["spec"]]
        if not waiting:
            return None
        key, body = self._rng.choice(waiting)
        if self._rng.random() < 0.2:
            refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"}
            self.store.set_pod(key, body["metadata"]["uid"], status={"phase": "Pending", "conditions": [refused]})
            return f"scheduler: {key} does not fit"
        node = self._rng.choice(self.nodes)
        self.store.set_pod(key, body["metadata"]["uid"], node=node.name)
        return f"scheduler: {key} to {node.name}"

    def _time(self) -> str | None:
        self._clock.advance(self._rng.choice((0.01, 0.1, 1.0, 10.0, 60.0)))
        return ""

    def _guest(self) -> str | None:
        guests = [(node, one) for node in self.nodes for one in node.guests()]
        if not guests:
            return None
        node, one = self._rng.choice(guests)
        node.end_guest(one, self._rng.choice(("shut down", "crashed")))
        return f"guest {one.vmi}: {one.domain}"

    def _crash(self) -> str | None:
        one = self._any_controller()
        index = self._rng.randrange(len(one.passes)) if one.passes else None
        one.die(index, is_request_out=self._rng.random() < 0.5)
        self.controllers.remove(one)
        self.faults += 1
        if not self.controllers:
            self._start_controller()
        return f"{one.name}: crash"

    def _second_leader(self) -> str | None:
        """A new leader while the old one does not know yet: both act until one crashes."""
        if len(self.controllers) > 1:
            return None
        self._start_controller()
        self.faults += 1
        return f"{self.controllers[-1].name}: leads as well"

    def _cut(self) -> str | None:
        node = self._rng.choice(self.nodes)
        node.is_cut_off = True
        self.faults += 1
        return f"{node.name}: cut off"

    def _heal(self) -> str | None:
        node = self._rng.choice(self.nodes)
        node.is_cut_off = node.handler_is_down = False
        return f"{node.name}: healed"

    def _power(self) -> str | None:
        node = self._rng.choice(self.nodes)
        node.lose_power()
        self.faults += 1
        return f"{node.name}: loses power"

    def _handler_down(self) -> str | None:
        node = self._rng.choice(self.nodes)
        node.handler_is_down = True
        return f"{node.name}: handler down"

    def _settle(self) -> None:
        """End all faults, keep one leader, be fair to everybody: everything must come right and then stay still."""
        self._note("faults end")
        for node in self.nodes:
            node.is_cut_off = node.handler_is_down = False
        for old in self.controllers[:-1]:
            old.die(None, is_request_out=False)
        del self.controllers[:-1]
        self.people.settle(self._rng.choice(("Always", "Always", "Halted")))
        for _unused in range(FAIR_ROUNDS):
            if not self._fair_round() and not self._wait_for_alarm():
                break
        else:
            raise Breach(f"nothing stuck: it does not come to rest: {stuck(self.store)}")
        found = stuck(self.store)
        if found:
            raise Breach("nothing stuck: " + "; ".join(found))

    def _fair_round(self) -> bool:
        one = self.controllers[0]
        moved = fair_round(self.store, one, self.nodes, carry=lambda: self._carry_fairly(one), schedule=self._schedule)
        self._after_step()
        return moved

    def _carry_fairly(self, one: Controller) -> None:
        self._note(self._carry(one, 0, "done"))
        self._after_step()

    def _wait_for_alarm(self) -> bool:
        """Pass the time to the next alarm, unless nothing would ever come of it."""
        due = self.controllers[0].next_due()
        if due is None or (not stuck(self.store) and due - self._clock.monotonic() > 0):
            return False
        self._clock.advance(max(0.0, due - self._clock.monotonic()))
        return True
