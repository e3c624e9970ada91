# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chance against a set, in a play of its own: answers that get lost, caches that lag or list anew, leaders that change.

Whatever happens, an instance is only made while fewer live than are wanted, and only deleted while more do. In the end
there are as many as are wanted, the status says so, and nobody writes any more, nor would one who begins anew.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    Key,
    Resource,
)
from controlplane.engine.overlay import Overlay, RememberingApi
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler
from tests.controlplane.simulation.breach import Breach
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.calls import Call, CallingApi, Fate, perform
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.controller import Told
from tests.controlplane.simulation.store import OVER, WITH_SETS, Json, Store

LABELS = {"app": "web"}
MEDDLING = 0.3
"""How often a mind is changed while an instance is being made, and nothing comes of that."""
READY: Json = {"type": "Ready", "status": "True"}
POD_GOES: Json = {"type": "Ready", "status": "False", "reason": "PodTerminating"}
WEB = Key("default", "web")
SET, VMI = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_INSTANCE
FATES: tuple[Fate, ...] = ("done", "done", "done", "done", "request lost", "answer lost", "answer lost", "forbidden")


@dataclass
class Pass:
    coroutine: Coroutine[Call, Any, Outcome]
    call: Call
    sets_read: int
    vmis_read: int
    """How far the caches had read when it began."""


