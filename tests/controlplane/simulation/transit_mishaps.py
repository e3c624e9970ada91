# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults during migrations: random ones, and those at the moment of each step.

Each fault returns what it did, None when there was nothing to break. Guests that a fault ends are recorded: only they
may be gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from controlplane.api.objects.resources import Key
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, UNREACHABLE, set_taint
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.transit_guest import MovingLauncher
from tests.controlplane.simulation.transit_keeper import MovingController, MovingHandler
from tests.controlplane.simulation.transit_odds import find_place
from tests.support.calls import Call
from tests.support.store import NODE

if TYPE_CHECKING:
    from tests.controlplane.simulation.transit_world import TransitWorld


ON_THE_WAY, WHEN_IT_HAS_LEFT = ("on the way", "all of it"), ("its going on", "the last word")
"""Places at which some faults matter more than others."""


class TransitMishaps:
    def __init__(self, world: TransitWorld) -> None:
        self._world = world
        self._rng: random.Random = world.rng
        self._ways: tuple[tuple[Callable[[], str | None], float], ...] = (
            (self.end_handler, 3),
            (self.end_controller, 2),
            (self.second_leader, 1),
            (self.cut, 2),
            (self.heal_one, 1),
            (self.lose_daemon, 1.5),
            (self.end_target, 1.5),
            (self.end_guest, 0.3),
            (self.lose_power, 0.2),
            (self.cancel, 1.5),
            (self.delete_vmi, 0.15),
            (self.give_cpus, 1),
            (self.lose_history, 1),
        )

    def happen(self) -> str | None:
        """Let one fault happen."""
        ways = [item for item, _unused in self._ways]
        return self._rng.choices(ways, [weight for _unused, weight in self._ways])[0]()

    def strike(self, one: Process, call: Call) -> str | None:
        """Let a fault happen that concerns a call."""
        near: list[tuple[Callable[[], str | None], float]] = [
            (lambda: self._crash(one), 2),
            (self.end_handler, 1),
            (self.second_leader, 1),
            (self.lose_daemon, 1.5),
            (self.end_target, 1.5),
            (self.end_left, 1),
            (self.cancel, 1.5),
            (self.happen, 1),
        ]
        if isinstance(one, MovingHandler):
            near += [(lambda: self.cut(one.node), 1.5)]
        near += [(self.end_left, 5)] if find_place(call) in WHEN_IT_HAS_LEFT else []
        near += [(self.end_source, 1.5)] if find_place(call) in ON_THE_WAY else []
        near += [(lambda: self.stop_late(one, call), 5)] if call.verb == "stop" else []
        ways = [each for each, _unused in near]
        done = self._rng.choices(ways, [weight for _unused, weight in near])[0]()
        return None if done is None else f"{done} (at {call})"

    def _crash(self, one: Process) -> str | None:
        if one.is_dead:
            return None
        return self.end_handler(one) if isinstance(one, MovingHandler) else self.end_controller(one)

    def end_handler(self, one: MovingHandler | None = None) -> str | None:
        """Restart a virt-handler; its last request may have taken effect."""
        alive = [each for each in self._world.handlers.values() if not each.is_dead]
        if not alive:
            return None
        one = one or self._rng.choice(alive)
        self._end(one)
        if not one.node.is_unreachable:
            self._world.start_handler(one.node)
        return f"{one.name}: crash"

    def end_controller(self, one: Process | None = None) -> str | None:
        one = one or self._rng.choice(self._world.controllers)
        self._end(one)
        self._world.controllers.remove(cast(MovingController, one))
        if not self._world.controllers:
            self._world.start_controller()
        return f"{one.name}: crash"

    def _end(self, one: Process) -> None:
        if one.passes and self._rng.random() < 0.5:
            self._world.carry(one, self._rng.randrange(len(one.passes)), "answer lost")
        one.die(None, is_request_out=False)

    def stop_late(self, one: Process, call: Call) -> str | None:
        """Stop a guest whose migration has already ended; the process that asked for it ends before the response."""
        there = next((each for each in self._world.oracles.launchers() if each.pod_uid == call.asked["pod_uid"]), None)
        index = next((at for at, each in enumerate(one.passes) if each.call is call), None)
        if there is None or index is None or not there.is_being_sent or there.stream is None:
            return None
        there.stream.give_up()
        self._world.carry(one, index, "answer lost")
        return self._crash(one)

    def second_leader(self) -> str | None:
        """Start a second leader before the first one notices."""
        if len(self._world.controllers) > 1:
            return None
        self._world.start_controller()
        return f"{self._world.controllers[-1].name}: leads as well"

    def cut(self, node: Node | None = None) -> str | None:
        """Partition a node."""
        node = node or self._rng.choice(self._world.nodes)
        if node.is_unreachable:
            return None
        node.is_cut_off = True
        self._taint(node)
        return f"{node.name}: cut off"

    def heal_one(self) -> str | None:
        node = self._rng.choice(self._world.nodes)
        if not node.is_unreachable:
            return None
        self.heal(node)
        return f"{node.name}: healed"

    def heal(self, node: Node) -> None:
        node.heal()
        if self._world.handlers[node.name].is_dead:
            self._world.start_handler(node)

    def lose_power(self) -> str | None:
        """Cut the power of a node, and have a user declare it out of service."""
        node = self._rng.choice(self._world.nodes)
        if node.is_off:
            return None
        for launcher in list(node.launchers.values()):
            self._note_end(launcher)
        for each in node.launchers.values():
            if isinstance(each, MovingLauncher) and each.has_left:
                self._world.lose_left(each)
        node.lose_power()
        self._world.handlers[node.name].die(None, is_request_out=False)
        self._taint(node)
        if self._rng.random() < 0.7:
            self._world.store.actor = "user"
            set_taint(self._world.store, node.name, OUT_OF_SERVICE, on=True)
        return f"{node.name}: loses power"

    def _taint(self, node: Node) -> None:
        self._world.store.actor = "node lifecycle"
        if self._world.store.find(NODE, Key("", node.name)) is not None:
            set_taint(self._world.store, node.name, UNREACHABLE, on=True)

    def lose_daemon(self) -> str | None:
        """Kill a launcher's libvirtd; its supervisor restarts it."""
        up = [
            launcher
            for launcher in self._world.oracles.launchers()
            if launcher.is_listening and not launcher.is_starting
        ]
        if not up:
            return None
        launcher = self._rng.choice(up)
        launcher.lose_daemon()
        return f"libvirtd of {launcher.vmi} dies ({launcher.pod.name})"

    def end_target(self) -> str | None:
        """End the target launcher: the machine does not end while the guest is at the source."""
        coming = [item for item in self._world.oracles.launchers() if item.came_from is not None and not item.has_run]
        return self._end_one([item for item in coming if item.is_up])

    def end_left(self) -> str | None:
        """End the processes of a Pod whose guest has left: no machine ends."""
        departed = [launcher for launcher in self._world.oracles.launchers() if launcher.has_left and launcher.is_up]
        if not departed:
            return None
        launcher = self._rng.choice(departed)
        self._world.lose_left(launcher)
        launcher.exit(137)
        return f"the launcher that {launcher.vmi} has left is killed ({launcher.pod.name})"

    def end_source(self) -> str | None:
        """End a guest that is being sent."""
        return self._end_one([launcher for launcher in self._world.oracles.launchers() if launcher.is_being_sent])

    def end_guest(self) -> str | None:
        return self._end_one([launcher for launcher in self._world.oracles.launchers() if launcher.is_running_guest])

    def _end_one(self, some: list[MovingLauncher]) -> str | None:
        if not some:
            return None
        item = self._rng.choice(some)
        self._note_end(item)
        if self._rng.random() < 0.5:
            item.exit(137)
        else:
            item.end_guest("crashed")
        return f"QEMU of {item.vmi} is killed ({item.pod.name})"

    def _note_end(self, one: object) -> None:
        """Record that a machine's guest ends with this QEMU, unless another one has it and may run."""
        if not isinstance(one, MovingLauncher) or not one.has_the_guest:
            return
        source = one.came_from
        is_given_up = one.is_incoming or source is None or source.stream is None or source.stream.is_over
        is_spare = source is not None and not one.has_run and source.is_running_guest and is_given_up
        if not is_spare:
            self._world.ended.add(one.vmi_uid)

    def cancel(self) -> str | None:
        return self._world.people.cancel()

    def give_cpus(self) -> str | None:
        return self._world.people.give_cpus()

    def delete_vmi(self) -> str | None:
        return self._world.people.delete_vmi()

    def lose_history(self) -> str | None:
        item = self._rng.choice(self._world.reachable())
        cache = self._rng.choice(item.caches)
        cache.relist()
        return f"{item.name}: history of {cache.resource.plural} is lost"
