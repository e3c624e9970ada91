# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random events against a replica set alone: lost responses, lagging and relisting caches, leader changes.

A member is only created while there are too few, and only deleted while there are too many. In the end the number is
right, the status says so, and no process writes any more, not even a new one.
"""

from __future__ import annotations

import random

from controlplane.api.objects.resources import Key
from tests.controlplane.virt_controller.replicaset.checked_process import POD_GOES, SET, VMI, WEB, Process, counts
from tests.support.breach import Breach
from tests.support.calls import Fate
from tests.support.clock import SimulatedClock
from tests.support.store import WITH_SETS, Json, Store

LABELS = {"app": "web"}
LONGEST_WAIT_SECONDS = 300.0
"""After instances that ended before they ran."""
MEDDLING = 0.3
"""How often the replicas change during a create."""
READY: Json = {"type": "Ready", "status": "True"}
FATES: tuple[Fate, ...] = ("done", "done", "done", "done", "request lost", "answer lost", "answer lost", "forbidden")


class SetPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.store = Store(SimulatedClock(), WITH_SETS)
        template = {"metadata": {"labels": LABELS}, "spec": {"domain": {}}}
        spec = {"replicas": 2, "selector": {"matchLabels": LABELS}, "template": template}
        self.store.create(SET, "default", {"metadata": {"name": "web"}, "spec": spec})
        self.leader, self.standby = Process(self.store), Process(self.store)
        self.ended: list[int] = []
        """Versions at which an instance stopped to count without an action of the controller."""
        self.made = 0

    def run(self, steps: int) -> None:
        """Take random steps, and come to rest. Raises Breach."""
        for _unused in range(steps):
            self.step()
        self.settle()
        self._judge()

    def _judge(self) -> None:
        """Compare the state at rest with spec and status."""
        replica_set = self.store.get(SET, WEB)
        live, status, wanted = (
            [item for _unused, item in self.store.list(VMI)],
            replica_set["status"],
            replica_set["spec"]["replicas"],
        )
        if not len(live) == len(self.active()) == wanted == status.get("replicas", 0):
            raise Breach(f"sets: {wanted} wanted, {len(live)} there, and it says {status}")
        ready = sum(READY in item.get("status", {}).get("conditions", ()) for item in live)
        reported = (status.get("readyReplicas", 0), status.get("labelSelector"))
        if reported != (ready, "app=web") or "conditions" in status:
            raise Breach(f"sets: {ready} are ready, and it says {status}")
        for item in live:
            owners = [(each["uid"], each.get("controller")) for each in item["metadata"].get("ownerReferences", ())]
            if item["metadata"].get("labels") != LABELS or owners != [(replica_set["metadata"]["uid"], True)]:
                raise Breach(f"sets: an instance is {item['metadata']}")
        if Process(self.store).begin():
            raise Breach("sets: a new process has work at rest")

    def step(self) -> None:
        moves = (self.read, self.work, self.happen, self.exchange)
        self.rng.choices(moves, (8, 10, 2, 0.3))[0]()
        self._look_for_idle_writes()

    def _look_for_idle_writes(self) -> None:
        for actor, what in self.store.idle_writes:
            if actor == "controller":
                raise Breach(
                    f"write rate: patches {what} with its own value: compare first, and name the resource_version"
                )

    def read(self) -> None:
        cache = self.rng.choice([*self.leader.caches.values(), *self.standby.caches.values()])
        how = self.rng.random()
        if how < 0.05:
            cache.relist()
        elif how < 0.2:
            cache.bookmark()
        elif cache.is_behind:
            cache.advance()

    def work(self) -> None:
        self.leader.clock.advance(self.rng.choice((0.0, 1.0, LONGEST_WAIT_SECONDS)))
        if self.leader.work is None:
            self.leader.begin()
        elif self.leader.work.call.verb == "create" and self.rng.random() < MEDDLING:
            self.carry_out("request lost")
            self.scale()
            while self.leader.caches[SET].is_behind:
                self.leader.caches[SET].advance()
        else:
            self.carry_out(self.rng.choice(FATES))

    def scale(self) -> None:
        self.store.actor = "user"
        self.store.patch(SET, WEB, {"spec": {"replicas": self.rng.randrange(5)}})

    def exchange(self) -> None:
        """Make the standby the leader; the old leader dies, and its last request may or may not take effect."""
        if self.leader.work is not None:
            work = self.leader.work
            self.carry_out(self.rng.choice(("request lost", "answer lost")))
            work.coroutine.close()
        self.leader, self.standby = self.standby, Process(self.store)

    def happen(self) -> None:
        """Let another actor do something."""
        self.store.actor = "user"
        live = sorted(self.active())
        what = self.rng.choice(
            ("scale", "pause", "end", "end", "drain", "delete", "ready", "finish", "finish", "finish")
        )
        if what == "scale":
            self.scale()
        elif what == "pause":
            self.store.patch(SET, WEB, {"spec": {"paused": self.rng.random() < 0.3}})
        elif what == "finish":
            self.finish()
        elif what == "ready" and live:
            ready = {"status": {"phase": "Running", "conditions": [READY]}}
            self.store.patch(VMI, Key("default", self.rng.choice(live)), ready, subresource="status")
        elif live:
            self.end(Key("default", self.rng.choice(live)), what)

    def end(self, key: Key, how: str) -> None:
        if how == "delete":
            self.store.delete(VMI, key)
        else:
            status = {"conditions": [POD_GOES]} if how == "drain" else {"phase": "Failed"}
            self.store.patch(VMI, key, {"status": status}, subresource="status")
        self.ended.append(self.store.version)

    def finish(self) -> None:
        """Complete deletions: the name is free from then on."""
        for key, body in self.store.list(VMI):
            if "deletionTimestamp" in body["metadata"]:
                self.store.patch(VMI, key, {"metadata": {"finalizers": None}})

    def carry_out(self, fate: Fate) -> None:
        work = self.leader.work
        assert work is not None
        before = self.active()
        self.store.actor = "controller"
        self.leader.carry_out(fate)
        after = self.active()
        if len(after) > len(before):
            self.made += 1
            if len(after) > max(self.wanted_since(work.sets_read)):
                raise Breach(f"sets: {len(after)} instances, more than wanted")
        elif len(after) < len(before):
            unseen = sum(version > work.vmis_read for version in self.ended)
            if len(after) + unseen < min(self.wanted_since(work.sets_read)):
                raise Breach(f"sets: {len(after)} instances, more deleted than asked")

    def wanted_since(self, resource_version: int) -> list[int]:
        """Return the replica numbers wanted since then; a paused set wants no other."""
        history = [change.after for change in self.store.histories[SET.kind]]
        known = [item for item in history if item is not None]
        newer = [item for item in known if int(item["metadata"]["resourceVersion"]) > resource_version]
        seen = [item for item in known if int(item["metadata"]["resourceVersion"]) <= resource_version][-1:]
        wanted = [item["spec"]["replicas"] for item in (*seen, *newer) if not item["spec"].get("paused")]
        if not wanted:
            raise Breach("sets: it pauses, and something was made or deleted")
        return wanted

    def active(self) -> set[str]:
        return {key.name for key, body in self.store.list(VMI) if counts(body)}

    def settle(self) -> None:
        """Deliver all events, and let the leader work until there is nothing to do."""
        self.store.patch(SET, WEB, {"spec": {"paused": False}})
        for _unused in range(100):
            self.finish()
            self.leader.clock.advance(LONGEST_WAIT_SECONDS)
            for cache in self.leader.caches.values():
                while cache.is_behind:
                    cache.advance()
                cache.bookmark()
            if self.leader.work is None and not self.leader.begin():
                return
            while self.leader.work is not None:
                self.carry_out("done")
        raise Breach("sets: it does not come to rest")
