# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""cp-burst-cpu: virt-controller's CPU per VM when many are started at once and the watch of Pods lags behind.

The real reconcilers, queues, overlays and caches; beside them an API server, kubelets and virt-handlers that cost next
to nothing, and whose time is taken off. While the watch of Pods lags, every Pod is known from the answer of its create
only: that was once slow enough to feed the start storm by itself. The peer is a figure: upstream's virt-controller.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.backoff import BackOff
from controlplane.engine.clock import SystemClock
from controlplane.engine.errors import NotFound
from controlplane.engine.overlay import Overlay, RememberingApi
from controlplane.engine.queue import Queue
from controlplane.engine.reconcile import reconcile
from controlplane.kube.cache import Store, by_node
from controlplane.virt_controller.tell import Kind, Regarding
from controlplane.virt_controller.vm.reconciler import VmReconciler
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from controlplane.virt_controller.wake import BY_NODE, connect

VMS = 800
UPSTREAM_CPU_MS = 170.0
"""KubeVirt 1.9's virt-controller per VM, from its own density runs."""

Json = dict[str, Any]
Report = Callable[[dict[str, Any]], None]


class Cluster:
    """An API server without rules, its watches, and everybody who is not virt-controller. Its own time is counted."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._version = 0
        self._objects: dict[tuple[Resource, Key], Json] = {}
        self.caches = {
            one: Store(one, {BY_NODE: by_node} if one == VIRTUAL_MACHINE_INSTANCE else None)
            for one in (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD, NODE)
        }
        self.lagging: deque[bytes] = deque()
        """Events of Pods that the watch has not brought yet."""
        for cache in self.caches.values():
            cache.synced = True

    async def get(self, resource: Resource, key: Key) -> Json:
        if (resource, key) not in self._objects:
            raise NotFound(str(key))
        return self._objects[resource, key]

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        return self._store(resource, {**body, "metadata": {**body["metadata"], "namespace": namespace}})

    async def patch(self, resource: Resource, key: Key, patch: Mapping[str, Any], **_unused: Any) -> Json:
        return self._store(resource, _merge(self._objects[resource, key], patch))

    async def delete(self, resource: Resource, key: Key, **_unused: Any) -> None:
        raise AssertionError(f"nobody deletes {resource.kind} {key} in a start")

    def place(self, key: Key) -> None:
        """Let scheduler and kubelet bring a Pod up; its events wait in the watch."""
        body = self._objects[POD, key]
        self._store(POD, _merge(body, {"spec": {"nodeName": "node-1"}}))
        running = {"name": "compute", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        status = {
            "phase": "Running",
            "containerStatuses": [running],
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        self._store(POD, _merge(self._objects[POD, key], {"status": status}))

    def keys(self, resource: Resource) -> list[Key]:
        return [key for kind, key in self._objects if kind == resource]

    def phase(self, key: Key) -> str:
        phase: str = self._objects[VIRTUAL_MACHINE_INSTANCE, key].get("status", {}).get("phase", "")
        return phase

    def printable(self, key: Key) -> str:
        word: str = self._objects[VIRTUAL_MACHINE, key].get("status", {}).get("printableStatus", "")
        return word

    def _store(self, resource: Resource, body: Json) -> Json:
        began = time.process_time()
        self._version += 1
        key = Key(body["metadata"]["namespace"], body["metadata"]["name"])
        uid = body["metadata"].get("uid") or f"{self._version:08x}-0000-4000-8000-000000000000"
        meta = {**body["metadata"], "uid": uid, "resourceVersion": str(self._version), "generation": 1}
        stored = {**body, "metadata": meta}
        self._objects[resource, key] = stored
        raw = msgspec.json.encode(stored)
        self.seconds += time.process_time() - began
        if resource == POD:
            self.lagging.append(raw)
        else:
            self.caches[resource].put(raw)
        return stored


def _merge(target: Json, patch: Mapping[str, Any]) -> Json:
    """RFC 7386, sharing what is not changed."""
    merged = dict(target)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, Mapping):
            old = merged.get(name)
            merged[name] = _merge(old if isinstance(old, dict) else {}, value)
        else:
            merged[name] = value
    return merged


class Silent:
    """Events that nobody reads."""

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, **_unused: str) -> None:
        del regarding, kind, reason, message


class Controller:
    """virt-controller without its loop: passes one after the other, which is what its CPU time is."""

    def __init__(self, cluster: Cluster) -> None:
        self._clock = SystemClock()
        overlays = {resource: Overlay(cache) for resource, cache in cluster.caches.items()}
        parts: dict[str, Any] = {
            "vmis": overlays[VIRTUAL_MACHINE_INSTANCE],
            "api": RememberingApi(cluster, overlays),
            "clock": self._clock,
            "events": Silent(),
            "configuration": KubeVirtConfiguration,
        }
        self._reconcilers: dict[str, Any] = {
            "vm": VmReconciler(vms=overlays[VIRTUAL_MACHINE], **parts),
            "vmi": VmiReconciler(pods=overlays[POD], nodes=overlays[NODE], launcher_image="launcher", **parts),
        }
        self._queues = {name: Queue(BackOff(random.random)) for name in self._reconcilers}
        connect(
            vms=overlays[VIRTUAL_MACHINE],
            vmis=overlays[VIRTUAL_MACHINE_INSTANCE],
            pods=overlays[POD],
            nodes=overlays[NODE],
            wake_vm=lambda key: self._queues["vm"].add(key, self._clock.monotonic()),
            wake_vmi=lambda key: self._queues["vmi"].add(key, self._clock.monotonic()),
        )

    async def work(self) -> int:
        """Run every pass that is due; return how many there were."""
        passes = 0
        while found := next(((name, key) for name in self._queues if (key := self._take(name)) is not None), None):
            name, key = found
            outcome = await reconcile(self._reconcilers[name], key)
            failed, again = outcome.error is not None, outcome.look_again_in
            self._queues[name].finish(key, self._clock.monotonic(), failed=failed, look_again_in=again)
            passes += 1
        return passes

    def _take(self, name: str) -> Key | None:
        return self._queues[name].take(self._clock.monotonic())


async def start_all(cluster: Cluster, controller: Controller) -> int:
    """Declare every VM at once and bring it to Running; return the passes."""
    template = {"spec": {"domain": {"memory": {"guest": "64Mi"}, "devices": {}}}}
    meta = {"finalizers": ["kubevirt.io/virtualMachineControllerFinalize"]}
    for number in range(VMS):
        body = {"metadata": {"name": f"vm-{number}", **meta}, "spec": {"runStrategy": "Always", "template": template}}
        await cluster.create(VIRTUAL_MACHINE, "default", body)
    passes = await controller.work()
    for key in cluster.keys(POD):
        cluster.place(key)
    while cluster.lagging:  # the watch catches up, a few events at a time
        for _unused in range(min(20, len(cluster.lagging))):
            cluster.caches[POD].put(cluster.lagging.popleft())
        passes += await controller.work()
    for key in cluster.keys(VIRTUAL_MACHINE_INSTANCE):
        assert cluster.phase(key) == "Scheduled", f"{key} is {cluster.phase(key)}"
        ready = {"type": "Ready", "status": "True"}
        await cluster.patch(VIRTUAL_MACHINE_INSTANCE, key, {"status": {"phase": "Running", "conditions": [ready]}})
        passes += await controller.work()
    assert all(cluster.printable(key) == "Running" for key in cluster.keys(VIRTUAL_MACHINE))
    return passes


def run(report: Report) -> None:
    """Measure one burst."""
    logging.disable(logging.INFO)
    try:
        cluster = Cluster()
        controller = Controller(cluster)
        began = time.process_time()
        passes = asyncio.run(start_all(cluster, controller))
        spent = time.process_time() - began - cluster.seconds
    finally:
        logging.disable(logging.NOTSET)
    per_vm = spent / VMS * 1000
    report(
        {
            "bench": "cp-burst-cpu",
            "vms": VMS,
            "cpu_ms_per_vm": round(per_vm, 2),
            "passes_per_vm": round(passes / VMS, 1),
            "ratio_to_upstream": round(per_vm / UPSTREAM_CPU_MS, 3),
            "aim_ms": 6.0,
        }
    )
