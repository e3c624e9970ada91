# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random events against the quarantine alone: runs that fail on one node and start on another, marks of two kinds.

A node is quarantined only when enough machines of enough tenants recently speak against it, and half of all nodes
remain; our mark expires, a user's never. In the end every node with enough evidence is marked while nodes can be
spared.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime

from kubevirt_api.names import QUARANTINED, SCHEDULABLE

from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.virt_controller.quarantine.checked_process import LASTS_SECONDS, RETRY_SECONDS, Process
from tests.support.breach import Breach
from tests.support.calls import Call, Fate
from tests.support.clock import SimulatedClock
from tests.support.store import Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
NODES = ("node-1", "node-2", "node-3", "node-4")
MACHINES = (("red", "web"), ("red", "db"), ("blue", "web"), ("blue", "db"), ("blue", "ci"))
SETTLE_SECONDS = 60.0
RECOVERIES = 0.1
"""How often a guest starts on any node."""
LAST_RUNS = 12
"""Successful starts before the final check of the marks."""
MEDDLING = 0.2
"""How often a node becomes unschedulable or cordoned at the moment of a read."""
BY_HAND = "do-not-touch"
FATES: tuple[Fate, ...] = (*("done",) * 5, "request lost", "answer lost", "forbidden")
QUESTION_FATES = FATES[:-1]


class MarkPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.true = SimulatedClock()
        self.store = Store(self.true, (NODE, VMI))
        self.store.actor = "user"
        for name in NODES:
            self.store.create(NODE, "", {"metadata": {"name": name, "labels": {SCHEDULABLE: "true"}}, "spec": {}})
        for tenant, name in MACHINES:
            self.store.create(VMI, tenant, {"metadata": {"name": name}, "spec": {}})
        self.bad = self.rng.sample(NODES, 2)
        self._ground: dict[str, str] = {}
        """Why a node must not be marked, at the leader's last look; without the nodes to be marked."""
        self._looked_at = 0.0
        """The time of that look, by its clock."""
        self._fit = 0
        """How many nodes were schedulable apart from marks."""
        self._answered: dict[str, Json | None] = {}
        """Nodes that it has read since, as they were."""
        self.made = 0
        self.leader, self.standby = self._process(), self._process()
        self.leader.lead()

    def run(self, steps: int) -> None:
        """Take random steps, and come to rest. Raises Breach."""
        moves = (self._work, self._come_up, self._pass_time, self._change_node, self._mark_by_hand, self._exchange)
        for _unused in range(steps):
            self.rng.choices(moves, (12, 6, 3, 1, 0.4, 0.2))[0]()
            self._hear()
        self._come_to_rest()

    def _process(self) -> Process:
        return Process(self.store, self.true, self.rng, self._looked)

    def _looked(self, process: Process) -> None:
        """Record the state on which the leader decides."""
        self._looked_at = process.clock.now()
        self._answered = {}
        self._fit = sum(_is_fit(body) for _unused, body in self.store.list(NODE))
        self._ground = {name: why for name in NODES if (why := self._why_not(name))}

    def _hear(self) -> None:
        for item in (self.leader, self.standby):
            item.hear()

    def _work(self, *, is_calm: bool = False) -> bool:
        """Let the leader work; return whether it had something to do."""
        if self.leader.call is None:
            if not self.leader.is_due:
                self._judge_rest()
                return False
            self.leader.begin()
        else:
            call = self.leader.call
            fate = "done" if is_calm else self.rng.choice(FATES if call.is_write else QUESTION_FATES)
            if not (is_calm or call.is_write) and self.rng.random() < MEDDLING:
                self._change_node(call.key.name)
            if not call.is_write and fate == "done":
                self._answered[call.key.name] = dict(self.store.list(NODE)).get(call.key)
            self.store.actor = "controller"
            before = self._marks()
            self.leader.carry_out(fate)
            self._note_marks(before)
        if self.leader.call is not None and self.leader.call.is_write:
            self._judge(self.leader.call)
        return True

    def _come_up(self) -> None:
        """Let a machine start, mostly after a failure on a broken node."""
        self.store.actor = "handler"
        (tenant, name), self.made = self.rng.choice(MACHINES), self.made + 1
        good = [item for item in NODES if item not in self.bad]
        failed_on = self.rng.choice(self.bad)
        node = self.rng.choice(NODES if self.rng.random() < RECOVERIES else good)
        is_to_blame = self.rng.random() < 0.8
        failed = {"attempt": 1, "nodeName": failed_on, "reason": "RunTimedOut", "message": "", "nodeFault": is_to_blame}
        owner = {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "name": name,
            "uid": name,
            "controller": True,
        }
        key = Key(tenant, f"{name}-{self.made}")
        self.store.create(VMI, tenant, {"metadata": {"name": key.name, "ownerReferences": [owner]}, "spec": {}})
        for phase in ("Scheduled", "Running"):
            status = {"phase": phase, "nodeName": node, "failedAttempts": [failed]}
            self.store.patch(VMI, key, {"status": status}, subresource="status")
            self._hear()
        for item in (self.leader, self.standby):
            item.witness.came_up(tenant, name, node, failed_on if is_to_blame else "", item.clock.monotonic())
        if self.rng.random() < 0.6:
            self.store.delete(VMI, key)

    def _pass_time(self) -> None:
        self.true.advance(self.rng.choice((1.0, 10.0, 30.0, 120.0, 400.0)))

    def _change_node(self, name: str = "") -> None:
        self.store.actor = "user"
        key, is_back = Key("", name or self.rng.choice(NODES)), not name and self.rng.random() < 0.7
        if self.rng.random() < 0.5:
            self.store.patch(NODE, key, {"spec": {"unschedulable": not is_back}})
        else:
            self.store.patch(NODE, key, {"metadata": {"labels": {SCHEDULABLE: "true" if is_back else "false"}}})

    def _mark_by_hand(self) -> None:
        self.store.actor, before = "user", self._marks()
        name = self.rng.choice(NODES)
        mark = None if before[name] is not None else BY_HAND
        self.store.patch(NODE, Key("", name), {"metadata": {"labels": {QUARANTINED: mark}}})
        self._note_marks(before)

    def _exchange(self) -> None:
        """Make the standby the leader, with what it has observed."""
        self.leader.end()
        self.leader, self.standby = self.standby, self._process()
        self.leader.lead()

    def _marks(self) -> dict[str, str | None]:
        return {key.name: body["metadata"]["labels"].get(QUARANTINED) for key, body in self.store.list(NODE)}

    def _note_marks(self, before: dict[str, str | None]) -> None:
        """When the mark of a node has changed, its former evidence is used up."""
        for name, mark in self._marks().items():
            if mark != before[name]:
                for item in (self.leader, self.standby):
                    item.witness.charges.pop(name, None)

    def _why_not(self, name: str) -> str:
        """Return why a node may not be marked now; "" when it may."""
        nodes, leader = dict(self.store.list(NODE)), self.leader
        fit = [key.name for key, body in nodes.items() if _is_fit(body)]
        staying = [item for item in fit if self._marks()[item] is None and item != name]
        tenants = len({key.namespace for key, _unused in self.store.list(VMI)}) or 1
        reasons = {
            "it is marked": self._marks()[name] is not None,
            "no machines are sent there": name not in fit,
            f"{len(staying)} of {len(fit)} would stay": len(staying) * 2 < len(fit),
            "too few have spoken against it": not leader.witness.is_enough(name, leader.clock.monotonic(), tenants),
            "it has just begun to lead": leader.clock.monotonic() - leader.leading_since < SETTLE_SECONDS,
        }
        return next((why for why, applies in reasons.items() if applies), "")

    def _judge(self, call: Call) -> None:
        missing = [item for item in ("uid", "resource_version") if not call.asked.get(item)]
        if missing:
            raise Breach(f"marks: {call}: it names no {' and no '.join(missing)}")
        name, mark = call.key.name, call.asked["patch"]["metadata"]["labels"][QUARANTINED]
        decided_on = self.store.history[int(call.asked["resource_version"]) - 1]
        before = (decided_on.after or {})["metadata"]["labels"].get(QUARANTINED)
        now = self.leader.clock.now()
        if mark is None:
            until = _time_of(before)
            if until is None or not (now >= until or self._marked_for(name) >= LASTS_SECONDS):
                raise Breach(f"marks: {name} is let go, and is marked {before} at {now}")
            return
        if name in self._ground:
            raise Breach(f"marks: {name} is marked, and {self._ground[name]}")
        if len(self._answered) * 2 < self._fit:
            raise Breach(f"marks: {name} is marked, and {len(self._answered)} of {self._fit} nodes were asked for")
        taken_for = [item for item, body in self._answered.items() if body is None or not _is_free(body)]
        if taken_for:
            raise Breach(f"marks: {name} is marked, and {taken_for[0]}, which was asked for, takes no machines")
        if not self._looked_at - 1.0 <= (_time_of(mark) or 0.0) - LASTS_SECONDS <= now:
            raise Breach(f"marks: {name} is marked until {mark} at {now}")

    def _judge_rest(self) -> None:
        """A waiting leader has nothing to do: no node needs a mark, and none of our marks has expired."""
        leader = self.leader
        if leader.due is not None and leader.due - leader.clock.monotonic() <= RETRY_SECONDS:
            return
        forgotten = [name for name in NODES if not self._why_not(name)]
        if forgotten:
            raise Breach(f"marks: {forgotten[0]} deserves it, and nobody comes back to it")
        for name, mark in self._marks().items():
            seen_for = min(self._marked_for(name), self.true.seconds - leader.born)
            if _time_of(mark) is not None and seen_for > LASTS_SECONDS + RETRY_SECONDS:
                raise Breach(f"marks: {name} has been marked for {seen_for:.0f} s, and nobody comes back to it")

    def _marked_for(self, name: str) -> float:
        """Return how long a node has had its current mark."""
        since, mark = self.true.seconds, self._marks()[name]
        for history in reversed(self.store.histories[NODE.kind]):
            if history.key.name == name and history.after is not None:
                if history.after["metadata"]["labels"].get(QUARANTINED) != mark:
                    break
                since = history.at
        return self.true.seconds - since

    def _come_to_rest(self) -> None:
        """First mark the nodes that need it; when all marks have expired, only users' marks are left."""
        for _unused in range(LAST_RUNS):
            self._come_up()
        self._calm(until=self.true.seconds + SETTLE_SECONDS + RETRY_SECONDS)
        by_hand = [name for name, mark in self._marks().items() if mark == BY_HAND]
        self._calm(until=self.true.seconds + 2 * LASTS_SECONDS)
        remaining = [name for name, mark in self._marks().items() if mark is not None]
        if remaining != by_hand:
            raise Breach(f"marks: {remaining} are marked for good, and persons have marked {by_hand}")

    def _calm(self, until: float) -> None:
        """Advance the time with the leader as the only actor."""
        for _unused in range(400):
            self._hear()
            if self._work(is_calm=True):
                continue
            due = self.leader.due
            remaining = until - self.true.seconds
            wait = remaining if due is None else min(remaining, due - self.leader.clock.monotonic() + 0.001)
            if remaining <= 0:
                return
            self.true.advance(max(wait, 0.001))
        raise Breach("marks: it does not come to rest")


def _is_fit(node: Json) -> bool:
    return node["metadata"]["labels"].get(SCHEDULABLE) == "true" and not node["spec"].get("unschedulable")


def _is_free(node: Json) -> bool:
    return _is_fit(node) and QUARANTINED not in node["metadata"]["labels"]


def _time_of(mark: str | None) -> float | None:
    """Return the time of one of our marks in seconds; None for a user's."""
    if mark is None or mark == BY_HAND:
        return None
    return datetime.strptime(mark, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
