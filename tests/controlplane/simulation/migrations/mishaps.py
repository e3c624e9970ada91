# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults during migrations: random ones, and those at the moment of each step.

Each fault returns what it did, None when there was nothing to break. Guests that a fault ends are recorded: only they
may be gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, set_taint
from tests.controlplane.simulation.migrations.guest import MigratingLauncher
from tests.controlplane.simulation.migrations.odds import find_place
from tests.controlplane.simulation.migrations.processes import MigratingHandler
from tests.controlplane.simulation.migrations.world import MigrationWorld
from tests.controlplane.simulation.mishaps import Mishaps
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.support.calls import Call

ON_THE_WAY, WHEN_IT_HAS_LEFT = ("on the way", "all of it"), ("its going on", "the last word")
"""Places at which some faults matter more than others."""


class MigrationMishaps(Mishaps):
    _world: MigrationWorld

    def __init__(self, world: MigrationWorld) -> None:
        super().__init__(world)
        self._ways: tuple[tuple[Callable[[], str | None], float], ...] = (
            (self.end_handler, 3),
            (self.end_controller, 2),
            (self.second_leader, 1),
            (self.cut, 2),
            (self.heal_one, 1),
            (self.daemon, 1.5),
            (self.end_target, 1.5),
            (self.end_guest, 0.3),
            (self.power_and_fence, 0.2),
            (self._world.people.cancel, 1.5),
            (self._world.people.delete_vmi, 0.15),
            (self._world.people.give_cpus, 1),
            (self.lose_history, 1),
        )

    def happen(self) -> str | None:
        """Let one fault happen."""
        ways = [item for item, _unused in self._ways]
        return self._rng.choices(ways, [weight for _unused, weight in self._ways])[0]()

    def strike(self, process: Process, call: Call) -> str | None:
        """Let a fault happen that concerns a call."""
        near: list[tuple[Callable[[], str | None], float]] = [
            (lambda: self._crash(process), 2),
            (self.end_handler, 1),
            (self.second_leader, 1),
            (self.daemon, 1.5),
            (self.end_target, 1.5),
            (self.end_left, 1),
            (self._world.people.cancel, 1.5),
            (self.happen, 1),
        ]
        if isinstance(process, MigratingHandler):
            near += [(lambda: self.cut(process.node), 1.5)]
        near += [(self.end_left, 5)] if find_place(call) in WHEN_IT_HAS_LEFT else []
        near += [(self.end_source, 1.5)] if find_place(call) in ON_THE_WAY else []
        near += [(lambda: self.stop_late(process, call), 5)] if call.verb == "stop" else []
        ways = [each for each, _unused in near]
        done = self._rng.choices(ways, [weight for _unused, weight in near])[0]()
        return None if done is None else f"{done} (at {call})"

    def stop_late(self, process: Process, call: Call) -> str | None:
        """Stop a guest whose migration has already ended; the process that asked for it ends before the response."""
        there = next((each for each in self._world.oracles.launchers() if each.pod_uid == call.asked["pod_uid"]), None)
        index = next((at for at, each in enumerate(process.passes) if each.call is call), None)
        if there is None or index is None or not there.is_being_sent or there.stream is None:
            return None
        there.stream.give_up()
        self._world.carry(process, index, "answer lost")
        return self._crash(process)

    def _crash(self, process: Process) -> str | None:
        if process.is_dead:
            return None
        if isinstance(process, MigratingHandler):
            return self.end_handler(process)
        return self.end_controller(cast(Controller, process))

    def power_and_fence(self) -> str | None:
        """Cut the power of a node; mostly a user declares it out of service."""
        text = self.power()
        if text is None:
            return None
        name = text.partition(":")[0]
        if self._rng.random() < 0.7:
            self._world.store.actor = "user"
            set_taint(self._world.store, name, OUT_OF_SERVICE, on=True)
        return text

    def lose_power(self, node: Node) -> None:
        for launcher in list(node.launchers.values()):
            self._note_end(launcher)
            if isinstance(launcher, MigratingLauncher) and launcher.has_left:
                self._world.lose_left(launcher)
        super().lose_power(node)

    def daemon(self) -> str | None:
        launcher = self.lose_daemon()
        return None if launcher is None else f"libvirtd of {launcher.vmi} dies ({launcher.pod.name})"

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

    def _end_one(self, some: list[MigratingLauncher]) -> str | None:
        if not some:
            return None
        item = self._rng.choice(some)
        self._note_end(item)
        if self._rng.random() < 0.5:
            item.exit(137)
        else:
            item.end_guest("crashed")
        return f"QEMU of {item.vmi} is killed ({item.pod.name})"

    def _note_end(self, launcher: object) -> None:
        """Record that a machine's guest ends with this QEMU, unless another one has it and may run."""
        if not isinstance(launcher, MigratingLauncher) or not launcher.has_the_guest:
            return
        source = launcher.came_from
        is_given_up = launcher.is_incoming or source is None or source.stream is None or source.stream.is_over
        is_spare = source is not None and not launcher.has_run and source.is_running_guest and is_given_up
        if not is_spare:
            self._world.ended.add(launcher.vmi_uid)
