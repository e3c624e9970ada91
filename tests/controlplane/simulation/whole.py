# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A complete virt-controller as its process wires it: its client, caches, election, queues and workers.

In the world of run.py the schedule drives each part. Here only the connection is replaced (and certificates and the
health port, which do not matter here).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    DATA_VOLUME,
    EVENT,
    KUBEVIRT,
    LEASE,
    MIGRATION_POLICY,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Key,
    Resource,
)
from controlplane.kube.cache import trim
from controlplane.kube.client import Client
from controlplane.kube.leader import LeadershipLostError
from controlplane.kube.watch import WatchCache
from controlplane.virt_controller import process as module
from controlplane.virt_controller.process import COMPONENT, Process
from controlplane.virt_controller.settings import Settings
from tests.controlplane.simulation.api_server import ApiServer
from tests.controlplane.simulation.loop import HandTurnedLoop, Unwatched
from tests.controlplane.simulation.wire import AWAY_SECONDS, Exchange, Wire
from tests.support.breach import Breach
from tests.support.calls import Call
from tests.support.clock import WrongClock

NAMESPACE = "kubevirt"
RESOURCES = (
    *(VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, POD, NODE, LEASE),
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_POOL,
    MIGRATION_POLICY,
    *(PERSISTENT_VOLUME_CLAIM, DATA_VOLUME, CUSTOM_RESOURCE_DEFINITION, KUBEVIRT, EVENT),
)
REFUSED = (403, 404)
"""Responses to a list or a watch after which no events come."""
ENDS = 5
AT_ONCE = 20
"""So many equal requests while no time passes are a busy loop."""


