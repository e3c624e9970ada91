# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-handler with both roles of a migration, as in __main__, and the precondition of writes about migrations."""

from __future__ import annotations

import random
from collections.abc import Iterable

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.virt_handler.incoming.reconciler import IncomingReconciler
from controlplane.virt_handler.launchers.tools import Tools
from tests.controlplane.simulation.answers import Request
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.libvirt import LauncherConnections
from tests.controlplane.simulation.migrations.tunnel import Fabric, LeavingGuest, Tunnels, TunnelSender
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Queue
from tests.support.calls import CallingApi
from tests.support.store import Json, Store


class MigratingHandler(Handler):
    """virt-handler, as source and as target."""

    is_looked_at_each_time = False

    def __init__(self, node: Node, store: Store, rng: random.Random, fabric: Fabric) -> None:
        self._fabric = fabric
        super().__init__(node, store, rng)
        self.doors = Tunnels(fabric, node)
        coming = self.watch(VIRTUAL_MACHINE_INSTANCE, lambda body: _target_of(body) == node.name)
        self._coming = ReadYourWritesCache(coming)
        queue = Queue(rng)
        api = ReadYourWritesApi(CallingApi(store), {VIRTUAL_MACHINE_INSTANCE: self._coming})
        reconciler = IncomingReconciler(node.name, self._coming, self.sessions, self.doors, api=api, clock=self.clock)
        self.work["incoming"] = (queue, reconciler)
        self._coming.subscribe(lambda key, _before, _after: queue.add(key, self.clock.monotonic()))
        self.caches = (*self.caches, coming)
        coming.start()
        for key in self.keys("incoming"):
            queue.add(key, self.clock.monotonic())

    def tools(self, connections: LauncherConnections, rng: random.Random) -> Tools:
        connections.guest_kind = LeavingGuest
        sending = TunnelSender(self._fabric, self.node, self.clock)
        return Tools(connections, self.clock, connections.connect, random=rng.random, send=sending.send)

    def enqueue(self, key: Key) -> None:
        super().enqueue(key)
        if "incoming" in self.work:
            self.work["incoming"][0].add(key, self.clock.monotonic())

    def keys(self, work: str) -> Iterable[Key]:
        return super().keys(work) if work == "vmi" else sorted(self._coming.keys())

    def unmet_precondition(self, request: Request) -> str | None:
        return unconditional_write(request)

    def die(self, index: int | None, *, is_request_out: bool) -> None:
        super().die(index, is_request_out=is_request_out)
        self.doors.end()


def unconditional_write(request: Request) -> str | None:
    """A field with two independent writers is written with the resource version that was read."""
    status = (request.call.asked.get("patch") or {}).get("status") or {}
    if request.call.kind != VIRTUAL_MACHINE_INSTANCE.kind or "migrationState" not in status:
        return None
    is_bound = request.call.asked.get("resource_version") and request.call.asked.get("uid")
    return None if is_bound else "how a migration stands is written, whatever it is by now"


def _target_of(body: Json) -> str:
    return str((body.get("status", {}).get("migrationState") or {}).get("targetNode", ""))
