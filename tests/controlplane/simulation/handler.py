# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virt-handler process: the real reconciler on caches that lag and sessions that are fake."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.backoff import BackOff
from controlplane.engine.overlay import Overlay, RememberingApi
from controlplane.engine.queue import Queue
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.calls import CallingApi
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process, View
from tests.controlplane.simulation.session import FakeSessions
from tests.controlplane.simulation.store import Json, Store

BuildHandler = Callable[..., VmiReconciler]


class Handler(Process):
    """As __main__ wires it."""

    role = "handler"

    def __init__(self, node: Node, store: Store, rng: random.Random, build: BuildHandler = VmiReconciler) -> None:
        super().__init__(f"{node.name} handler", store, node.clock)
        self.node = node
        pods = LaggingCache(store, POD, lambda body: _is_launcher_on(body, node.name))
        vmis = LaggingCache(
            store, VIRTUAL_MACHINE_INSTANCE, lambda body: body.get("status", {}).get("nodeName") == node.name
        )
        self.caches = (pods, vmis)
        self._known = Overlay(vmis)
        queue = Queue(BackOff(rng.random))
        self.sessions = FakeSessions(pods, node, lambda key: queue.add(key, self.clock.monotonic()), self.spawn)
        api = RememberingApi(CallingApi(store), {VIRTUAL_MACHINE_INSTANCE: self._known})
        self.reconciler = build(node.name, self._known, self.sessions, api, node.clock, tell=_tell)
        self.work = {"vmi": (queue, self.reconciler)}
        self._known.subscribe(self._changed)
        for cache in self.caches:
            cache.start()

    def view(self, key: Key, since: int) -> View:
        return View(vmi=self._known.get(key), since=since)

    def _changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        if before is not None and after is None:
            self.reconciler.forget(before)
        self.work["vmi"][0].add(key, self.clock.monotonic())


async def _tell(_unused: Json, __: Any) -> None:
    """Events are not kept."""


def _is_launcher_on(body: Json, node: str) -> bool:
    return body["spec"].get("nodeName") == node and body["metadata"].get("labels", {}).get(ROLE) == LAUNCHER_ROLE
