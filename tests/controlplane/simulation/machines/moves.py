# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The random steps. Each returns what it did, "" for trivial steps, None when there was nothing to do."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from controlplane.api.objects.resources import LEASE, Key
from controlplane.links.handler import Verb
from tests.controlplane.simulation.agent import Agent
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.kubernetes import (
    OUT_OF_SERVICE,
    UNREACHABLE,
    collect_garbage,
    collect_pods,
    evict,
)
from tests.controlplane.simulation.launcher import PAUSED_BY_USER, STALLED, Launcher
from tests.controlplane.simulation.machines.hands_on_pods import NOTHING
from tests.controlplane.simulation.machines.mishaps import MachineMishaps
from tests.controlplane.simulation.machines.moments import STARTS, Moments
from tests.controlplane.simulation.machines.odds import SLOW_DELIVERY
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.controlplane.simulation.process import BY_KIND, Process
from tests.controlplane.simulation.watching import WatchingCache
from tests.support.calls import LOST, READ, Call

Move = Callable[[], str | None]
LATE = 0.2
"""How often watches deliver events before the response to a critical call; always when the response says that the
shown object is gone, and another of its name may follow.
"""
ANSWERED_LAST = 0.7
"""How often another call comes before a late response."""
REPLAYED_EVENTS = (0, 0, 1, 4)
"""Events that a resumed stream repeats."""
UNANSWERED_STARTS = 0.5
WITHHELD_GRANTS = 0.9
ENDS_UNSEEN = 0.3
"""How often guest and libvirtd end right after the response to a start."""
OVERTAKING = 20
"""Events of each watch."""
LOOKS_EVERY = 16
"""Steps between two checks for lost work."""


Meets = Literal["shut down", "crashed", "pause", "unpause"]
USER_ACTIONS: tuple[Meets, ...] = ("pause", "unpause")
PATIENT = 0.7
"""How often a user waits for the end of a freeze."""
AGENTS_LEAVE = 0.2
"""How often a connected agent disconnects instead of a freeze or thaw."""
THAW_AFTER = (5, 60, 300)
"""Seconds."""
USER_AFTER_PAUSE = 0.7
"""How often a user acts next on a paused guest."""
GUEST_EVENTS: tuple[Meets, ...] = (
    *("shut down", "crashed") * 3,
    *USER_ACTIONS,
)
"""More ends than pauses: a guest that ends before it was observed as running is the hard case."""


