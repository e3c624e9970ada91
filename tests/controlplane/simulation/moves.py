# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The random steps. Each returns what it did, "" for what is not worth a line, None when there was nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import (
    OUT_OF_SERVICE,
    UNREACHABLE,
    collect_garbage,
    collect_pods,
    evict,
    set_taint,
)
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.people import NOTHING
from tests.controlplane.simulation.process import Process
from tests.controlplane.simulation.store import NODE, Key
from tests.controlplane.simulation.swarm import SLOW_DELIVERY
from tests.controlplane.simulation.world import OFFSETS, World

T = TypeVar("T")
Move = Callable[[], str | None]


class Moves:
    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.rng
        self._by_name: dict[str, Move] = {
            "deliver": self._deliver,
            "begin": self._begin,
            "carry out": self._carry_out,
            "kubelet": self._kubelet,
            "host": self._host,
            "session": self._session,
            "schedule": lambda: world.schedule(0.2),
            "collect": self._collect,
            "people": self._people,
            "time": self._time,
            "guest": self._guest,
            "crash": self._crash,
            "second leader": self._second_leader,
            "relist": self._relist,
            "bookmark": self._bookmark,
            "repeat": self._repeat,
            "cut": self._cut,
            "cut and force": self._cut_and_force,
            "heal": self._heal,
            "power": self._power,
            "fence": self._fence,
            "evict": lambda: evict(world.store, UNREACHABLE, OUT_OF_SERVICE),
            "handler crash": self._handler_crash,
            "daemon": self._daemon,
            "clock": self._clock,
        }

    def step(self) -> None:
        """Let somebody move who can."""
        text: str | None = None
        while text is None:
            text = next(
                (said for name in self._world.odds.order() if (said := self._by_name[name]()) is not None), None
            )
        self._world.note(text)
        self._world.after_step()

    def _shuffled(self, some: Sequence[T]) -> list[T]:
        return self._rng.sample(some, len(some))

    def _node(self) -> Node:
        return self._rng.choice(self._world.nodes)

    def _reachable(self) -> list[tuple[str, LaggingCache]]:
        """List the caches that can hear from the API server."""
        return [
            (one.role, cache)
            for one in self._world.processes()
            if not (isinstance(one, Handler) and one.node.is_unreachable)
            for cache in one.caches
        ]

    def _deliver(self) -> str | None:
        slow = self._world.odds.slow
        behind = [
            cache
            for role, cache in self._reachable()
            if cache.is_behind and ((role, cache.resource.kind) not in slow or self._rng.random() < SLOW_DELIVERY)
        ]
        if not behind:
            return None
        cache = self._rng.choice(behind)
        for _unused in range(self._rng.choice((1, 1, 2, 5))):
            if cache.is_behind:
                cache.advance()
        return ""

    def _relist(self) -> str | None:
        role, cache = self._rng.choice(self._reachable())
        cache.relist()
        self._world.fault("relist")
        return f"{role}: history of {cache.resource.plural} is lost"

    def _bookmark(self) -> str | None:
        self._rng.choice(self._reachable())[1].bookmark()
        return ""

    def _repeat(self) -> str | None:
        self._rng.choice(self._reachable())[1].repeat()
        return ""

    def _begin(self) -> str | None:
        turns = [(one, name) for one in self._world.processes() for name in one.work]
        return "" if any(one.begin(name) for one, name in self._shuffled(turns)) else None

    def _carry_out(self) -> str | None:
        working = [one for one in self._world.processes() if one.passes]
        if not working:
            return None
        one = self._rng.choice(working)
        index = self._rng.randrange(len(one.passes))
        call = one.passes[index].call
        fate = self._world.odds.fate(may_refuse=call.is_write)
        if call.is_api and isinstance(one, Handler) and one.node.is_unreachable:
            fate = "request lost"
        elif fate != "done":
            self._world.fault(fate)
        return self._world.carry(one, index, fate)

    def _people(self) -> str | None:
        done = self._world.people.act()
        return None if done == NOTHING else f"user: {done}"

    def _kubelet(self) -> str | None:
        due = [(node, step) for node in self._world.nodes for step in node.kubelet_steps()]
        if not due:
            return None
        node, (key, uid) = self._rng.choice(due)
        node.kubelet_step(key, uid)
        return f"{node.name} kubelet: {key}"

    def _host(self) -> str | None:
        due = [(node, step) for node in self._world.nodes for step in node.host_steps()]
        if not due:
            return None
        node, one = self._rng.choice(due)
        node.host_step(one)
        return f"{node.name} launcher of {one.vmi}: {'up' if one.is_up else 'over'}, {one.state and one.state.reason}"

    def _session(self) -> str | None:
        alive = [one for one in self._world.handlers.values() if not one.is_dead]
        steps = [(handler, step) for handler in alive for step in handler.sessions.steps()]
        if not steps:
            return None
        handler, step = self._rng.choice(steps)
        step()
        return f"{handler.name}: {step.__name__.strip('_').replace('_', ' ')}"

    def _collect(self) -> str | None:
        if collect_pods(self._world.store):
            return "pod garbage collector"
        return "garbage collector" if collect_garbage(self._world.store) else None

    def _time(self) -> str | None:
        self._world.true.advance(self._rng.choice((0.01, 0.1, 1.0, 10.0, 60.0)))
        return ""

    def _guest(self) -> str | None:
        guests = [one for node in self._world.nodes for one in node.guests() if not one.is_starting]
        if not guests:
            return None
        one = self._rng.choice(guests)
        how = self._rng.choice(("shut down", "crashed"))
        one.end_guest(how)
        return f"guest of {one.vmi}: {how}"

    def _crash(self) -> str | None:
        world = self._world
        one = self._rng.choice(world.controllers)
        self._kill(one)
        world.controllers.remove(one)
        if not world.controllers:
            world.start_controller()
        world.oracles.is_one_leader_since = world.store.version + 1
        return f"{one.name}: crash"

    def _kill(self, one: Process) -> None:
        """End a process; a request that is out may still take effect."""
        self._world.fault("crash")
        if one.passes and self._rng.random() < 0.5:
            self._world.carry(one, self._rng.randrange(len(one.passes)), "answer lost")
        one.die(None, is_request_out=False)

    def _second_leader(self) -> str | None:
        """A new leader while the old one does not know yet: both act until one crashes."""
        if len(self._world.controllers) > 1:
            return None
        self._world.start_controller()
        self._world.oracles.is_one_leader_since = 1 << 60
        self._world.fault("second leader")
        return f"{self._world.controllers[-1].name}: leads as well"

    def _cut(self) -> str | None:
        node = self._node()
        if node.is_cut_off:
            return None
        node.is_cut_off = True
        self._taint(node, UNREACHABLE)
        self._world.fault("cut")
        return f"{node.name}: cut off"

    def _cut_and_force(self) -> str | None:
        """What people do about a node that is not reached."""
        text = self._cut()
        if text is None:
            return None
        self._world.fault("cut and force")
        return f"{text}; user: {self._world.people.force_delete_on(text.partition(':')[0])}"

    def _heal(self) -> str | None:
        node = self._node()
        if not node.is_unreachable:
            return None
        self.heal(node)
        return f"{node.name}: healed"

    def heal(self, node: Node) -> None:
        """Let a node come back; where the power was off, its virt-handler begins anew."""
        node.heal()
        if self._world.handlers[node.name].is_dead:
            self._world.start_handler(node)

    def _power(self) -> str | None:
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

    def _fence(self) -> str | None:
        """A person who has seen that a node is off says so."""
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

    def _handler_crash(self) -> str | None:
        one = self._world.handlers[self._node().name]
        if one.is_dead:
            return None
        self._kill(one)
        if one.node.is_unreachable:
            return f"{one.name}: crash"  # it comes back, and cannot list anything, when the node is healed
        self._world.start_handler(one.node)
        return f"{one.name}: crash and restart"

    def _daemon(self) -> str | None:
        """A launcher's libvirtd dies; the guest lives on, and its supervisor starts another."""
        up = [one for node in self._world.nodes for one in node.launchers.values() if one.is_listening]
        steady = [one for one in up if not one.is_starting]
        if not steady:
            return None
        one = self._rng.choice(steady)
        one.lose_daemon()
        self._world.fault("libvirtd")
        return f"libvirtd of {one.vmi}: dies"

    def _clock(self) -> str | None:
        self._rng.choice([one.clock for one in self._world.processes()]).offset = self._rng.choice(OFFSETS)
        self._world.fault("clock")
        return "a clock steps"
