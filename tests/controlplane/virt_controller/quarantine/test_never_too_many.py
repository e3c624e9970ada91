# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random operations on the quarantine: lagging caches, lost responses, new leaders during writes, wrong clocks, users
who release nodes.

At least half of the nodes accept machines; no node is quarantined for the failures of one machine or one tenant, nor
twice; labels of users stay. In the end no quarantine lasts, and a node with enough failures is quarantined. A failure
names its seed.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from kubevirt_api.names import QUARANTINED

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.quarantine.quarantine_label import parse_label
from controlplane.virt_controller.quarantine.reconciler import ALL_NODES, QuarantineReconciler
from tests.controlplane.simulation.controller import Told
from tests.support.calls import Call, CallingApi, Fate, perform
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
FATES: tuple[Fate, ...] = ("done", "done", "done", "done", "request lost", "answer lost", "answer lost", "forbidden")
OFFSETS = (0.0, 0.0, -3600.0, 3600.0)
MACHINES = [Key(namespace, name) for namespace in ("a", "b", "c") for name in ("one", "two")]
SECONDS_OF_A_WRITE = 40.0
"""Seconds within which a write of a dying leader arrives, or never."""
SEEDS = 60
STEPS = 600


@dataclass
class Pass:
    coroutine: Coroutine[Call, Any, Outcome]
    call: Call


class Process:
    """A virt-controller that follows, and works as the leader."""

    def __init__(self, store: Store, clock: WrongClock) -> None:
        self.caches = {name: LaggingCache(store, name) for name in (NODE, VMI)}
        overlays = {kind: ReadYourWritesCache(cache) for kind, cache in self.caches.items()}
        self.clock = clock
        self.reconciler = QuarantineReconciler(
            nodes=overlays[NODE],
            vmis=overlays[VMI],
            api=ReadYourWritesApi(CallingApi(store), overlays),
            clock=clock,
            events=Told(),
            configuration=KubeVirtConfiguration,
        )
        for cache in self.caches.values():
            cache.start()
        self.work: Pass | None = None

    def begin(self) -> bool:
        """Begin a pass; return whether there is anything to do."""
        return self._go_on(reconcile(self.reconciler, ALL_NODES), None, None)

    def carry_out(self, fate: Fate) -> None:
        assert self.work is not None
        work, self.work = self.work, None
        self._go_on(work.coroutine, *perform(work.call, fate))

    def _go_on(self, coroutine: Any, result: Any, error: Exception | None) -> bool:
        try:
            call = coroutine.send(result) if error is None else coroutine.throw(error)
        except StopIteration:
            return False
        self.work = Pass(coroutine, call)
        return True