class Whole:
    """One virt-controller."""

    def __init__(self, server: ApiServer, name: str, clock: WrongClock) -> None:
        self.name, self.clock, self._server = name, clock, server
        self.complaints: list[str] = []
        self._away: dict[tuple[str, str], float] = {}
        """Until when (monotonic) a server asks for no requests about a collection."""
        self._at: tuple[float, dict[str, int]] = (0.0, {})
        self._refused: dict[Resource, bool] = {}
        """Whether the last response about a collection was 403 or 404."""
        self.loop = HandTurnedLoop(clock, _asks_nothing)
        self.wire = Wire(server, self.complaints.append, self._asked)
        settings = Settings(namespace=NAMESPACE, launcher_image="launcher", pod_name=name)
        self.process = Process(settings, Client(self.wire.transport(), COMPONENT), clock)
        self.leadership = self.process._leadership
        self.leadership._watch_over = Unwatched
        self.caches: dict[Resource, WatchCache] = {
            **self.process._caches,
            CUSTOM_RESOURCE_DEFINITION: self.process._optional._definition,
            DATA_VOLUME: self.process._optional._cache,
        }
        for resource, cache in self.caches.items():
            _in_order(cache)
            if resource != DATA_VOLUME:
                cache.subscribe(self._gone_rightly(resource))
        self.heard: list[bytes] = []
        """Events about Pods that it has received."""
        on_object = self.process._follower._on_object
        self.process._follower._on_object = lambda raw: self._hear(raw, on_object)
        self._life = self.loop.create_task(self.process.run())
        self.settle()

    @property
    def is_over(self) -> bool:
        return self._life.done()

    @property
    def is_leader(self) -> bool:
        return self.leadership.is_leader and not self.is_over

    def settle(self) -> None:
        """Let it run, and check that its view follows from its responses."""
        self.loop.settle()
        self.wire.pending = [item for item in self.wire.pending if not item.answer.done()]
        if (bug := self._bug()) is not None:
            self.complaints.append(f"it has ended: {bug!r}")
        for resource, is_refused in self._refused.items():
            if is_refused and resource in self.caches and self.caches[resource].synced:
                self.complaints.append(f"{resource.plural} may not be read, and what it does not know counts as absent")
        if self.complaints:
            raise Breach(f"whole: {self.name}: {self.complaints[0]}")

    def _bug(self) -> BaseException | None:
        """Return the exception that ended it, unless it lost its Lease."""
        ended = self._life.exception() if self._life.done() and not self._life.cancelled() else None
        return ended.split(LeadershipLostError)[1] if isinstance(ended, BaseExceptionGroup) else ended

    def carry_out(self, one: Exchange) -> None:
        """Record what a response says about a collection, and deliver it."""
        target, reply = one.target, one.reply
        if target.key is None and not one.is_write:
            self._refused[target.resource] = reply is not None and reply.code in REFUSED
            if reply is not None and "Retry-After" in reply.headers:
                self._away[self._about(one)] = self.clock.monotonic() + AWAY_SECONDS
        self.settle()

    def end(self) -> None:
        """Kill it."""
        self._life.cancel()
        for _unused in range(ENDS):  # a leader would give the Lease back first
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.loop.settle()

    def untrue(self) -> str | None:
        """Return what it sees wrongly, or not at all, of the kinds that it watches and may read."""
        for resource, cache in self.caches.items():
            if resource in self._server.unserved or (resource == DATA_VOLUME and not self.process._optional.is_served):
                continue
            store, namespace = self._server.store, cache.selection.namespace
            there = {
                key: trim(store.raw(resource, key), resource)
                for key, body in store.list(resource)
                if (not namespace or key.namespace == namespace)
                and (resource != POD or body["metadata"].get("labels", {}).get("kubevirt.io") == "virt-launcher")
            }
            known = {key: cache.get(key) for key in [*cache.keys()]}
            if not cache.synced or known != there:
                wrong = sorted({str(key) for key in {*known, *there} if known.get(key) != there.get(key)})
                return (
                    f"{resource.plural}: {'wrong about ' + ', '.join(wrong) if wrong else 'not known to be complete'}"
                )
        return None

    @staticmethod
    def _about(one: Exchange) -> tuple[str, str]:
        return one.target.resource.plural, one.target.namespace

    def _hear(self, raw: bytes, told: Callable[[bytes], None]) -> None:
        if raw in self.heard:
            self.complaints.append("it hears of the same Event twice")
        self.heard.append(raw)
        told(raw)

    def _asked(self, one: Exchange) -> None:
        """Check a request when it is sent."""
        now, target = self.clock.monotonic(), one.target
        if self._at[0] != now:
            self._at = (now, {})
        about = f"{one.method} {target.resource.plural} {target.key} {dict(target.query)} {one.body!r}"
        counts = self._at[1]
        counts[about] = counts.get(about, 0) + 1
        if counts[about] > AT_ONCE:
            self.complaints.append(f"{about} is sent for the {counts[about]}th time while no time passes")
        is_collection = target.key is None and not one.is_write and target.resource != DATA_VOLUME  # it begins again
        if is_collection and (remaining := self._away.pop(self._about(one), now) - now) > 0.001:
            self.complaints.append(
                f"{target.resource.plural} are asked for {remaining:.2f} s before the server wants to be"
            )
        if one.is_write and target.resource != LEASE and not self._may_write():
            self.complaints.append(f"{one.method} {target.resource.kind} {target.key}, and it does not lead")
        if (one.lane == "leases") is not (target.resource == LEASE and (target.key is not None or one.is_write)):
            self.complaints.append(f"{one.method} {target.resource.kind} goes by the lane of {one.lane}")

    def _may_write(self) -> bool:
        lease = self._server.store.find(LEASE, Key(NAMESPACE, COMPONENT))
        holder = "" if lease is None else lease["spec"]["holderIdentity"]
        return self.is_leader and holder == self.leadership._identity

    def _gone_rightly(self, resource: Resource) -> Callable[[Key, bytes | None, bytes | None], None]:
        """An object counts as gone only when the API server no longer has it, or has it outside the selection."""

        def judge(key: Key, before: bytes | None, after: bytes | None) -> None:
            if after is not None or before is None:
                return
            uid, histories = msgspec.json.decode(before)["metadata"]["uid"], self._server.store.histories
            changes = [item for item in histories[resource.kind] if item.key == key]
            is_gone = any(
                item.before and item.before["metadata"]["uid"] == uid and item.after is None for item in changes
            )
            if not is_gone:
                self.complaints.append(f"{resource.kind} {key} is taken for gone, and it is there")

        return judge


def _in_order(cache: WatchCache) -> None:
    """Return indexed keys in order, so that they are enqueued in the same order in every run of a seed."""
    listed = cache.indexed
    cache.indexed = lambda index, value: tuple(sorted(listed(index, value)))  # type: ignore[method-assign]


def _asks_nothing(call: Call) -> asyncio.Future[None]:
    raise Breach(f"whole: {call} is asked for beside the wire")


@contextmanager
def as_drawn(rng: random.Random) -> Iterator[None]:
    """Seed all random sources, so that every run of a seed is the same."""
    before = random.getstate()
    random.seed(rng.random())
    try:
        yield
    finally:
        random.setstate(before)


class _NoHealth:
    """Replaces the health server."""

    def __init__(self, *_unused: Any, **__: Any) -> None:
        pass

    async def start(self) -> None:
        """Listen nowhere."""

    async def close(self) -> None:
        """There is nothing to close."""


async def _keep_nothing(*_unused: Any) -> None:
    await asyncio.Event().wait()


@contextmanager
def on_the_wire_alone() -> Iterator[None]:
    """Replace certificates, which need true randomness, and listeners."""
    before = module.keep_certificates, module.Health
    module.keep_certificates, module.Health = _keep_nothing, _NoHealth  # type: ignore[assignment, misc]
    try:
        yield
    finally:
        module.keep_certificates, module.Health = before  # type: ignore[misc]