class Moves:
    def __init__(self, world: MachineWorld) -> None:
        self._world = world
        self._rng = world.rng
        self._moments = Moments(world)
        self.mishaps = mishaps = MachineMishaps(world)
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
            "agent": self._agent,
            "crash": mishaps.end_controller,
            "second leader": mishaps.second_leader,
            "relist": mishaps.lose_history,
            "bookmark": self._bookmark,
            "repeat": self._repeat,
            "cut": mishaps.cut,
            "cut and force": mishaps.cut_and_force,
            "heal": mishaps.heal_one,
            "power": mishaps.power,
            "fence": mishaps.fence_one,
            "evict": lambda: evict(world.store, UNREACHABLE, OUT_OF_SERVICE),
            "handler crash": mishaps.end_handler,
            "daemon": mishaps.daemon,
            "clock": mishaps.clock,
            "emulation": mishaps.emulation,
            "I/O error": mishaps.io_error,
            "blind": mishaps.blind,
            "break": mishaps.break_or_mend,
        }

    def step(self) -> None:
        """Let a random actor move."""
        while (text := self._by_name[self._world.odds.move()]()) is None:
            pass
        self._world.note(text)
        if self._world.steps % LOOKS_EVERY == 0:
            self._world.look_for_undone()
        self._world.check()

    def _reachable(self) -> list[tuple[str, WatchingCache]]:
        """List the caches that can receive events from the API server."""
        return [(process.role, cache) for process in self._world.reachable() for cache in process.caches]

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

    def _bookmark(self) -> str | None:
        self._rng.choice(self._reachable())[1].bookmark()
        return ""

    def _repeat(self) -> str | None:
        cache = self._rng.choice(self._reachable())[1]
        if self._rng.random() < 0.5:
            cache.repeat()
        else:
            cache.end_stream(self._rng.choice(REPLAYED_EVENTS))
        return ""

    def _begin(self) -> str | None:
        turns = [(process, name) for process in self._world.processes() for name in process.due()]
        if not turns:
            return None
        process, name = self._rng.choice(turns)
        process.begin(name)
        return ""

    def _carry_out(self) -> str | None:
        working = [process for process in self._world.processes() if process.passes]
        if not working:
            return None
        process = self._rng.choice(working)
        index = self._pick(process)
        call = process.passes[index].call
        if process.passes[index].came is not None:
            return self._world.carry(process, index, "answer lost" if self._is_cut_off(process, call) else "done")
        return self._carry_call(process, index, call)

    def _pick(self, process: Process) -> int:
        """Choose a call; calls already carried out are mostly answered after the others."""
        undone = [index for index, each in enumerate(process.passes) if each.came is None]
        if undone and self._rng.random() < ANSWERED_LAST:
            return self._rng.choice(undone)
        return self._rng.randrange(len(process.passes))

    def _carry_call(self, process: Process, index: int, call: Call) -> str:
        meddled = self._moments.meddle(process, call)
        if meddled:
            self._world.fault("moment")
            return meddled
        fate = self._world.odds.fate(may_refuse=call.is_write)
        if call.verb in STARTS and self._is_mute(process):
            fate = self._rng.choice(LOST)
        if self._world.odds.is_withheld and self._is_grant(call) and self._rng.random() < WITHHELD_GRANTS:
            fate = "throttled"
        is_gone = process.passes[index].is_known and call.verb == READ and call.key not in self._there(call.kind)
        if self._is_cut_off(process, call):
            fate = "request lost"
        elif isinstance(process, Handler) and self._moments.breaks(call):
            return self.mishaps.end_in_start(process, index)
        elif fate != "done":
            self._world.fault(fate)
            if fate == "answer lost" and self._rng.random() < self._world.odds.meddling:
                return self._world.carry(process, index, fate, lambda: self._build_on(process, call))
        elif call.is_api and self._rng.random() < self._world.odds.meddling * (1.0 if is_gone else LATE):
            return self._world.carry(process, index, fate, lambda: self._overtake(process, call)) + ", and is overtaken"
        elif call.verb == STARTS[-1] and self._rng.random() < self._world.odds.meddling * ENDS_UNSEEN:
            return (
                self._world.carry(process, index, fate, lambda: self.mishaps.end_unseen(call.key))
                + ", and all of it ends"
            )
        elif self._rng.random() < self._world.odds.lateness:
            self._world.fault("late answer")
            return self._world.carry(process, index, fate, is_late=True)
        return self._world.carry(process, index, fate)

    @staticmethod
    def _is_grant(call: Call) -> bool:
        return call.is_write and "activePods" in (call.asked.get("patch", {}).get("status") or {})

    def _is_mute(self, process: Process) -> bool:
        """Whether a start gets no response this time."""
        is_there = isinstance(process, Handler) and process.node.name == self._world.odds.mute
        return is_there and self._rng.random() < UNANSWERED_STARTS

    def _there(self, kind: str) -> Collection[Key]:
        return [key for key, _unused in self._world.store.list(BY_KIND[kind])]

    def _build_on(self, process: Process, call: Call) -> None:
        """Let something follow from a call before its caller has the response."""
        done = self._moments.follow(process, call)
        if done:
            self._world.note(done)

    def _overtake(self, process: Process, call: Call) -> None:
        """Let another writer change the target, and deliver all events before the response."""
        self._moments.follow(process, call)
        self._world.fault("late")
        for cache in process.caches:
            for _unused in range(OVERTAKING):
                if cache.is_behind:
                    cache.advance()

    def _is_cut_off(self, process: Process, call: Call) -> bool:
        """Whether a call of virt-handler is blocked: all of its node, or only those about its Lease."""
        if not isinstance(process, Handler):
            return False
        is_unheard = call.kind == LEASE.kind and process.node.name == self._world.odds.unheard
        return is_unheard or (call.is_api and process.node.is_unreachable)

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
        node, item = self._rng.choice(due)
        node.host_step(item)
        return (
            f"{node.name} launcher of {item.vmi}: {'up' if item.is_up else 'over'}, {item.state and item.state.reason}"
        )

    def _session(self) -> str | None:
        alive = [item for item in self._world.handlers.values() if not item.is_dead]
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
        guests = [guest for node in self._world.nodes for guest in node.guests() if not guest.is_starting]
        if not guests:
            return None
        guest = self._rng.choice(guests)
        is_paused = guest.state in (STALLED, PAUSED_BY_USER) and self._rng.random() < USER_AFTER_PAUSE
        how = self._rng.choice(USER_ACTIONS if is_paused else GUEST_EVENTS)
        if how in ("pause", "unpause"):
            return self._press(guest, how)
        guest.end_guest(how)
        return f"guest of {guest.vmi}: {how}"

    def _agent(self) -> str | None:
        """Connect or disconnect a guest's agent, or have a user freeze or thaw a guest."""
        guests = [guest for node in self._world.nodes for guest in node.guests() if guest.has_run]
        if not guests:
            return None
        guest = self._rng.choice(guests)
        if guest.agent is None or self._rng.random() < AGENTS_LEAVE:
            guest.let_agent(Agent(self._rng) if guest.agent is None else None)
            return f"agent of {guest.vmi}: {'disconnects' if guest.agent is None else 'connects'}"
        if guest.is_frozen and self._rng.random() < PATIENT:
            return None
        return self._press(guest, "unfreeze" if guest.is_frozen else "freeze", self._rng.choice(THAW_AFTER))

    def _press(self, guest: Launcher, verb: Verb, thaw_after: int = 0) -> str | None:
        """Have a user send a request through a live virt-handler of the guest's node, or get no response."""
        there = (item for item in self._world.handlers.values() if not item.is_dead)
        handler = next((item for item in there if guest.pod_uid in item.node.launchers), None)
        if handler is None:
            return None
        handler.press(guest, verb, thaw_after)
        return f"user: {verb} the guest of {guest.vmi}"
