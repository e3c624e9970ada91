# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations alone: each step may fail at either end.

In the world of run.py a run stays in one Pod; here it is handed over. The reconcilers of both roles and the sending
side are real; libvirt, the tunnel and the nodes are models. No migration loses or duplicates a guest, and when all
faults end every migration is over and the machine is where its status says.
"""

from __future__ import annotations

import random
from collections import Counter

from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.transit_mishaps import TransitMishaps
from tests.controlplane.simulation.transit_odds import Odds
from tests.controlplane.simulation.transit_rest import TransitRest
from tests.controlplane.simulation.transit_world import TransitWorld
from tests.support.breach import Breach

STRETCH = 300
"""Steps between two rests."""
STRETCHES = 4
"""Of one world."""
SECONDS = (0.01, 0.1, 1.0, 1.0, 10.0)
STALLS = (4, 12, 40)
"""Steps for which a process is frozen while the others go on."""
ENDS = 0.3
"""How often a migration is cancelled just when all faults end."""
GIVES = 0.3
"""How often a machine gets another virtual CPU at the start of a stretch."""
IDLE = 0.2
"""How often an idle process is chosen."""
PEACE_ROUNDS = 3000
CANCELLED_SECONDS = 15.0
"""The time limit for the end of a cancelled migration without faults: before its own timeout."""
LEFT_SECONDS = 15.0
"""The time limit for the removal of a guest at the target of a failed migration."""
LONGEST_SECONDS = 1500.0
"""The time limit for the end of all migrations."""


class TransitPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.steps = self.writes = 0
        self._rng = random.Random(seed)
        self._odds = Odds(self._rng)
        self.outcomes: Counter[str] = Counter()
        """How migrations ended."""
        self._begin()

    @property
    def struck(self) -> dict[str, int]:
        """Return the number of faults by place."""
        return self._odds.seen

    def _begin(self) -> None:
        self.world = TransitWorld(self._rng)
        self._mishaps = TransitMishaps(self.world)
        self._rest = TransitRest(self.world.store, self.world.nodes, self.world.oracles)
        self._stalled: dict[str, int] = {}

    def run(self, steps: int) -> None:
        """Take random steps, and come to rest from time to time. Raises Breach."""
        try:
            for number in range(0, max(steps, 1), STRETCH):
                if number and number // STRETCH % STRETCHES == 0:
                    self._end()
                    self._begin()
                self._stretch(min(STRETCH, steps - number))
            self._end()
        except Breach as breach:
            trace = "\n  ".join(self.world.trace)
            raise Breach(f"{breach}\n  {trace}\n(transit, seed {self.seed}, step {self.steps})") from breach
        finally:
            self.world.end()

    def _end(self) -> None:
        self.writes += self.world.store.version
        self.outcomes.update(self.world.oracles.outcomes)
        self.world.end()

    def _stretch(self, steps: int) -> None:
        if self.world.people.make():
            self._settle()
        self.world.people.move()
        if self._rng.random() < GIVES:
            self.world.note(self.world.people.give_cpus())
        self._odds.draw()
        for _unused in range(steps):
            self.steps += 1
            self._step()
        if self._rng.random() < ENDS:
            self.world.note(self.world.people.cancel())
        self._settle()

    def _step(self) -> None:
        rng, world = self._rng, self.world
        how = rng.random()
        if how < 0.75:
            self._work(rng.choice(self._awake()))
        elif how < 0.88:
            for _unused in range(rng.choice((1, 3, 6))):
                world.host(one_only=True)
            world.place()
        elif how < 0.94:
            world.note(world.people.move())
        else:
            world.true.advance(rng.choice(SECONDS))
        if rng.random() < self._odds.cancels:
            world.note(world.people.cancel())
        if rng.random() < self._odds.mishaps:
            world.note(self._mishaps.happen())
        if rng.random() < 0.05:
            world.collect()
        world.check()

    def _awake(self) -> list[Process]:
        """List processes that are not frozen, mostly those with work."""
        self._stalled = {name: remaining - 1 for name, remaining in self._stalled.items() if remaining > 0}
        everybody = self.world.processes()
        awake = [item for item in everybody if item.name not in self._stalled] or everybody
        if self._rng.random() < IDLE:
            return awake
        return [item for item in awake if item.passes or any(cache.is_behind for cache in item.caches)] or awake

    def _work(self, one: Process) -> None:
        """Let a process receive an event, start a reconcile, or get a response."""
        one.wake()
        if one in self.world.reachable():
            for cache in one.caches:
                for _unused in range(self._rng.choice((0, 2, 6))):
                    if cache.is_behind:
                        cache.advance()
        steps = one.sessions.steps() if hasattr(one, "sessions") else []
        for step in steps[: self._rng.choice((0, 2, 4))]:
            step()
        for name in one.work:
            if self._rng.random() < 0.8:
                one.begin(name)
        for _unused in range(self._rng.choice((1, 2, 4))):
            if one.passes and not one.is_dead:
                self._carry(one, self._rng.randrange(len(one.passes)))

    def _carry(self, one: Process, index: int) -> None:
        call, fate = one.passes[index].call, None
        is_struck = self._odds.strikes(call)
        if is_struck and self._rng.random() < 0.6:
            for _unused in range(self._rng.choice((1, 1, 2))):
                self.world.note(self._mishaps.strike(one, call))
            if one.is_dead or index >= len(one.passes) or one.passes[index].call is not call:
                return
            how = self._rng.random()
            if how < 0.4:  # the others go on, and this call is carried out later
                self._stalled[one.name] = self._rng.choice(STALLS)
                return
            fate = "done" if how < 0.7 else None
        self.world.carry(one, index, fate or self._odds.fate(call, is_struck=is_struck))

    def _settle(self) -> None:
        """End all faults, and require that everything recovers."""
        world = self.world
        world.note("faults cease")
        for node in world.nodes:
            if node.is_unreachable or world.handlers[node.name].is_dead:
                self._mishaps.heal(node)
        for old in world.controllers[:-1]:
            old.die(None, is_request_out=False)
        del world.controllers[:-1]
        self._stalled.clear()
        since = world.true.seconds
        for _unused in range(PEACE_ROUNDS):
            if self._peace_round():
                continue
            if not (problems := self._rest.stuck()):
                for process in world.processes():
                    process.look_for_undone()
                world.check()
                return
            self._judge_lateness(world.true.seconds - since)
            if world.true.seconds - since > LONGEST_SECONDS or not self._wait():
                raise Breach(f"transit: stuck: {'; '.join(problems)}")
        raise Breach(f"transit: it does not come to rest: {'; '.join(self._rest.stuck())}")

    def _judge_lateness(self, lasted: float) -> None:
        late = self._rest.cancelled() if lasted > CANCELLED_SECONDS else []
        late += self._rest.left_at_targets() if lasted > LEFT_SECONDS else []
        for text in late:
            raise Breach(f"transit: {text}, for {lasted:.0f} s in which nothing hindered anybody")

    def _wait(self) -> bool:
        """Advance to the next timer; return whether there is one."""
        due = min((one for each in self.world.processes() if (one := each.next_due()) is not None), default=None)
        if due is None:
            return False
        self.world.true.advance(due + 0.001)
        return True

    def _peace_round(self) -> bool:
        world = self.world
        before, moved = world.store.version, False
        for process in world.processes():
            moved = self._peaceful(process) or moved
        moved = world.host(one_only=False) or moved
        moved = world.place() or moved
        while world.collect():
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
