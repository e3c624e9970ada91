# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-controller with the replica set controller, for sets; and the preconditions of its writes, whatever their
results.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
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
from controlplane.engine.errors import NotFound, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler
from controlplane.virt_controller.replicaset.world import World
from tests.controlplane.simulation.controller import RecordedEvents
from tests.support.breach import Breach
from tests.support.calls import READ, Call, CallingApi, Fate, perform
from tests.support.clock import SimulatedClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import OVER, Json, Store

POD_GOES: Json = {"type": "Ready", "status": "False", "reason": "PodTerminating"}
WEB = Key("default", "web")
SET, VMI = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_INSTANCE


@dataclass
class Pass:
    coroutine: Coroutine[Call, Any, Outcome]
    call: Call
    sets_read: int
    vmis_read: int
    """The version of the caches at its start."""


class Observed(ReplicaSetReconciler):
    """Reports each observation for a decision."""

    def __init__(self, *, looked: Callable[[World | None], None], **parts: Any) -> None:
        super().__init__(**parts)
        self._looked = looked

    def observe(self, key: Key) -> World | None:
        world = super().observe(key)
        self._looked(world)
        return world


class Process:
    """A virt-controller that watches, and reconciles while it leads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.at_first: Json = {}
        """The set at the start of the reconcile."""
        self.caches = {item: LaggingCache(store, item) for item in (SET, VMI)}
        overlays = self._overlays = {item: ReadYourWritesCache(cache) for item, cache in self.caches.items()}
        self.clock = SimulatedClock()
        self.reconciler = Observed(
            looked=self._note_look,
            replica_sets=overlays[SET],
            vmis=overlays[VMI],
            api=ReadYourWritesApi(CallingApi(store), overlays),
            clock=self.clock,
            events=RecordedEvents(),
            configuration=KubeVirtConfiguration,
        )
        for cache in self.caches.values():
            cache.start()
        self.work: Pass | None = None
        self._decided_on, self._told = "", ""
        """resourceVersion of the set at the last look, and in the last response."""
        self._counted = 0
        """How many instances counted at the last look: later events do not change this decision."""
        self._begun = self._missing = 0
        """How many creates were unconfirmed at the last look, and how many instances were missing."""
        self._unsure: tuple[str, ...] = ()
        """Names of instances that may exist."""
        self._free: set[str] = set()
        """Names that the API server reported as free since the last create."""
        self._deleted: set[str] = set()
        """UIDs of instances with an accepted delete: they no longer count, whatever the cache shows."""

    def begin(self) -> bool:
        """Start a reconcile; return whether it sends a request."""
        coroutine = reconcile(self.reconciler, WEB)
        self.at_first = self._seen(SET, WEB) or {"spec": {"replicas": 0}}
        read = (self.caches[SET].resource_version, self.caches[VMI].resource_version)
        return self._go_on(coroutine, read, None, None)

    def carry_out(self, fate: Fate) -> None:
        assert self.work is not None
        work, self.work = self.work, None
        result, error = perform(work.call, fate)
        self._note_answer(work.call, result, error)
        self._go_on(work.coroutine, (work.sets_read, work.vmis_read), result, error)

    def _note_look(self, world: World | None) -> None:
        if world is not None:
            self._counted = sum(map(counts, self._known().values()))
            self._decided_on = world.owner.metadata.resource_version
            self._unsure = tuple(name for name in world.unmade if name not in self._free)
            self._begun = len(world.unmade)
            self._missing = world.owner.spec.replicas - len(world.counted)

    def _note_answer(self, call: Call, result: Any, error: Exception | None) -> None:
        if call.kind == SET.kind and error is None:
            self._told = result["metadata"]["resourceVersion"]
        elif call.kind == SET.kind and call.is_write and isinstance(error, Unavailable):
            self._told = ""  # whatever the result of that write
        elif call.verb == "delete" and error is None:
            self._deleted.add(call.asked["uid"])
        elif call.verb == READ and isinstance(error, NotFound):
            self._free.add(call.key.name)
        elif call.verb == "create":
            self._free.discard(call.key.name)

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
            self._judge_questions(call)
        return True

    def _judge_questions(self, call: Call) -> None:
        """Irreversible writes need a response of the API server."""
        if self._told != self._decided_on:
            raise Breach(
                f"sets: {call}: decided on version {self._decided_on}, and the last response had {self._told or 'none'}"
            )
        if call.verb == "create" and self._begun > self._missing and self._unsure:
            raise Breach(f"sets: {call}: {self._missing} are missing, and {self._unsure[0]} may exist already")

    def _judge_preconditions(self, call: Call) -> None:
        """A patch or delete names exactly the version that was decided on."""
        missing = [item for item in ("uid", "resource_version") if not call.asked.get(item)]
        if missing:
            raise Breach(f"sets: {call}: it names no {' and no '.join(missing)}")

    def _judge_ground(self, call: Call, since: int) -> None:
        """No member is created or deleted without need in the process's own view."""
        known = self._known()
        active = {key for key, body in known.items() if counts(body)}
        staying = [key for key in active if known[key]["metadata"]["uid"] not in self._deleted]
        newer = [item.after for item in self._store.histories[SET.kind] if item.after and item.version > since]
        seen = [item["spec"]["replicas"] for item in (self._seen(SET, WEB) or self.at_first, self.at_first, *newer)]
        if call.verb == "create" and call.key not in known and len(staying) >= max(seen):
            raise Breach(f"sets: {call}, and it sees {len(staying)} of {seen}")
        most = max(len(active), self._counted)
        if call.verb == "delete" and call.key in active and most <= min(seen):
            raise Breach(f"sets: {call}, and it sees {most} of {seen}")

    def _known(self) -> dict[Key, Json]:
        members = ((key, self._seen(VMI, key)) for key in list(self._overlays[VMI].keys()))
        return {key: body for key, body in members if body is not None}

    def _seen(self, resource: Resource, key: Key) -> Json | None:
        raw = self._overlays[resource].get(key)
        return None if raw is None else msgspec.json.decode(raw)


def counts(body: Json) -> bool:
    status = body.get("status", {})
    is_going = "deletionTimestamp" in body["metadata"] or POD_GOES in status.get("conditions", ())
    return not is_going and status.get("phase") not in OVER