class Play:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.true = SimulatedClock()
        self.store = Store(self.true)
        self.nodes = [f"node-{number}" for number in range(self.rng.randrange(1, 6))]
        for name in self.nodes:
            labels = {"kubevirt.io/schedulable": "true"}
            self.store.create(NODE, "", {"metadata": {"name": name, "labels": labels}, "spec": {}})
        self.good = self.nodes[: self.rng.randrange(1, 1 + max(1, len(self.nodes) - 1))]
        """Nodes where most runs start; on the others most fail."""
        self.leader, self.standby = self.process(), self.process()
        self.leader.reconciler.begin()
        self.late: list[tuple[float, Call]] = []
        self.runs = 0
        self.charged: dict[str, set[Key]] = {name: set() for name in self.nodes}
        """Machines that have failed on a node by its own fault, and started on another."""
        self.judged = self.store.version
        self.marks = 0

    def process(self) -> Process:
        return Process(self.store, WrongClock(self.true, self.rng.choice(OFFSETS)))

    def step(self) -> None:
        choices = [
            (self.read, 10),
            (self.work, 12),
            (self.run, 4),
            (self.let_go, 0.3),
            (self.pass_time, 0.7),
            (self.exchange, 0.15),
        ]
        moves, weights = zip(*choices, strict=True)
        self.rng.choices(moves, weights)[0]()
        self.judge()

    def read(self) -> None:
        cache = self.rng.choice([*self.leader.caches.values(), *self.standby.caches.values()])
        how = self.rng.random()
        if how < 0.05:
            cache.relist()
        elif how < 0.2:
            cache.bookmark()
        for _unused in range(self.rng.choice((1, 3, 6))):
            if cache.is_behind:
                cache.advance()

    def work(self) -> None:
        if self.leader.work is None:
            self.leader.begin()
        else:
            self.store.actor = "controller"
            self.leader.carry_out(self.rng.choice(FATES))

    def run(self) -> None:
        """Fail a run on a node for a random reason, and let it start on another node, or on none."""
        self.begin_run(
            self.rng.choice(MACHINES),
            self.rng.choice(self.nodes),
            self.rng.choice(self.good if self.rng.random() < 0.97 else self.nodes),
            is_nodes=self.rng.random() < 0.9,
            comes_up=self.rng.random() < 0.9,
        )

    def begin_run(self, machine: Key, failed_on: str, on: str, *, is_nodes: bool, comes_up: bool) -> None:
        self.store.actor = "others"
        self.runs += 1
        owner = {"kind": "VirtualMachine", "name": machine.name, "uid": f"{self.runs}", "controller": True}
        key = Key(machine.namespace, f"{machine.name}-{self.runs}")
        meta = {"name": key.name, "ownerReferences": [owner]}
        self.store.create(VMI, key.namespace, {"metadata": meta, "spec": {}})
        failed = {"attempt": 1, "nodeName": failed_on, "reason": "UnexpectedAdmissionError", "nodeFault": is_nodes}
        for phase in ("Scheduled", "Running" if comes_up else "Failed"):
            status = {"phase": phase, "nodeName": on, "failedAttempts": [failed]}
            self.store.patch(VMI, key, {"status": status}, subresource="status")
        if is_nodes and comes_up and on != failed_on:
            self.charged[failed_on].add(machine)

    def let_go(self) -> None:
        self.store.actor = "others"
        patch = {"metadata": {"labels": {QUARANTINED: None}}}
        self.store.patch(NODE, Key("", self.rng.choice(self.nodes)), patch)

    def pass_time(self) -> None:
        for until, call in self.late:
            assert until >= self.true.seconds
            self.happen_late(call)
        self.late.clear()
        self.true.advance(self.rng.choice((1.0, 20.0, 40.0, 60.0)))

    def exchange(self) -> None:
        """Let the standby lead; the writes that the dying leader has sent arrive at once, later or never."""
        if self.leader.work is not None:
            self.late.append((self.true.seconds + SECONDS_OF_A_WRITE, self.leader.work.call))
            self.leader.work.coroutine.close()
        self.leader, self.standby = self.standby, self.process()
        self.leader.reconciler.begin()

    def happen_late(self, call: Call) -> None:
        if self.rng.random() < 0.7:
            self.store.actor = "controller"
            perform(call, "answer lost")

    def judge(self) -> None:
        new, self.judged = self.store.history[self.judged :], self.store.version
        for change in new:
            if change.resource == NODE and change.actor == "controller" and change.before and change.after:
                self.judge_mark(change.key.name, mark(change.before), mark(change.after))

    def judge_mark(self, name: str, before: str | None, after: str | None) -> None:
        if after is None:
            assert before is not None
            return
        self.marks += 1
        assert before is None, "marked twice"
        assert parse_label(after) is not None
        assert len(self.charged[name]) >= 3, "marked for fewer than three machines"
        assert len({failure.namespace for failure in self.charged[name]}) >= 2, "marked for one tenant's"
        staying = [node for node in self.nodes if mark(self.store.get(NODE, Key("", node))) is None]
        assert len(staying) * 2 >= len(self.nodes), f"{len(staying)} of {len(self.nodes)} stay"

    def settle(self) -> None:
        """Let the duration of a quarantine pass, and the leader work until it is idle."""
        for _unused in range(60):
            self.pass_time()
            self.true.advance(60)
            for _again in range(20):
                for cache in self.leader.caches.values():
                    while cache.is_behind:
                        cache.advance()
                    cache.bookmark()
                if self.leader.work is None and not self.leader.begin():
                    break
                while self.leader.work is not None:
                    self.store.actor = "controller"
                    self.leader.carry_out("done")
            else:
                raise AssertionError("does not come to rest")
            self.judge()

    def marked(self) -> list[str]:
        return [node for node in self.nodes if mark(self.store.get(NODE, Key("", node))) is not None]


def mark(node: Json) -> str | None:
    label: str | None = node["metadata"].get("labels", {}).get(QUARANTINED)
    return label


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_no_more_nodes_than_allowed_are_quarantined_and_none_forever(seed: int) -> None:
    play = Play(seed)
    for _unused in range(STEPS):
        play.step()
    play.settle()
    assert play.marked() == []
    if len(play.nodes) > 1:
        for machine in MACHINES[1:4]:
            play.begin_run(machine, play.nodes[-1], "node-0", is_nodes=True, comes_up=True)
        for cache in play.leader.caches.values():
            while cache.is_behind:
                cache.advance()
        play.leader.begin()
        while play.leader.work is not None:
            play.store.actor = "controller"
            play.leader.carry_out("done")
        play.judge()
        assert play.marked() == [play.nodes[-1]]


def test_the_seeds_quarantine_nodes() -> None:
    """Otherwise the plays prove nothing."""
    marks = []
    for seed in range(1, 11):
        play = Play(seed)
        for _unused in range(STEPS):
            play.step()
        marks.append(play.marks)
    assert sum(marks) > 10, marks
