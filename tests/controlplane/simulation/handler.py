# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virt-handler process: the real reconciler, registry and sessions, on lagging caches."""

from __future__ import annotations

import random
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.kube.lease import Heartbeat
from controlplane.links.handler import Done, Guest, Power, Verb
from controlplane.links.node.messages import KvmFinding
from controlplane.virt_handler.api_endpoint.power import PowerRequests
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.heartbeat import keep_schedulable
from controlplane.virt_handler.node.labels import serving_patch
from controlplane.virt_handler.node_recovery.recovery import NodeRecovery
from controlplane.virt_handler.vmi.reconciler import VmiReconciler
from controlplane.virt_handler.vmi.world import Launcher as KnownLauncher
from tests.controlplane.simulation.answers import Request, View
from tests.controlplane.simulation.doubts import Doubts
from tests.controlplane.simulation.handler_preconditions import unmet_precondition
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.libvirt import LauncherConnections
from tests.controlplane.simulation.listing import DURATION_SECONDS, EVERY_SECONDS, lease_key
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.process import Process, Queue
from tests.controlplane.simulation.sessions import WatchedRegistry
from tests.support.calls import READ, CallingApi
from tests.support.store import Json, Store

KVM = KvmFinding(is_usable=True)
RESUMING = ("unpause", "unfreeze")


class Handler(Process):
    """Wired as in __main__."""

    role = "handler"

    def __init__(self, node: Node, store: Store, rng: random.Random) -> None:
        super().__init__(f"{node.name} handler", store, node.clock)
        self.node = node
        for launcher in node.launchers.values():
            launcher.is_to_go_on = False  # what was not in a status yet is forgotten
        pods = self.watch(POD, lambda body: _is_launcher_on(body, node.name))
        vmis = self.watch(VIRTUAL_MACHINE_INSTANCE, lambda body: body.get("status", {}).get("nodeName") == node.name)
        self.caches = (pods, vmis)
        self._vmis = ReadYourWritesCache(vmis)
        queue = Queue(rng)
        self.work = {"vmi": (queue, None)}
        connections = LauncherConnections(node, rng, self.loop.settle, Doubts(self.unmet_preconditions.append))
        tools = self.tools(connections, rng)
        self.sessions = WatchedRegistry(pods, tools, self.enqueue, connections, report_bug=self.bugs.append)
        self.run(self.sessions.run())
        api = ReadYourWritesApi(CallingApi(store), {VIRTUAL_MACHINE_INSTANCE: self._vmis})
        self._heartbeat = _heartbeat_of(node, api)
        self._recovery = NodeRecovery(
            self.sessions,
            CallingApi(store),
            node.clock,
            self._heartbeat,
            changed=self._recovered,
            record_event=_drop_event,
        )
        self.reconciler = VmiReconciler(
            node.name,
            self._vmis,
            self.sessions,
            api,
            node.clock,
            record_event=_drop_event,
            start_blocked_reason=lambda: self._recovery.start_blocked_reason,
        )
        self.work = {"vmi": (queue, self.reconciler)}
        self._power = PowerRequests(node.name, self.sessions, self._vmis, node.clock, _drop_event)
        self._vmis.subscribe(lambda key, _before, _after: self.enqueue(key))
        for cache in self.caches:
            cache.start()
        self.run(self._heartbeat.run())
        self.run(self._recovery.run(), work="recover the node")
        self.run(self._keep_schedulable(api))

    def tools(self, connections: LauncherConnections, rng: random.Random) -> Tools:
        """Return what its sessions share."""
        return Tools(connections, self.clock, connections.connect, random=rng.random)

    def enqueue(self, key: Key) -> None:
        self.work["vmi"][0].add(key, self.clock.monotonic())

    async def _keep_schedulable(self, api: ReadYourWritesApi) -> None:
        def serving(_unused: Json) -> Json:
            return serving_patch(KVM, self.node.clock.now(), {})

        def blocked() -> str:
            return self._recovery.start_blocked_reason

        await keep_schedulable(api, self.node.name, serving, self._heartbeat, start_blocked_reason=blocked)

    def _recovered(self) -> None:
        for key in self.keys("vmi"):
            self.enqueue(key)
        self._heartbeat.resumed.set()

    def view(self, key: Key, since: int) -> View:
        return View(vmi=self._vmis.get(key), since=since)

    def raw(self, resource: Resource, key: Key) -> bytes | None:
        return self._vmis.get(key) if resource == VIRTUAL_MACHINE_INSTANCE else None

    def press(self, guest: Launcher, verb: Verb, thaw_after: int = 0) -> None:
        """Have a user send a request through virt-api, which may not wait for the result."""
        request = Power(Guest(self.node.name, guest.vmi_uid, guest.pod_uid), verb, thaw_after)
        self.loop.create_task(self._carry_out_power(request, guest))
        self.loop.settle()

    async def _carry_out_power(self, request: Power, guest: Launcher) -> None:
        with self.sessions.unpausing(request.guest.pod_uid) if request.verb in RESUMING else nullcontext():
            answer = await self._power.answer(request)
        if isinstance(answer, Done) and request.verb in ("pause", "unpause"):
            guest.is_to_go_on = request.verb == "unpause"

    def lose_sight(self) -> None:
        """Hide all VMIs until they change or are listed again."""
        self.caches[1].lose_sight()

    def unmet_precondition(self, request: Request) -> str | None:
        if request.call.verb == "define" and [call.verb for call in self._turn_of(request.call).calls[-1:]] != [READ]:
            return "the last request before a start does not read its grant"
        return unmet_precondition(request, self.node.name, self._launcher_of)

    def keys(self, work: str) -> Iterable[Key]:
        del work
        return sorted({*self._vmis.keys(), *self.sessions.keys()})

    def _launcher_of(self, pod_uid: str) -> KnownLauncher | None:
        session = self.sessions.session(pod_uid)
        return None if session is None else session.launcher()


def _heartbeat_of(node: Node, api: ReadYourWritesApi) -> Heartbeat:
    key = lease_key(node.name)
    every, lasts = EVERY_SECONDS, DURATION_SECONDS
    return Heartbeat(api, key, node.name, node.clock, every_seconds=every, duration_seconds=lasts)


async def _drop_event(_unused: Json, __: Any) -> None:
    """Events are dropped."""


def _is_launcher_on(body: Json, node: str) -> bool:
    return body["spec"].get("nodeName") == node and body["metadata"].get("labels", {}).get(ROLE) == LAUNCHER_ROLE