class Process:
    """A virt-controller that follows, and works when it leads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.at_first: Json = {}
        """The set as the pass saw it when it began."""
        self.caches = {one: LaggingCache(store, one) for one in (SET, VMI)}
        overlays = self._overlays = {one: Overlay(cache) for one, cache in self.caches.items()}
        self.reconciler = ReplicaSetReconciler(
            replica_sets=overlays[SET],
            vmis=overlays[VMI],
            api=RememberingApi(CallingApi(store), overlays),
            clock=SimulatedClock(),
            events=Told(),
            configuration=KubeVirtConfiguration,
        )
        for cache in self.caches.values():
            cache.start()
        self.work: Pass | None = None
        self._deleted: set[str] = set()
        """UIDs of instances whose deletion was accepted: they count no more, whatever is shown of them."""

    def begin(self) -> bool:
        """Start a pass; tell whether it asks for anything."""
        coroutine = reconcile(self.reconciler, WEB)
        self.at_first = self._seen(SET, WEB) or {"spec": {"replicas": 0}}
        read = (self.caches[SET].position, self.caches[VMI].position)
        return self._go_on(coroutine, read, None, None)

    def carry_out(self, fate: Fate) -> None:
        assert self.work is not None
        work, self.work = self.work, None
        result, error = perform(work.call, fate)
        if work.call.verb == "delete" and error is None:
            self._deleted.add(work.call.asked["uid"])
        self._go_on(work.coroutine, (work.sets_read, work.vmis_read), result, error)

    def _go_on(self, coroutine: Any, read: tuple[int, int], result: Any, error: Exception | None) -> bool:
        try:
            call = coroutine.send(result) if error is None else coroutine.throw(error)
        except StopIteration:
            return False
        self.work = Pass(coroutine, call, *read)
        if call.verb != "create" and call.is_write:
            self._judge_preconditions(call)
        if call.verb in ("create", "delete") and call.kind == VMI.kind:
            self._judge_ground(call, read[0])
        return True

    def _judge_preconditions(self, call: Call) -> None:
        """What is changed, or deleted, is exactly what was decided on."""
        missing = [one for one in ("uid", "resource_version") if not call.asked.get(one)]
        if missing:
            raise Breach(f"sets: {call}: it names no {' and no '.join(missing)}")

    def _judge_ground(self, call: Call, since: int) -> None:
        """Nobody is made whom it takes for too many itself, and nobody deleted whom it takes for wanted."""
        found = ((key, self._seen(VMI, key)) for key in list(self._overlays[VMI].keys()))
        known = {key: body for key, body in found if body is not None}
        there = {key: body for key, body in known.items() if body["metadata"]["uid"] not in self._deleted}
        active = {key for key, body in there.items() if counts(body)}
        newer = [one.after for one in self._store.histories[SET.kind] if one.after and one.version > since]
        seen = [one["spec"]["replicas"] for one in (self._seen(SET, WEB) or self.at_first, self.at_first, *newer)]
        if call.verb == "create" and call.key not in known and len(active) >= max(seen):
            raise Breach(f"sets: {call}, and it sees {len(active)} of {seen}")
        if call.verb == "delete" and call.key in active and len(active) <= min(seen):
            raise Breach(f"sets: {call}, and it sees {len(active)} of {seen}")

    def _seen(self, resource: Resource, key: Key) -> Json | None:
        raw = self._overlays[resource].get(key)
        return None if raw is None else msgspec.json.decode(raw)


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
        """At which versions an instance ceased to count without the controller's doing."""
        self.made = 0

    def run(self, steps: int) -> None:
        """Take random steps, and come to rest. Raises Breach."""
        for _unused in range(steps):
            self.step()
        self.settle()
        self._judge()

    def _judge(self) -> None:
        """Compare what is there at rest with what is wanted, and said."""
        found = self.store.get(SET, WEB)
        live, status, wanted = (
            [one for _unused, one in self.store.list(VMI)],
            found["status"],
            found["spec"]["replicas"],
        )
        if not len(live) == len(self.active()) == wanted == status.get("replicas", 0):
            raise Breach(f"sets: {wanted} wanted, {len(live)} there, and it says {status}")
        ready = sum(READY in one.get("status", {}).get("conditions", ()) for one in live)
        said = (status.get("readyReplicas", 0), status.get("labelSelector"))
        if said != (ready, "app=web") or "conditions" in status:
            raise Breach(f"sets: {ready} are ready, and it says {status}")
        for one in live:
            owners = [(each["uid"], each.get("controller")) for each in one["metadata"].get("ownerReferences", ())]
            if one["metadata"].get("labels") != LABELS or owners != [(found["metadata"]["uid"], True)]:
                raise Breach(f"sets: an instance is {one['metadata']}")
        if Process(self.store).begin():
            raise Breach("sets: who begins anew at rest has something to do")

    def step(self) -> None:
        moves = (self.read, self.work, self.happen, self.exchange)
        self.rng.choices(moves, (8, 10, 2, 0.3))[0]()
        self._look_for_idle_writes()

    def _look_for_idle_writes(self) -> None:
        for actor, what in self.store.idle_writes:
            if actor == "controller":
                raise Breach(f"write rate: patches {what} with what it says")

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
        """Let the standby lead; the leader dies, and what it had sent happens or does not."""
        if self.leader.work is not None:
            work = self.leader.work
            self.carry_out(self.rng.choice(("request lost", "answer lost")))
            work.coroutine.close()
        self.leader, self.standby = self.standby, Process(self.store)

    def happen(self) -> None:
        """Let somebody else do something."""
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
        """Let what is deleted be gone: its name is free from then on."""
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

    def wanted_since(self, position: int) -> list[int]:
        """List the numbers that were asked for since then, and then; nothing is wanted otherwise while it pauses."""
        history = [change.after for change in self.store.histories[SET.kind]]
        known = [one for one in history if one is not None]
        newer = [one for one in known if int(one["metadata"]["resourceVersion"]) > position]
        seen = [one for one in known if int(one["metadata"]["resourceVersion"]) <= position][-1:]
        wanted = [one["spec"]["replicas"] for one in (*seen, *newer) if not one["spec"].get("paused")]
        if not wanted:
            raise Breach("sets: it pauses, and something was made or deleted")
        return wanted

    def active(self) -> set[str]:
        return {key.name for key, body in self.store.list(VMI) if counts(body)}

    def settle(self) -> None:
        """Let everybody catch up, and the leader work until there is nothing to do."""
        self.store.patch(SET, WEB, {"spec": {"paused": False}})
        for _unused in range(100):
            self.finish()
            for cache in self.leader.caches.values():
                while cache.is_behind:
                    cache.advance()
                cache.bookmark()
            if self.leader.work is None and not self.leader.begin():
                return
            while self.leader.work is not None:
                self.carry_out("done")
        raise Breach("sets: it does not come to rest")


def counts(body: Json) -> bool:
    status = body.get("status", {})
    is_going = "deletionTimestamp" in body["metadata"] or POD_GOES in status.get("conditions", ())
    return not is_going and status.get("phase") not in OVER
