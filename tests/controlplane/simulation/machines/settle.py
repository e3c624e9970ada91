# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a stretch: all faults end but perhaps one dead node, and everything must recover and then stay still."""

from __future__ import annotations

from controlplane.api.objects.resources import LEASE
from tests.controlplane.simulation.fair import fair_round
from tests.controlplane.simulation.machines.afresh import work_found_afresh
from tests.controlplane.simulation.machines.mishaps import MachineMishaps
from tests.controlplane.simulation.machines.moments import Moments
from tests.controlplane.simulation.machines.oracles import OURS
from tests.controlplane.simulation.machines.rest import Rest
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.support.breach import Breach
from tests.support.store import Change

FAIR_ROUNDS = 2000
"""Enough for the longest wait for a slow agent, with the heartbeats of all nodes."""
TIMEOUT_SECONDS = 35.0
"""The state is checked again after the longest back-off."""
QUIET_SECONDS = 400.0
"""The time at rest without a write of our processes."""
DEAD_NODES = 0.3
"""How often a node stays dead during the rest."""
ENDS_AT_REST = 0.4
"""How often a guest ends by itself at rest."""
FROZEN_AT_REST = 0.5
"""How often a guest is then frozen, and thawed by its timeout."""
ASKED_AT_REST = 0.7
"""How often a single request is sent at rest, to check its effect alone."""
MOST_WITHDRAWN = 2
"""The most starts that are withdrawn during the rest: most machines start then."""
TAKEN_BACK = 0.3
"""How often that happens just when virt-handler reads the grant."""
LONGEST_SLEEP = 600.0
"""The longest timer: no problem may last longer."""


class Settling:
    def __init__(self, world: MachineWorld, mishaps: MachineMishaps) -> None:
        self._world = world
        self._mishaps = mishaps
        self._moments = Moments(world)
        self._rest = Rest(world.store, world.nodes, world.ledger)
        self._patience = 0.0
        self._withdrawals = 0

    def run(self) -> None:
        """End the faults: first with a dead node, then with proof of its end, then with the node back."""
        world = self._world
        world.note("faults end")
        self._withdrawals = MOST_WITHDRAWN
        self._rest.dead = self._choose_dead()
        for node in world.nodes:
            node.broken = ""
            if node is not self._rest.dead:
                self._bring_back(node)
        world.keep_one_leader()
        for cache in (cache for process in world.processes() for cache in process.caches if cache.is_blind):
            cache.relist()
        world.people.pods.remove_squatters()
        world.people.want_what_is_known()
        if world.rng.random() < 0.5:
            world.people.pods.restore_labels()
        self._come_to_rest()
        dead, self._rest.dead = self._rest.dead, None
        if dead is not None:
            self._declare_dead(dead)
            self._come_to_rest()
            self._bring_back(dead)
            self._come_to_rest()
        if world.rng.random() < ENDS_AT_REST and (ended := self._mishaps.end_one()) is not None:
            world.note(ended)
            self._come_to_rest()
        if world.rng.random() < FROZEN_AT_REST and (frozen := self._mishaps.freeze_one()) is not None:
            world.note(frozen)
            self._come_to_rest()
        if world.rng.random() < ASKED_AT_REST:
            world.note(f"user: {world.people.ask()}")
            self._come_to_rest()
        self._stay_still()
        world.ledger.rest()

    def _choose_dead(self) -> Node | None:
        unreachable = [node for node in self._world.nodes if node.is_unreachable]
        if not unreachable or self._world.rng.random() > DEAD_NODES * 2:
            return None
        return self._world.rng.choice(unreachable)

    def _bring_back(self, node: Node) -> None:
        if node.is_unreachable:
            self._world.note(f"{node.name}: healed")
            self._mishaps.heal(node)

    def _declare_dead(self, node: Node) -> None:
        """Cut the power, and declare the node out of service."""
        if not node.is_off:
            self._mishaps.lose_power(node)
        self._world.note(f"{node.name}: off for certain; {self._mishaps.fence(node)}")

    def _come_to_rest(self) -> None:
        self._patience = TIMEOUT_SECONDS
        for _unused in range(FAIR_ROUNDS):
            if not self._round() and not self._wait_for_alarm():
                break
        else:
            raise Breach(f"nothing stuck: it does not come to rest: {self._rest.stuck()}")
        problems = self._rest.stuck()
        if problems:
            raise Breach("nothing stuck: " + "; ".join(problems))

    def _stay_still(self) -> None:
        """Advance the time: timers may fire, and none of our processes writes about a correct object."""
        restless, store = self._rest.restless(), self._world.store
        until = self._world.true.seconds + QUIET_SECONDS
        before = len(store.history)
        while self._world.true.seconds < until:
            due = self._next_due()
            self._world.true.advance(QUIET_SECONDS if due is None else max(due, 1.0))
            self._round()
        for change in store.history[before:]:
            if (
                change.actor in OURS
                and change.resource != LEASE
                and not any(name in text for name in restless for text in _names(change))
            ):
                raise Breach(f"write rate: {change.actor} writes {change.resource.kind} {change.key} at rest")
        wanted = work_found_afresh(self._world, restless)
        if wanted is not None:
            raise Breach(f"restart: {wanted}")

    def _reachable(self) -> list[Process]:
        dead = self._rest.dead
        return [
            process
            for process in self._world.processes()
            if dead is None or process is not self._world.handlers[dead.name]
        ]

    def _round(self) -> bool:
        self._world.look_for_undone()
        nodes = [node for node in self._world.nodes if node is not self._rest.dead]
        moved = fair_round(
            self._world.store, self._reachable(), nodes, carry=self._carry, schedule=self._world.schedule
        )
        self._world.check()
        return moved

    def _carry(self, process: Process) -> None:
        if self._withdrawals and self._world.rng.random() < TAKEN_BACK and (done := self._moments.take_back(process)):
            self._withdrawals -= 1
            self._world.note(done)
        self._world.note(self._world.carry(process, 0, "done"))
        self._world.check()

    def _next_due(self) -> float | None:
        return min((due for item in self._reachable() if (due := item.next_due()) is not None), default=None)

    def _wait_for_alarm(self) -> bool:
        """Advance to the next timer, unless nothing can come of it."""
        due = self._next_due()
        if due is None:
            return False
        if due > 0 and not self._rest.stuck():
            self._patience -= due
            if self._patience < 0:
                return False
        if due > LONGEST_SLEEP:
            raise Breach(f"nothing stuck: a process sleeps for {due:.0f} s: {self._rest.stuck()}")
        self._world.true.advance(due + 0.001)  # a float of seconds since the epoch has no more digits
        return True


def _names(change: Change) -> list[str]:
    """Return the object's name and those of its owners: a ControllerRevision is named by the UID of its VM."""
    meta = (change.after or change.before or {"metadata": {}})["metadata"]
    owners = [reference["name"] for reference in meta.get("ownerReferences") or ()]
    return [name.replace("-", ".") for name in (change.key.name, *owners)]
