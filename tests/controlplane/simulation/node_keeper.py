# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node with its virt-handler, for comebacks: machines are granted to it and taken away, and time advances evenly.

Every request is answered at once, unless it is held back or the node is partitioned; the kubelet starts Pods and ends
none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubevirt_api.names import VMI_FINALIZER

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.launcher import Launcher
from tests.controlplane.simulation.node import Node
from tests.support.breach import Breach
from tests.support.calls import Call, Fate
from tests.support.clock import SimulatedClock
from tests.support.store import Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
TICK_SECONDS = 1.0
ROUNDS = 300
"""Enough for all tasks to wait for time."""


class NodeKeeper:
    def __init__(self, rng: random.Random) -> None:
        self.true = SimulatedClock()
        self.store = Store(self.true)
        self.node = Node("node-1", self.store, self.true, rng)
        self._begin: Callable[[], Handler] = lambda: Handler(self.node, self.store, rng)
        self.handler = self._begin()
        self.silent: set[str] = set()
        """UIDs of Pods whose libvirtd stays down."""
        self.held: Callable[[Call], bool] = lambda _unused: False
        """Which calls are blocked."""
        self.fate: Callable[[Call], Fate] = lambda _unused: "done"
        self.meanwhile: Callable[[Call], None] = lambda _unused: None
        """Runs between a call and its response."""
        self.is_deaf = False
        """Its sessions get no events."""
        self.is_cut_off = False
        self.ends: list[tuple[float, str]] = []
        """When virt-handler asked which guest (UID of its Pod) to end."""

    def make(self, name: str, *, is_begun: bool = False) -> str:
        """Create a launcher for a new machine here; return the UID of its Pod. is_begun: its kubelet has finished
        the start.
        """
        self.store.actor = "controller"
        key = Key("default", name)
        meta = {"name": name, "finalizers": [VMI_FINALIZER]}
        self.store.create(VMI, key.namespace, {"metadata": meta, "spec": {"domain": {"memory": {"guest": "64Mi"}}}})
        self._say(key, {"phase": "Scheduling", "attempt": 1, "memory": {"guestAtBoot": "64Mi"}})
        vmi = decode_vmi(self.store.get(VMI, key))
        body = build_launcher_pod(vmi, attempt=1, image="launcher", configuration=KubeVirtConfiguration())
        pod = self.store.create(POD, key.namespace, body)
        uid = str(pod["metadata"]["uid"])
        name_of_pod = Key(key.namespace, pod["metadata"]["name"])
        self.store.set_pod(name_of_pod, uid, node=self.node.name)
        while is_begun and (name_of_pod, uid) in self.node.kubelet_steps():
            self.node.kubelet_step(name_of_pod, uid)
        return uid

    def finish(self, name: str, uid: str) -> None:
        """Remove a deleted machine and its launcher."""
        self.take_away(name, "gone")
        launcher = self.node.launchers.pop(uid)
        self.store.finish_pod(launcher.pod, uid)

    def grant(self, name: str, uid: str) -> None:
        """Grant a run to this node."""
        self.store.actor = "controller"
        given = {"nodeName": self.node.name, "activePods": {uid: self.node.name}, "epoch": 1}
        self._say(Key("default", name), {"phase": "Scheduled", **given})

    def take_away(self, name: str, how: str) -> None:
        """Grant a run to another Pod, or delete it, without this node's knowledge."""
        self.store.actor, key = "controller", Key("default", name)
        if how == "over":
            self._say(key, {"phase": "Failed", "reason": "NodeGone"})
        elif how == "granted":
            granted = self.store.get(VMI, key)["status"]["activePods"]
            given = {**dict.fromkeys(granted), "another": "node-9"}
            self._say(key, {"nodeName": "node-9", "activePods": given, "phase": "Running"})
        else:
            self.store.patch(VMI, key, {"metadata": {"finalizers": None}})
            if self.store.find(VMI, key) is not None:
                self.store.delete(VMI, key)
            if how == "another":
                body = {"metadata": {"name": name}, "spec": {"domain": {"memory": {"guest": "64Mi"}}}}
                self.store.create(VMI, key.namespace, body)

    def launcher(self, uid: str) -> Launcher:
        return self.node.launchers[uid]

    def runs(self, uid: str) -> bool:
        return uid in self.node.launchers and self.launcher(uid).is_running_guest

    def phase_of(self, name: str) -> str:
        vmi: Json = self.store.find(VMI, Key("default", name)) or {}
        return str(vmi.get("status", {}).get("phase", ""))

    def is_asking(self, verb: str) -> bool:
        return any(pass_.call.verb == verb for pass_ in self.handler.passes)

    def advance(self, seconds: float, *, until: Callable[[], bool] = lambda: False) -> None:
        """Advance the time evenly for `seconds`, or until a condition holds."""
        end = self.true.seconds + seconds
        self._settle()
        while self.true.seconds < end and not until():
            self.true.advance(TICK_SECONDS)
            self._settle()

    def restart(self, *, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Replace virt-handler by a new process. meanwhile: runs while there is none."""
        self.close()
        meanwhile()
        self.handler = self._begin()

    def close(self) -> None:
        self.handler.die(None, is_request_out=False)

    def _say(self, key: Key, status: Json) -> None:
        self.store.patch(VMI, key, {"status": status}, subresource="status")

    def _settle(self) -> None:
        for _unused in range(ROUNDS):
            if not self._round():
                break
        else:
            raise Breach("comebacks: virt-handler does not come to wait")
        one = self.handler
        one.look_for_undone()
        reported = [f"promise: {text}" for text in one.broken_promises] + [f"bug: {text}" for text in one.bugs]
        if reported:
            raise Breach(f"{reported[0]} ({one.name}, comebacks)")

    def _round(self) -> bool:
        one, moved = self.handler, self.handler.wake()
        if not self.is_cut_off:
            moved = self._tell() or moved
        for step in [] if self.is_deaf else one.sessions.steps():
            step()
            moved = True
        while one.begin("vmi"):
            moved = True
        while (index := self._next_call()) is not None:
            self._carry_out(index, one.passes[index].call)
            moved = True
        self.ends += [(self.true.seconds, pod_uid) for _unused, pod_uid in self.node.endings]
        self.node.endings.clear()
        return self._host() or moved

    def _carry_out(self, index: int, call: Call) -> None:
        is_lost = self.is_cut_off and call.is_api
        self.handler.carry_out(index, "request lost" if is_lost else self.fate(call), lambda: self.meanwhile(call))

    def _tell(self) -> bool:
        moved = False
        for cache in self.handler.caches:
            while cache.is_behind:
                cache.advance()
                moved = True
            cache.bookmark()
        return moved

    def _next_call(self) -> int | None:
        free = (index for index, one in enumerate(self.handler.passes) if not self.held(one.call))
        return next(free, None)

    def _host(self) -> bool:
        moved = False
        for launcher in self.node.host_steps():
            if launcher.pod_uid in self.silent:
                continue
            self.node.host_step(launcher)
            moved = True
        for key, uid in [] if self.is_cut_off else self.node.kubelet_steps():
            pod = self.store.find(POD, key)
            has_ended = uid in self.node.launchers and self.node.launchers[uid].exit_code is not None
            if pod is not None and (pod["status"]["phase"] == "Pending" or has_ended):
                self.node.kubelet_step(key, uid)
                moved = True
        return moved


@contextmanager
def keeping(rng: random.Random) -> Iterator[NodeKeeper]:
    """Keep a node for one scene."""
    keeper = NodeKeeper(rng)
    try:
        yield keeper
    finally:
        keeper.close()
