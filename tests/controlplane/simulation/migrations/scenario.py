# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations, in which each step may fail at either end.

In machines a run stays in one Pod; here it is handed over. The reconcilers of both roles and the sending side are real;
libvirt, the tunnel and the nodes are models. No migration loses or duplicates a guest. When all faults end every
migration is over, and the machine is where its status says.
"""

from __future__ import annotations

import random
from collections import Counter

from tests.controlplane.simulation.fair import fair_round
from tests.controlplane.simulation.migrations.mishaps import MigrationMishaps
from tests.controlplane.simulation.migrations.odds import Odds
from tests.controlplane.simulation.migrations.rest import MigrationRest
from tests.controlplane.simulation.migrations.world import MigrationWorld
from tests.controlplane.simulation.process import Process
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


class MigrationScenario:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.steps = self.writes = 0
        self._rng = random.Random(seed)
        self._odds = Odds(self._rng)
        self.phases: Counter[str] = Counter()
        """How migrations ended."""
        self.faults: Counter[str] = Counter()
        self._begin()

    def _begin(self) -> None:
        self.world = MigrationWorld(self._rng)
        self._mishaps = MigrationMishaps(self.world)
        self._rest = MigrationRest(self.world.store, self.world.nodes, self.world.oracles)
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
            raise Breach(f"{breach}\n  {trace}\n(migrations, seed {self.seed}, step {self.steps})") from breach
        finally:
            self.world.end()

    def _end(self) -> None:
        self.writes += self.world.store.version
        self.phases.update(f"migrations {outcome}" for outcome in self.world.oracles.outcomes)
        self.faults += self.world.faults
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
                world.host()
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

    def _work(self, process: Process) -> None:
        """Let a process receive an event, start a reconcile, or get a response."""
        process.wake()
        if process in self.world.reachable():
            for cache in process.caches:
                for _unused in range(self._rng.choice((0, 2, 6))):
                    if cache.is_behind:
                        cache.advance()
        steps = process.sessions.steps() if hasattr(process, "sessions") else []
        for step in steps[: self._rng.choice((0, 2, 4))]:
            step()
        for name in process.work:
            if self._rng.random() < 0.8:
                process.begin(name)
        for _unused in range(self._rng.choice((1, 2, 4))):
            if process.passes and not process.is_dead:
                self._carry(process, self._rng.randrange(len(process.passes)))

    def _carry(self, process: Process, index: int) -> None:
        call, fate = process.passes[index].call, None
        is_struck = self._odds.strikes(call)
        if is_struck and self._rng.random() < 0.6:
            for _unused in range(self._rng.choice((1, 1, 2))):
                self.world.note(self._mishaps.strike(process, call))
            if process.is_dead or index >= len(process.passes) or process.passes[index].call is not call:
                return
            how = self._rng.random()
            if how < 0.4:  # the others go on, and this call is carried out later
                self._stalled[process.name] = self._rng.choice(STALLS)
                return
            fate = "done" if how < 0.7 else None
        self.world.carry(process, index, fate or self._odds.fate(call, is_struck=is_struck))

    def _settle(self) -> None:
        """End all faults, and require that everything recovers."""
        world = self.world
        world.note("faults cease")
        for node in world.nodes:
            if node.is_unreachable or world.handlers[node.name].is_dead:
                self._mishaps.heal(node)
        world.keep_one_leader()
        self._stalled.clear()
        since = world.true.seconds
        for _unused in range(PEACE_ROUNDS):
            if self._round():
                continue
            if not (problems := self._rest.stuck()):
                world.look_for_undone()
                return
            self._judge_lateness(world.true.seconds - since)
            if world.true.seconds - since > LONGEST_SECONDS or not self._wait():
                raise Breach(f"migrations: stuck: {'; '.join(problems)}")
        raise Breach(f"migrations: it does not come to rest: {'; '.join(self._rest.stuck())}")

    def _judge_lateness(self, lasted: float) -> None:
        late = self._rest.cancelled() if lasted > CANCELLED_SECONDS else []
        late += self._rest.left_at_targets() if lasted > LEFT_SECONDS else []
        for text in late:
            raise Breach(f"migrations: {text}, for {lasted:.0f} s in which nothing hindered anybody")

    def _wait(self) -> bool:
        """Advance to the next timer; return whether there is one."""
        due = min(
            (start for process in self.world.processes() if (start := process.next_due()) is not None), default=None
        )
        if due is None:
            return False
        self.world.true.advance(due + 0.001)
        return True

    def _round(self) -> bool:
        """Let every process and node act without faults; return whether anything happened."""
        world = self.world
        moved = fair_round(
            world.store,
            world.processes(),
            world.nodes,
            carry=lambda item: world.carry(item, 0, "done"),
            schedule=world.place,
        )
        moved = world.drop_lost_guests() or moved
        world.check()
        return moved
