# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two complete virt-controllers on connections with every possible fault.

Only the leader's writes are applied; a failed request says nothing about an object; a kind that is not served or may
not be read does not count as absent, and is watched again later; no foreign disk is used for a machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.resources import DATA_VOLUME, EVENT, LEASE, NODE, POD, Key, Resource
from tests.controlplane.simulation.api_server import EXPIRED, NO_EVENT, ApiServer
from tests.controlplane.simulation.disks import Disks
from tests.controlplane.simulation.kubernetes import collect_garbage
from tests.controlplane.simulation.whole import NAMESPACE, RESOURCES, Whole, as_drawn, on_the_wire_alone
from tests.controlplane.simulation.wire import DONE, FATES, Exchange, Stream
from tests.support.breach import Breach
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.store import Store

MAY_GO: tuple[Resource, ...] = (DATA_VOLUME, DATA_VOLUME, POD, NODE)
"""Kinds that are not served for a while, as after a restart of an API server."""
KNOWN_SECONDS = 40.0
"""The time until all is known once no faults are left, with the pause between two looks."""
REFUSALS = [fate for fate in FATES if "404" in fate.name or fate.name in ("no such kind", "forbidden")]
ROUNDS_AWAKE = 4
SILENT_NODES = 0.4
LASTS: tuple[int | None, ...] = (None, 0, -5, 20, 10**6)
"""What the last Lease of a virt-handler contains."""
USUAL_SECONDS, LONGEST_SECONDS = 40, 120
LATE_SECONDS = 10.0
HEARD_SECONDS = 80.0
"""The time until an Event is received."""
REST_SECONDS = 4.0
"""The time until all is done, once all is known."""
STRETCH = 50
ASLEEP, ASLEEP_SECONDS = 0.1, (2.0, 9.0, 11.0, 20.0)
"""How often, and how long, a leader is suspended while its response comes."""
REPLACED = 0.1
"""How often the target of a write was replaced by another object of its name."""
ONE_AT_A_TIME = 4
"""Events at rest whose effect is checked alone."""
SCENES = 0.6
"""How often a machine is then created, with its objects in any order."""


class WirePlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._true = SimulatedClock()
        self._store = Store(self._true, RESOURCES)
        for number in range(5):
            self._store.create(NODE, "", {"metadata": {"name": f"node-{number}"}, "spec": {}})
        self._server = ApiServer(self._store)
        self._disks = Disks(self._store, self._rng)
        self._seen = 0
        self._count = 0
        self._trouble = 0.0
        self._is_served = True
        self._all: list[Whole] = []

    def run(self, steps: int) -> None:
        """Take random steps, and come to rest from time to time. Raises Breach."""
        with as_drawn(self._rng), on_the_wire_alone():
            try:
                self._all = [self._begin(), self._begin()]
                self._come_to_rest()
                for number in range(1, steps + 1):
                    self._step()
                    if number % STRETCH == 0 or number == steps:
                        self._come_to_rest()
                        self._trouble = self._rng.choice((0.0, 0.1, 0.3, 0.6))
            finally:
                for item in self._all:
                    item.end()

    def _begin(self) -> Whole:
        self._count += 1
        clock = WrongClock(self._true, self._rng.choice((0.0, -3600.0, 90.0)), self._true.seconds - 1e3 * self._count)
        return Whole(self._server, f"virt-controller-{self._count}", clock)

    def _step(self) -> None:
        moves = (self._answer, self._feed, self._break, self._happen, self._pass_time, self._serve, self._kill)
        self._rng.choices(moves, (30, 15, 1, 4, 4, 0.6, 0.3))[0]()
        self._check()

    def _answer(self) -> None:
        waiting = [(by, item) for by in self._all for item in by.wire.pending]
        if waiting:
            by, item = self._rng.choice(waiting)
            fates = [fate for fate in FATES if item.meets(fate)]
            fate = self._rng.choice(fates) if self._rng.random() < self._trouble else DONE
            if item.is_write and self._rng.random() < REPLACED:
                self._disks.replace(item.target)
            self._carry_out(by, item, fate, is_asleep=by.is_leader and self._rng.random() < ASLEEP)

    def _carry_out(self, by: Whole, one: Exchange, fate: Any, *, is_asleep: bool = False) -> None:
        """Let a request meet its fate. is_asleep: the process is suspended when the response comes, and wakes later."""
        by.wire.pending.remove(one)
        one.carry_out(fate)
        if is_asleep:
            self._true.advance(self._rng.choice(ASLEEP_SECONDS))
        by.carry_out(one)

    def _feed(self) -> None:
        streams = [(by, stream) for by in self._all for stream in by.wire.streams]
        if streams:
            by, stream = self._rng.choice(streams)
            self._tell(by, stream, self._rng.choice((1, 1, 2, 5)))

    def _tell(self, by: Whole, one: Stream, most: int) -> bool:
        """Send the next events in chunks; return whether there were any."""
        if one.target.resource in self._server.unserved:
            one.send(b"")
            by.settle()
            return True
        lines = [*islice(self._lines(one), most)]
        if not lines:
            return False
        data = b"".join(lines)
        cut = self._rng.randrange(len(data))
        for piece in (data[:cut], data[cut:]):
            if piece:
                one.send(piece)
        by.settle()
        return True

    def _lines(self, one: Stream) -> Iterator[bytes]:
        for version, line in self._server.events(one.target, one.resource_version):
            one.resource_version = version
            yield line
            if line == NO_EVENT:
                return
        if self._store.version > one.resource_version and one.target.resource != EVENT:
            one.resource_version = self._store.version
            yield self._server.bookmark(one.target)

    def _break(self) -> None:
        """End a stream in one of the possible ways."""
        streams = [(by, stream) for by in self._all for stream in by.wire.streams]
        if streams:
            by, stream = self._rng.choice(streams)
            how = self._rng.choice(("end", "half", "silence", "cut", "expired", "no event"))
            if how == "half":
                stream.send(b'{"type":"ADDED","obj')
            elif how == "expired":
                self._server.compacted[stream.target.resource] = self._store.version
                stream.send(EXPIRED)
            elif how == "no event":
                self._server.garbled[stream.target.resource] = self._store.version + 1
            ends: dict[str, bytes | Exception] = {"silence": TimeoutError(), "cut": ConnectionResetError()}
            stream.send(ends.get(how, b""))
            by.settle()

    def _happen(self) -> None:
        self._disks.act()
        if self._rng.random() < 0.5:
            collect_garbage(self._store)

    def _pass_time(self) -> None:
        self._true.advance(self._rng.choice((0.01, 0.1, 1.0, 3.0, 10.0)))
        for item in self._all:
            item.settle()

    def _serve(self) -> None:
        """Stop serving a kind, or start again."""
        kind = self._rng.choice(MAY_GO)
        self._server.unserved ^= {kind}
        self._store.actor = "user"
        if kind == DATA_VOLUME and self._rng.random() < 0.5:
            self._disks.define(is_served=kind not in self._server.unserved)

    def _kill(self) -> None:
        index = self._rng.randrange(len(self._all))
        for item in self._all[index].wire.pending:
            if self._rng.random() < 0.5:
                item.carry_out(DONE)
        self._all[index].end()
        self._all[index] = self._begin()

    def _check(self) -> None:
        leading = [item.name for item in self._all if item.is_leader]
        if len(leading) > 1:
            raise Breach(f"whole: {' and '.join(leading)} lead at the same time")
        new, self._seen = self._store.history[self._seen :], len(self._store.history)
        for change in new:
            if wrong := self._disks.wrong(change):
                raise Breach(f"whole: {wrong}")
        idle, self._store.idle_writes = self._store.idle_writes, []
        if any(actor == "controller" for actor, _unused in idle):
            raise Breach(f"whole: {idle[0][1]} is patched with what it says")
        for index, item in enumerate(self._all):
            if item.is_over:
                item.end()
                self._all[index] = self._begin()

    def _come_to_rest(self) -> None:
        """End all faults: then each process has the complete state, one leads, and the machines are as wanted."""
        self._is_served = self._rng.random() < 0.8
        self._server.unserved = set() if self._is_served else {DATA_VOLUME}
        self._disks.define(is_served=self._is_served)
        self._disks.finish()
        self._pass(KNOWN_SECONDS)
        for item in self._all:
            if wrong := item.untrue():
                raise Breach(f"whole: {item.name} is not told, and all goes well: {wrong}")
        leading = [item for item in self._all if item.is_leader]
        if len(leading) != 1:
            raise Breach("whole: all goes well, and nobody leads")
        self._tell_of_pods(leading[0])
        self._judge("it has come to rest")
        self._let_node_fall_silent()
        self._refuse_collections()
        self._sleep_through(leading[0])
        self._disks.is_calm = True
        for done in self._disks.scene() if self._rng.random() < SCENES else self._disks.acts(ONE_AT_A_TIME):
            self._pass(REST_SECONDS)
            self._judge(done)
        self._disks.is_calm = False

    def _judge(self, done: str) -> None:
        if wrong := self._disks.not_as_wanted(is_served=self._is_served):
            raise Breach(f"whole: {done}, and {wrong}")

    def _let_node_fall_silent(self) -> None:
        """Stop the heartbeat of a virt-handler: its node becomes unschedulable when its Lease has expired."""
        if self._rng.random() > SILENT_NODES:
            return
        done, (within, node) = self._rng.choice(LASTS), (0.0, self._rng.choice(self._store.list(NODE))[0])
        lasts = USUAL_SECONDS if done is None or done < 1 else min(done, LONGEST_SECONDS)
        self._store.actor, lease = "handler", Key(NAMESPACE, f"virt-handler-{node.name}")
        spec = {"renewTime": f"{self._true.seconds:.6f}", "leaseDurationSeconds": done}
        if self._store.find(LEASE, lease) is None:
            self._store.create(LEASE, NAMESPACE, {"metadata": {"name": lease.name}, "spec": spec})
        self._store.patch(LEASE, lease, {"spec": spec})
        self._store.patch(NODE, node, {"metadata": {"labels": {SCHEDULABLE: "true"}}})
        began = self._true.seconds
        while self._is_listed(node) and within < lasts + LATE_SECONDS:
            self._pass(1.0)
            within = self._true.seconds - began
        if self._is_listed(node) or within < lasts - 1.0:
            how = "is listed" if self._is_listed(node) else "is taken off the list"
            raise Breach(f"whole: a Lease says {done} s, stands still for {within:.1f} s, and its node {how}")

    def _sleep_through(self, leader: Whole) -> None:
        """Suspend the leader's host while it works: when it wakes it must not lead any more."""
        self._disks.act()
        for _unused in range(ROUNDS_AWAKE):
            for stream in [*leader.wire.streams]:
                self._tell(leader, stream, 5)
            own = [item for item in leader.wire.pending if item.lane == "requests" and item.target.key is not None]
            if own:
                self._carry_out(leader, own[0], DONE, is_asleep=self._rng.random() < 0.5)
        self._pass(KNOWN_SECONDS)

    def _refuse_collections(self) -> None:
        """End streams, and answer new lists with 404 or 403."""
        for by in self._all:
            for stream in self._rng.sample(by.wire.streams, 3):
                stream.send(b"")
                by.settle()
            for item in [item for item in by.wire.pending if item.target.is_watch]:
                self._carry_out(by, item, self._rng.choice(REFUSALS))

    def _is_listed(self, node: Key) -> bool:
        return bool(self._store.get(NODE, node)["metadata"]["labels"][SCHEDULABLE] == "true")

    def _tell_of_pods(self, leader: Whole) -> None:
        """Let a kubelet write Events about a Pod, one of them while their stream ends."""
        self._server.garbled.pop(EVENT, None)  # events before its next watch are lost to it
        for count in (1, 2):
            self._tell_of_pod()
            until = self._true.seconds + HEARD_SECONDS
            while len(leader.heard) < count and self._true.seconds < until:
                self._pass(REST_SECONDS)
            for stream in leader.wire.streams:
                if stream.target.resource == EVENT:
                    stream.send(b"")
                    break
        if len(leader.heard) != 2 or not leader.is_leader:
            raise Breach(f"whole: two Events about a Pod are written, and the leader hears of {len(leader.heard)}")
        leader.heard.clear()

    def _tell_of_pod(self) -> None:
        self._store.actor = "kubelet"
        about = {"kind": "Pod", "namespace": "default", "name": "any", "uid": "any"}
        meta = {"name": f"any.{self._store.version}"}
        self._store.create(EVENT, "default", {"metadata": meta, "involvedObject": about, "type": "Warning"})

    def _pass(self, seconds: float) -> None:
        until = self._true.seconds + seconds
        while self._true.seconds < until:
            self._go_on()
            due = min((remaining for item in self._all if (remaining := item.loop.next_due()) is not None), default=5.0)
            self._true.advance(min(max(due, 0.001), 5.0))
            for item in self._all:
                item.settle()
            self._check()

    def _go_on(self) -> None:
        """Answer all requests and deliver all events until there are none."""
        for _unused in range(500):
            moved = collect_garbage(self._store)
            for by in self._all:
                for item in [*by.wire.pending]:
                    moved = True
                    if item in by.wire.pending:
                        self._carry_out(by, item, DONE)
                for stream in [*by.wire.streams]:
                    moved |= self._tell(by, stream, 50)
            self._check()
            if not moved:
                return
        raise Breach("whole: all goes well, and it does not come to rest")
