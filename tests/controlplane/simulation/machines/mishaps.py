# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of machines: guests, agents, clocks, broken nodes, caches without objects.

Lost and refused calls are in moves, changed requests in people and moments.
"""

from __future__ import annotations

from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, set_taint
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.controlplane.simulation.mishaps import Mishaps
from tests.controlplane.simulation.node import WAYS_TO_BREAK, Node
from tests.controlplane.simulation.world import OFFSETS
from tests.support.store import NODE, Key

ALL_BROKEN = 0.4
"""How often a cause breaks all nodes at once."""
THAW_AFTER = (5, 60, 300)
"""Seconds."""
ENDS_WITH_LIBVIRTD = 0.4
"""How often a fault that ends a launcher's libvirtd ends its guest too."""


class MachineMishaps(Mishaps):
    _world: MachineWorld

    def cut_and_force(self) -> str | None:
        """Power off an unreachable node and declare it so, as users do."""
        text = self.cut()
        if text is None:
            return None
        self._world.fault("cut and force")
        return f"{text}; user: {self._world.people.pods.force_delete_on(text.partition(':')[0])}"

    def fence_one(self) -> str | None:
        """Let a user who has seen that a node is off declare it out of service."""
        node = self.node()
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

    def end_in_start(self, handler: Handler, index: int) -> str:
        """End virt-handler between QEMU's execution and libvirtd's success."""
        if handler.passes[index].call.verb == "launch":
            self._world.carry(handler, index, "answer lost")
        handler.die(None, is_request_out=False)
        self._world.fault("crash")
        return self.restart(handler)

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
        """Kill a launcher's libvirtd; the guest survives, or ends in between."""
        launcher = self.lose_daemon()
        if launcher is None:
            return None
        if self._rng.random() < ENDS_WITH_LIBVIRTD:
            launcher.end_guest("crashed")
            return f"libvirtd of {launcher.vmi}: dies, and its guest with it"
        return f"libvirtd of {launcher.vmi}: dies"

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
        """Have a user freeze the file systems of a guest with an agent that responds, for a while."""
        there = [(self._world.handlers[node.name], guest) for node in self._world.nodes for guest in node.guests()]
        able = [(by, guest) for by, guest in there if guest.agent is not None and not guest.agent.is_silent]
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
        node = self.node()
        broken = "" if node.broken else self._rng.choice(WAYS_TO_BREAK)
        for item in self._world.nodes if self._rng.random() < ALL_BROKEN else (node,):
            item.broken = broken
        self._world.fault("broken node")
        return f"{node.name}: {broken or 'mended'}"

    def clock(self) -> str | None:
        self._rng.choice([process.clock for process in self._world.processes()]).offset = self._rng.choice(OFFSETS)
        self._world.fault("clock")
        return "a clock steps"
