# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that move, in a play of its own: at each step of a migration something may go wrong, at either end.

In the big world a run is given to one Pod for good; here it is given on. The reconcilers are the real ones of both
roles, and what sends the guest is real as well; libvirt, the tunnel and the nodes are models. Nothing is lost by moving
it, nothing runs twice, and when all faults cease every migration is over and the machine where it is said to be.
"""

from __future__ import annotations

import random

from tests.controlplane.simulation.breach import Breach
from tests.controlplane.simulation.calls import Fate
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, collect_garbage, collect_pods, evict
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.store import OVER
from tests.controlplane.simulation.transit_mishaps import TransitMishaps, is_moment
from tests.controlplane.simulation.transit_oracles import TransitRest
from tests.controlplane.simulation.transit_world import MIGRATION, TransitWorld

STRETCH = 480
"""Steps between two times of peace."""
STRETCHES = 2
"""Of one world."""
FATES: tuple[Fate, ...] = ("request lost", "answer lost", "answer lost", "forbidden", "throttled")
UNLUCKY = (0.0, 0.0, 0.02, 0.08)
"""How often a call meets no good fate."""
MOMENTS = (0.0, 0.05, 0.15, 0.3)
"""How often something goes wrong in the moment of a step of a migration."""
LAST_STEPS = ("send all of", "finish", "confirm", "take back", "let go on")
AT_LAST = 0.4
"""How often one of them meets no good fate: who has the guest is settled there."""
MISHAPS = (0.0, 0.01, 0.04)
"""And at any other time."""
SECONDS = (0.01, 0.1, 1.0, 1.0, 10.0)
PEACE_ROUNDS = 3000
CANCELLED_SECONDS = 60.0
"""In which one is over that was cancelled, when nothing hinders anybody."""
LONGEST_SECONDS = 1500.0
"""In which all are."""


class TransitPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._begin()
        self.outcomes: list[str] = []

    def _begin(self) -> None:
        self.world = TransitWorld(self._rng)
        self._mishaps = TransitMishaps(self.world)
        self._rest = TransitRest(self.world.store, self.world.nodes, self.world.oracles)

    def run(self, steps: int) -> None:
        """Take random steps, and come to rest now and then. Raises Breach."""
        try:
            for number in range(0, max(steps, 1), STRETCH):
                if number and number // STRETCH % STRETCHES == 0:
                    self._end()
                    self._begin()
                self._stretch(min(STRETCH, steps - number))
            self._end()
        except Breach as breach:
            trace = "\n  ".join(self.world.trace)
            raise Breach(f"{breach}\n  {trace}\n(transit)") from breach
        finally:
            self.world.end()

    def _end(self) -> None:
        self.outcomes += self.world.oracles.outcomes
        self.world.end()

    def _stretch(self, steps: int) -> None:
        self.world.people.make()
        self._settle()
        self.world.people.move()
        self._luck = self._rng.choice(UNLUCKY)
        self._moments, self._mishap = self._rng.choice(MOMENTS), self._rng.choice(MISHAPS)
        for _unused in range(steps):
            self._step()
        self._settle()

    def _step(self) -> None:
        rng, world = self._rng, self.world
        how = rng.random()
        if how < 0.7:
            self._work(rng.choice(world.processes()))
        elif how < 0.9:
            world.host(one_only=True)
            world.place()
        elif how < 0.93:
            world.note(world.people.move())
        else:
            world.true.advance(rng.choice(SECONDS))
        if rng.random() < self._mishap:
            world.note(self._mishaps.happen())
        if rng.random() < 0.05:
            collect_garbage(world.store) or collect_pods(world.store) or evict(world.store, OUT_OF_SERVICE)
        world.check()

    def _work(self, one: Process) -> None:
        """Let a process hear something, begin something, and be answered something."""
        one.wake()
        if one in self.world.reachable():
            for cache in one.caches:
                for _unused in range(self._rng.choice((0, 1, 3))):
                    if cache.is_behind:
                        cache.advance()
        steps = one.sessions.steps() if hasattr(one, "sessions") else []
        for step in steps[: self._rng.choice((0, 1, 3))]:
            step()
        for name in one.work:
            if self._rng.random() < 0.8:
                one.begin(name)
        for _unused in range(self._rng.choice((1, 2, 4))):
            if one.passes and not one.is_dead:
                self._carry(one, self._rng.randrange(len(one.passes)))

    def _carry(self, one: Process, index: int) -> None:
        call, fate = one.passes[index].call, "done"
        if call.verb in LAST_STEPS and self._rng.random() < AT_LAST:
            fate = self._rng.choice(FATES)
        elif is_moment(call) and self._rng.random() < self._moments:
            if self._rng.random() < 0.5:
                self.world.note(self._mishaps.happen())
                if one.is_dead or index >= len(one.passes) or one.passes[index].call is not call:
                    return
            else:
                fate = self._rng.choice(FATES)
        elif self._rng.random() < self._luck:
            fate = self._rng.choice(FATES)
        self.world.carry(one, index, _possible(fate, is_api=call.is_api, is_write=call.is_write))

    def _settle(self) -> None:
        """Let all faults cease, and require that everything comes right."""
        world = self.world
        world.note("faults cease")
        for node in world.nodes:
            if node.is_unreachable or world.handlers[node.name].is_dead:
                self._mishaps.heal(node)
        for old in world.controllers[:-1]:
            old.die(None, is_request_out=False)
        del world.controllers[:-1]
        since = world.true.seconds
        for _unused in range(PEACE_ROUNDS):
            if self._peace_round():
                continue
            for one in world.processes():
                one.look_for_undone()
            world.check()
            if not (found := self._rest.stuck()):
                return
            self._judge_cancelled(world.true.seconds - since)
            if world.true.seconds - since > LONGEST_SECONDS or not self._wait():
                raise Breach(f"transit: stuck: {'; '.join(found)}")
        raise Breach(f"transit: it does not come to rest: {'; '.join(self._rest.stuck())}")

    def _judge_cancelled(self, lasted: float) -> None:
        if lasted < CANCELLED_SECONDS:
            return
        for key, body in self.world.store.list(MIGRATION):
            if "deletionTimestamp" in body["metadata"] and body.get("status", {}).get("phase") not in OVER:
                raise Breach(f"transit: cancel: {key} is cancelled, and not over after {lasted:.0f} s")

    def _wait(self) -> bool:
        """Pass the time to the next alarm; tell whether there is one."""
        due = min((one for each in self.world.processes() if (one := each.next_due()) is not None), default=None)
        if due is None:
            return False
        self.world.true.advance(due + 0.001)
        return True

    def _peace_round(self) -> bool:
        world = self.world
        before, moved = world.store.version, False
        for one in world.processes():
            moved = self._peaceful(one) or moved
        moved = world.host(one_only=False) or moved
        moved = world.place() or moved
        while collect_garbage(world.store) or evict(world.store, OUT_OF_SERVICE) or collect_pods(world.store):
            moved = True
        world.check()
        return moved or before != world.store.version

    def _peaceful(self, one: Process) -> bool:
        moved = one.wake()
        for cache in one.caches:
            while cache.is_behind:
                cache.advance()
                moved = True
            cache.bookmark()
        for step in one.sessions.steps() if hasattr(one, "sessions") else []:
            step()
            moved = True
        for name in one.work:
            while one.begin(name):
                moved = True
        while one.passes:
            self.world.carry(one, 0, "done")
            moved = True
        return moved


def _possible(fate: Fate, *, is_api: bool, is_write: bool) -> Fate:
    """Let only writes be refused."""
    is_refusal = fate in ("forbidden", "throttled")
    return "answer lost" if is_refusal and not (is_api and is_write) else fate
