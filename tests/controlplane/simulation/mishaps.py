# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of processes, nodes, daemons, clocks. Each returns what it did, None when there was nothing to break.

Lost and refused calls are in moves, changed requests in people and moments.
"""

from __future__ import annotations

from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, UNREACHABLE, set_taint
from tests.controlplane.simulation.node import WAYS_TO_BREAK, Node
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.world import OFFSETS, World
from tests.support.store import NODE, Key

ALL_BROKEN = 0.4
"""How often a cause breaks all nodes at once."""
THAW_AFTER = (5, 60, 300)
"""Seconds."""
ENDS_WITH_LIBVIRTD = 0.4
"""How often a fault that ends a launcher's libvirtd ends its guest too."""


class Mishaps:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng

    def _node(self) -> Node:
        return self._rng.choice(self._world.nodes)

    def crash(self) -> str | None:
        world = self._world
        item = self._rng.choice(world.controllers)
        self._kill(item)
        world.controllers.remove(item)
        if not world.controllers:
            world.start_controller()
        world.oracles.is_one_leader_since = world.store.version + 1
        return f"{item.name}: crash"

    def _kill(self, one: Process) -> None:
        """End a process; a request that was sent may still take effect."""
        self._world.fault("crash")
        if one.passes and self._rng.random() < 0.5:
            self._world.carry(one, self._rng.randrange(len(one.passes)), "answer lost")
        one.die(None, is_request_out=False)

    def second_leader(self) -> str | None:
        """Start a new leader before the old one notices: both act until one crashes."""
        if len(self._world.controllers) > 1:
            return None
        self._world.start_controller()
        self._world.oracles.is_one_leader_since = 1 << 60
        self._world.fault("second leader")
        return f"{self._world.controllers[-1].name}: leads as well"

    def cut(self) -> str | None:
        node = self._node()
        if node.is_cut_off:
            return None
        node.is_cut_off = True
        self._taint(node, UNREACHABLE)
        self._world.fault("cut")
        return f"{node.name}: cut off"

    def cut_and_force(self) -> str | None:
        """Power off an unreachable node and declare it so, as users do."""
        text = self.cut()
        if text is None:
            return None
        self._world.fault("cut and force")
        return f"{text}; user: {self._world.people.pods.force_delete_on(text.partition(':')[0])}"

    def heal_one(self) -> str | None:
        node = self._node()
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
        node = self._node()
        if node.is_off:
            return None
        self.lose_power(node)
        self._world.fault("power")
        return f"{node.name}: loses power"

    def lose_power(self, node: Node) -> None:
        node.lose_power()
        self._world.handlers[node.name].die(None, is_request_out=False)
        self._taint(node, UNREACHABLE)

    def fence_one(self) -> str | None:
        """Let a user who has seen that a node is off declare it out of service."""
        node = self._node()
        if not node.is_off:
            return None
        self._world.fault("fence")
        return self.fence(node)

    def fence(self, node: Node) -> str:
        self._world.store.actor = "user"
        if self._rng.random() < 0.5 and self._world.store.find(NODE, Key("", node.name)) is not None:
            self._world.store.delete(NODE, Key("", node.name))
            return f"user: delete Node {node.name}"
        set_taint(self._world.store, node.name, OUT_OF_SERVICE, on=True)
        return f"user: taint Node {node.name} as out of service"

    def _taint(self, node: Node, taint: str) -> None:
        self._world.store.actor = "node lifecycle"
        set_taint(self._world.store, node.name, taint, on=True)

    def handler_crash(self) -> str | None:
        item = self._world.handlers[self._node().name]
        return None if item.is_dead else self._restart(item)

    def end_in_start(self, one: Handler, index: int) -> str:
        """End virt-handler between QEMU's execution and libvirtd's success."""
        if one.passes[index].call.verb == "launch":
            self._world.carry(one, index, "answer lost")
        one.die(None, is_request_out=False)
        self._world.fault("crash")
        return self._begin_again(one)

    def _restart(self, one: Handler) -> str:
        self._kill(one)
        return self._begin_again(one)

    def _begin_again(self, one: Handler) -> str:
        if one.node.is_unreachable:
            return f"{one.name}: crash"  # it comes back when the node is healed, and cannot list anything before
        self._world.start_handler(one.node)
        return f"{one.name}: crash and restart"

    def blind(self) -> str | None:
        """Deliver an empty list of a node's VMIs although there are some: absence from a cache proves nothing."""
        seeing = [
            handler for handler in self._world.handlers.values() if not (handler.is_dead or handler.node.is_unreachable)
        ]
        if not seeing:
            return None
        handler = self._rng.choice(seeing)
        handler.lose_sight()
        self._world.fault("blind")
        return f"{handler.name}: is shown no VMIs"

    def daemon(self) -> str | None:
        """Kill a launcher's libvirtd; its supervisor restarts it. The guest survives, or ends in between."""
        up = [item for node in self._world.nodes for item in node.launchers.values() if item.is_listening]
        steady = [item for item in up if not item.is_starting]
        if not steady:
            return None
        item = self._rng.choice(steady)
        item.lose_daemon()
        self._world.fault("libvirtd")
        if self._rng.random() < ENDS_WITH_LIBVIRTD:
            item.end_guest("crashed")
            return f"libvirtd of {item.vmi}: dies, and its guest with it"
        return f"libvirtd of {item.vmi}: dies"

    def end_unseen(self, vmi: Key) -> None:
        """End just started guests of a machine together with their libvirtd, before any look at them."""
        for node in self._world.nodes:
            for guest in node.guests():
                if guest.vmi == vmi and guest.has_run:
                    self._world.fault("ends unseen")
                    guest.lose_daemon()
                    guest.end_guest("crashed")

    def io_error(self) -> str | None:
        """Let a guest's disk fail for a moment; resuming the guest ends the error."""
        up = [guest for node in self._world.nodes for guest in node.guests() if guest.has_run]
        if not up:
            return None
        guest = self._rng.choice(up)
        guest.stall()
        self._world.fault("I/O error")
        return f"guest of {guest.vmi}: is paused by an I/O error"

    def end_one(self) -> str | None:
        """Let a guest end by itself."""
        up = [guest for node in self._world.nodes for guest in node.guests() if guest.has_run]
        if not up:
            return None
        guest, how = self._rng.choice(up), self._rng.choice(("shut down", "crashed"))
        guest.end_guest(how)
        return f"guest of {guest.vmi}: {how}"

    def freeze_one(self) -> str | None:
        """Have a user freeze the file systems of a guest with an honest agent, for a while."""
        there = [(self._world.handlers[node.name], guest) for node in self._world.nodes for guest in node.guests()]
        able = [(by, guest) for by, guest in there if guest.agent is not None and guest.agent.manner == "honest"]
        if not able:
            return None
        by, guest = self._rng.choice(able)
        by.press(guest, "freeze", self._rng.choice(THAW_AFTER))
        return f"user: freeze the guest of {guest.vmi}"

    def emulation(self) -> str | None:
        """Let a user allow or forbid guests without KVM: Pods that fit no node are recreated."""
        self._world.fault("emulation")
        return f"user: {self._world.configuration.switch_emulation()}"

    def break_or_mend(self) -> str | None:
        """Break a node, so that starts fail there, or repair it.

        Sometimes all nodes break, as after a faulty upgrade: then no other node helps.
        """
        node = self._node()
        broken = "" if node.broken else self._rng.choice(WAYS_TO_BREAK)
        for item in self._world.nodes if self._rng.random() < ALL_BROKEN else (node,):
            item.broken = broken
        self._world.fault("broken node")
        return f"{node.name}: {broken or 'mended'}"

    def clock(self) -> str | None:
        self._rng.choice([process.clock for process in self._world.processes()]).offset = self._rng.choice(OFFSETS)
        self._world.fault("clock")
        return "a clock steps"
