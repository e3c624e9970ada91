# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virt-handler process: the real reconciler, registry and sessions, on lagging caches."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import msgspec
from kubevirt_api.names import LAUNCHER_ROLE, ROLE, SCHEDULABLE

from controlplane.api.objects.resources import LEASE, NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key
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
from controlplane.virt_handler.vmi.world import Launcher, World
from tests.controlplane.simulation import launcher as host
from tests.controlplane.simulation.agent_promises import USUAL_SECONDS, thaws_in_time
from tests.controlplane.simulation.answers import Asked, View
from tests.controlplane.simulation.doubts import Doubts
from tests.controlplane.simulation.duties import Owed
from tests.controlplane.simulation.handler_duties import has_guest, owed
from tests.controlplane.simulation.handler_promises import ENDING, broken_promise
from tests.controlplane.simulation.libvirt import LauncherConnections
from tests.controlplane.simulation.listing import (
    DURATION_SECONDS,
    EVERY_SECONDS,
    heard_rightly,
    lease_key,
    listed_rightly,
)
from tests.controlplane.simulation.node import Node
from tests.controlplane.simulation.orphan_duties import OrphanClock
from tests.controlplane.simulation.process import SHORTEST_SECONDS, Process
from tests.controlplane.simulation.returns import CLEARING, Returns
from tests.controlplane.simulation.sessions import WatchedRegistry
from tests.controlplane.simulation.turn import TURN
from tests.controlplane.simulation.watched_queue import WatchedQueue
from tests.controlplane.simulation.watching import WatchingCache
from tests.support.calls import READ, CallingApi, Fate
from tests.support.store import Json, Store

