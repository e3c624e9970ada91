# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of processes, nodes and daemons. Each returns what it did, None when there was nothing to break."""

from __future__ import annotations

from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import UNREACHABLE, set_taint
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.world import World


class Mishaps:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng

    def node(self) -> Node:
        return self._rng.choice(self._world.nodes)

    def launchers(self) -> list[Launcher]:
        return [launcher for node in self._world.nodes for launcher in node.launchers.values()]

    def end_controller(self, controller: Controller | None = None) -> str:
        world = self._world
        controller = controller or self._rng.choice(world.controllers)
        self.kill(controller)
        world.controllers.remove(controller)
        if not world.controllers:
            world.start_controller()
        world.leaders_changed()
        return f"{controller.name}: crash"

    def end_handler(self, handler: Handler | None = None) -> str | None:
        """Restart a virt-handler; without a connection it restarts when its node is healed."""
        handler = handler or self._world.handlers[self.node().name]
        if handler.is_dead:
            return None
        self.kill(handler)
        return self.restart(handler)

    def kill(self, process: Process) -> None:
        """End a process; a request that was sent may still take effect."""
        self._world.fault("crash")
        if process.passes and self._rng.random() < 0.5:
            self._world.carry(process, self._rng.randrange(len(process.passes)), "answer lost")
        process.die(None, is_request_out=False)

    def restart(self, handler: Handler) -> str:
        if handler.node.is_unreachable:
            return f"{handler.name}: crash"
        self._world.start_handler(handler.node)
        return f"{handler.name}: crash and restart"

    def second_leader(self) -> str | None:
        """Start a new leader before the old one notices: both act until one crashes."""
        if len(self._world.controllers) > 1:
            return None
        self._world.start_controller()
        self._world.leaders_changed()
        self._world.fault("second leader")
        return f"{self._world.controllers[-1].name}: leads as well"

    def cut(self, node: Node | None = None) -> str | None:
        """Partition a node."""
        node = node or self.node()
        if node.is_cut_off:
            return None
        node.is_cut_off = True
        self._taint(node)
        self._world.fault("cut")
        return f"{node.name}: cut off"

    def heal_one(self) -> str | None:
        node = self.node()
        if not node.is_unreachable:
            return None
        self.heal(node)
        return f"{node.name}: healed"

    def heal(self, node: Node) -> None:
        """Bring a node back; after a power failure virt-handler restarts."""
        node.heal()
        if self._world.handlers[node.name].is_dead:
            self._world.start_handler(node)

    def power(self) -> str | None:
        node = self.node()
        if node.is_off:
            return None
        self.lose_power(node)
        self._world.fault("power")
        return f"{node.name}: loses power"

    def lose_power(self, node: Node) -> None:
        node.lose_power()
        self._world.handlers[node.name].die(None, is_request_out=False)
        self._taint(node)

    def lose_daemon(self) -> Launcher | None:
        """Kill a launcher's libvirtd; its supervisor restarts it."""
        listening = [item for item in self.launchers() if item.is_listening and not item.is_starting]
        if not listening:
            return None
        launcher = self._rng.choice(listening)
        launcher.lose_daemon()
        self._world.fault("libvirtd")
        return launcher

    def lose_history(self) -> str:
        """Let a watch expire (410): the next list skips what happened in between."""
        process = self._rng.choice(self._world.reachable())
        cache = self._rng.choice(process.caches)
        cache.relist()
        self._world.fault("relist")
        return f"{process.name}: history of {cache.resource.plural} is lost"

    def _taint(self, node: Node) -> None:
        self._world.store.actor = "node lifecycle"
        set_taint(self._world.store, node.name, UNREACHABLE, on=True)