KVM = KvmFinding(is_usable=True)
GOING_ON = ("unpause", "unfreeze")
GRACE_SECONDS = 30
"""Of a VMI without its own."""


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
        self._known = ReadYourWritesCache(vmis)
        queue = WatchedQueue(rng, self.broken_promises.append)
        self.work = {"vmi": (queue, None)}
        connections = LauncherConnections(node, rng, self.loop.settle, Doubts(self.broken_promises.append))
        self.sessions = WatchedRegistry(
            pods,
            self.tools(connections, rng),
            self.wake_key,
            connections,
            complain=self.broken_promises.append,
            found=self.bugs.append,
        )
        self.run(self.sessions.run())
        api = ReadYourWritesApi(CallingApi(store), {VIRTUAL_MACHINE_INSTANCE: self._known})
        self._heartbeat = _heartbeat_of(node, api)
        self._clearing = NodeRecovery(
            self.sessions, CallingApi(store), node.clock, self._heartbeat, changed=self._cleared, record_event=_tell
        )
        self.reconciler = VmiReconciler(
            node.name,
            self._known,
            self.sessions,
            api,
            node.clock,
            record_event=_tell,
            start_blocked_reason=lambda: self._clearing.start_blocked_reason,
        )
        self._observe = self.reconciler.observe
        self.reconciler.observe = self._look  # type: ignore[method-assign]
        self.work = {"vmi": (queue, self.reconciler)}
        self._power = PowerRequests(node.name, self.sessions, self._known, node.clock, _tell)
        self._going: dict[str, float] = {}
        """When (monotonic) a look first saw the deletion of a VMI, by its UID."""
        self._orphans = OrphanClock()
        self._unseen: dict[Key, float] = {}
        """Since when (monotonic) the process sees no VMI of a key on this node."""
        self._known.subscribe(self._changed)
        for cache in self.caches:
            cache.start()
        self._heard_at: float | None = None
        """Its last renewal request (monotonic)."""
        self._answered_at = self.clock.monotonic()
        self._returns = Returns()
        self._returns.comes_back(self.clock.monotonic(), store.version, self._listed())
        self.run(self._heartbeat.run())
        self.run(self._clearing.run(), work=CLEARING.name)
        self.run(self._keep_listed(api))

    def tools(self, connections: LauncherConnections, rng: random.Random) -> Tools:
        """Return what its sessions share."""
        return Tools(connections, self.clock, connections.connect, random=rng.random)

    def wake_key(self, key: Key) -> None:
        """Enqueue a machine whose launcher has news."""
        self.work["vmi"][0].add(key, self.clock.monotonic())

    async def _keep_listed(self, api: ReadYourWritesApi) -> None:
        def serving(_unused: Json) -> Json:
            return serving_patch(KVM, self.node.clock.now(), {})

        await keep_schedulable(
            api,
            self.node.name,
            serving,
            self._heartbeat,
            start_blocked_reason=lambda: self._clearing.start_blocked_reason,
        )

    def _cleared(self) -> None:
        for key in self.keys("vmi"):
            self.work["vmi"][0].add(key, self.clock.monotonic())
        self._heartbeat.resumed.set()

    def _known_launchers(self) -> dict[str, host.Launcher]:
        return {uid: item for uid, item in self.node.launchers.items() if self.sessions.session(uid) is not None}

    def _listed(self) -> dict[str, object]:
        current = (launcher.pod.uid for launcher in self.sessions.launchers() if not launcher.is_gone)
        return {uid: self.sessions.session(uid) for uid in current}

    def view(self, key: Key, since: int) -> View:
        return View(vmi=self._known.get(key), since=since)

    def press(self, guest: host.Launcher, verb: Verb, thaw_after: int = 0) -> None:
        """Have a user send a request through virt-api, which may not wait for the result."""
        request = Power(Guest(self.node.name, guest.vmi_uid, guest.pod_uid), verb, thaw_after)
        if verb == "freeze":
            self._note_freeze(guest, thaw_after)
        self.loop.create_task(self._carry_out(request, guest))
        self.loop.settle()

    def _note_freeze(self, guest: host.Launcher, thaw_after: int) -> None:
        """Record the end of a freeze: the requested one, or the default when the request is no longer known."""
        session = self.sessions.session(guest.pod_uid)
        if session is not None and not session.is_busy:
            earliest = self.clock.monotonic() + min(thaw_after or USUAL_SECONDS, USUAL_SECONDS)
            guest.freeze_asked = earliest, thaw_after > 0

    async def _carry_out(self, asked: Power, guest: host.Launcher) -> None:
        with self.sessions.unpausing(asked.guest.pod_uid) if asked.verb in GOING_ON else nullcontext():
            answer = await self._power.answer(asked)
        if isinstance(answer, Done) and asked.verb in ("pause", "unpause"):
            guest.is_to_go_on = asked.verb == "unpause"

    def lose_sight(self) -> None:
        """Hide all VMIs until they change or are listed again."""
        self.caches[1].lose_sight()

    def _look(self, key: Key) -> World | None:
        """Record what each look shows, not only the start of a reconcile."""
        world = self._observe(key)
        is_orphaned = world is not None and world.vmi is None
        self._orphans.looks(key, self.clock.monotonic(), is_orphaned=is_orphaned)
        if world is not None and world.vmi is not None and world.vmi.metadata.deletion_timestamp is not None:
            self._going.setdefault(world.vmi.metadata.uid, self.clock.monotonic())
        return world

    def begins(self, key: Key) -> None:
        vmi = self._note_sight(key)
        if vmi is not None and "deletionTimestamp" in vmi["metadata"]:
            self._going.setdefault(vmi["metadata"]["uid"], self.clock.monotonic())

    def overdue(self) -> str | None:
        self.wake()
        since = self.clock.monotonic() - self._answered_at
        is_asking = any(pass_.call.kind == LEASE.kind for pass_ in self.passes)
        is_late = not is_asking and since > EVERY_SECONDS + SHORTEST_SECONDS
        return f"it has not asked for a renewal since {since:.2f} s" if is_late else self._unasked()

    def _unasked(self) -> str | None:
        """Return the launcher that should have been checked with the API server by now. Requests in progress count."""
        if any(pass_.turn.key == CLEARING for pass_ in self.passes):
            return None
        vmis = {uid: pass_.vmi for uid, pass_ in self._known_launchers().items()}
        current = {uid: session for uid, session in self._listed().items() if uid in vmis}
        return self._returns.overdue(self.clock.monotonic(), current, vmis)

    def carry_out(
        self, index: int, fate: Fate, meanwhile: Callable[[], None] = lambda: None, *, is_late: bool = False
    ) -> None:
        is_renewal = self.passes[index].call.kind == LEASE.kind
        if self.passes[index].turn.key == CLEARING:
            self._returns.settles(self.clock.monotonic())
        beat = self._heartbeat.last_beat
        if is_renewal:
            self._answered_at = self.clock.monotonic()
        super().carry_out(index, fate, meanwhile, is_late=is_late)
        if is_renewal and self._heartbeat.last_beat != beat and self._heartbeat.last_beat is not None:
            now = self.clock.monotonic()
            self._returns.renewed(self._heartbeat.last_beat, now, self.store.version, self._listed())

    def _about_node(self, asked: Asked) -> str | None:
        if asked.call.kind == NODE.kind:
            return None if asked.call.is_question else self._is_listed_too_early(asked)
        now, last = self.clock.monotonic(), self._heard_at
        self._heard_at = now
        return heard_rightly(asked, self.node.name, None if last is None else now - last)

    def _is_listed_too_early(self, asked: Asked) -> str | None:
        wrong = listed_rightly(asked, self.node.name)
        is_offer = asked.call.asked["patch"]["metadata"].get("labels", {}).get(SCHEDULABLE) == "true"
        if wrong or not is_offer:
            return wrong
        return self._returns.unasked(self.clock.monotonic(), asked.ever, self._known_launchers())

    def broken_promise(self, asked: Asked) -> str | None:
        if asked.call.kind == VIRTUAL_MACHINE_INSTANCE.kind and asked.call.is_question:
            self._returns.asks(asked.call.key, self.store.version, self.clock.monotonic())
            if self._is_about_orphan(asked.call.key) and (
                early := self._orphans.asks(asked.call.key, self.clock.monotonic())
            ):
                return early
        if asked.call.verb == "define":
            started = asked.call.asked["pod_uid"]
            now, launchers = self.clock.monotonic(), self._known_launchers()
            if unasked := self._returns.unasked(now, asked.ever, launchers, but=started):
                return unasked
            if [call.verb for call in self._turn_of(asked.call).calls[-1:]] != [READ]:
                return "the last thing that was asked before is not whether it is granted"
        if asked.call.kind in (LEASE.kind, NODE.kind):
            return self._about_node(asked)
        if asked.call.kind == "agent":
            uid = asked.call.asked["pod_uid"]
            is_by_person = self.sessions.is_unpausing(uid)
            return thaws_in_time(asked, self.node.launchers.get(uid), self.clock.monotonic(), is_by_person=is_by_person)
        if asked.call.verb in ENDING:
            self.begins(asked.call.key)  # it may have seen more since its reconcile began; a start reads again after it
        unseen = self._unseen.get(asked.call.key)
        unseen_for = None if unseen is None else self.clock.monotonic() - unseen
        if self._returns.is_clearing(self.clock.monotonic()):
            unseen_for = None
        return broken_promise(asked, self.node.name, self._launcher_of, self._grace_left, unseen_for)

    def _is_about_orphan(self, key: Key) -> bool:
        """Whether a reconcile itself asks about a VMI while a guest without a visible VMI runs."""
        turn, vmi = TURN.get(), self._vmi(key)
        is_own = vmi is not None and vmi.get("status", {}).get("nodeName") == self.node.name
        is_pass = turn is not None and turn.work == "vmi" and turn.task is asyncio.current_task()
        return is_pass and not is_own and any(map(has_guest, self.sessions.launchers_named(key)))

    def laid_over(self, cache: WatchingCache) -> ReadYourWritesCache | None:
        return self._known if cache.resource == VIRTUAL_MACHINE_INSTANCE else None

    def keys(self, work: str) -> Iterable[Key]:
        del work
        return sorted({*self._known.keys(), *self.sessions.keys()})

    def owes(self, work: str, key: Key) -> Owed | None:
        if work != "vmi" or not self._known.synced:
            return None
        self.begins(key)
        vmi = self._vmi(key)
        remaining = None if vmi is None else self._grace_left(vmi)
        let_go_on = {uid for uid, item in self.node.launchers.items() if item.is_to_go_on}
        launchers = self.sessions.launchers_named(key)
        return owed(
            vmi,
            launchers,
            self.node.name,
            remaining,
            self.sessions.pause_left,
            let_go_on=let_go_on,
            is_held=self._clearing.start_blocked_reason != "",
            orphan_left=self._orphans.left(key, self.clock.monotonic()),
        )

    def _note_sight(self, key: Key) -> Json | None:
        """Record whether a VMI of the key is seen on this node; return it."""
        vmi = self._vmi(key)
        if vmi is None or vmi.get("status", {}).get("nodeName") != self.node.name:
            self._unseen.setdefault(key, self.clock.monotonic())
        else:
            self._unseen.pop(key, None)
        return vmi

    def _vmi(self, key: Key) -> Json | None:
        raw = self._known.get(key)
        return None if raw is None else msgspec.json.decode(raw)

    def _grace_left(self, vmi: Json) -> float | None:
        """Return what is left of a VMI's grace period since its deletion was observed; None when it was not."""
        since = self._going.get(vmi["metadata"]["uid"])
        period = vmi["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS)
        return None if since is None else float(period) - (self.clock.monotonic() - since)

    def _launcher_of(self, pod_uid: str) -> Launcher | None:
        session = self.sessions.session(pod_uid)
        return None if session is None else session.launcher()

    def _changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        self._note_sight(key)
        self.work["vmi"][0].add(key, self.clock.monotonic())


def _heartbeat_of(node: Node, api: ReadYourWritesApi) -> Heartbeat:
    key = lease_key(node.name)
    every, lasts = EVERY_SECONDS, DURATION_SECONDS
    return Heartbeat(api, key, node.name, node.clock, every_seconds=every, duration_seconds=lasts)


async def _tell(_unused: Json, __: Any) -> None:
    """Events are dropped."""


def _is_launcher_on(body: Json, node: str) -> bool:
    return body["spec"].get("nodeName") == node and body["metadata"].get("labels", {}).get(ROLE) == LAUNCHER_ROLE
