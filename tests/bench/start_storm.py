# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""start-storm: the CPU time of virt-controller for each of many VMs started at once, while its Pod watch lags.

No cluster: the real reconcilers, queues and caches on the simulation's API server, whose own time is subtracted. Pods
reach the cache only after every VM has created its Pod, so that all responses are pending at the same time; then the
Pods run, and the instances are handed over to their node.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.backoff import BackOff
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.reconcile import reconcile
from controlplane.engine.work_queue import WorkQueue
from controlplane.kube import cache
from controlplane.virt_controller.controllers import CONTROLLERS, INDEXES
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.settings import Settings
from tests.controlplane.simulation.controller import RecordedEvents
from tests.support.clock import SimulatedClock
from tests.support.store import RESOURCES, Store

VMS = 800
FEW_VMS = 80
MILLISECONDS_AT_MOST = 6.0
RUNNING = {
    "phase": "Running",
    "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
    "containerStatuses": [{"name": "compute", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
}

Report = Callable[[dict[str, Any]], None]


class TimedApi:
    """The API, and the CPU time that it took of this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.seconds = 0.0

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        async def call(*arguments: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return getattr(self._store, verb)(*arguments, **options)
            finally:
                self.seconds += time.process_time() - began

        return call


class Storm:
    """A virt-controller, its API server, and the VMs to start."""

    def __init__(self, vms: int) -> None:
        self.clock = SimulatedClock()
        self.store = Store(self.clock)
        self.api = TimedApi(self.store)
        self.caches = {resource: cache.Store(resource, INDEXES.get(resource)) for resource in RESOURCES}
        self._read = dict.fromkeys(RESOURCES, 0)
        overlays = {resource: ReadYourWritesCache(store) for resource, store in self.caches.items()}
        remembering = ReadYourWritesApi(self.api, overlays)
        deps = Dependencies(
            caches=overlays,
            read_only={},
            api=remembering,
            clock=self.clock,
            events=RecordedEvents(),
            settings=Settings(namespace="kubevirt", launcher_image="launcher"),
            configuration=KubeVirtConfiguration,
            node_labels=lambda _name: {},
        )
        controllers = [controller for controller in CONTROLLERS if controller.name in ("vm", "vmi")]
        self._reconcilers = [controller.build(deps) for controller in controllers]
        self._queues = [WorkQueue(BackOff(lambda: 0.5)) for _unused in controllers]
        for index, controller in enumerate(controllers):
            controller.connect(deps, self._reconcilers[index], self._enqueue(index), is_watched=overlays.__contains__)
        for store in self.caches.values():
            store.synced = True
        spec = {"domain": {"memory": {"guest": "64Mi"}}}
        for number in range(vms):
            vm = {"metadata": {"name": f"vm-{number}"}, "spec": {"runStrategy": "Always", "template": {"spec": spec}}}
            self.store.create(VIRTUAL_MACHINE, "bench", vm)

    def _enqueue(self, index: int) -> Callable[[Key], None]:
        return lambda key: self._queues[index].add(key, self.clock.monotonic())

    def settle(self, *, without: Resource | None = None) -> None:
        """Deliver events and reconcile until nothing changes; deliver nothing of the resource `without`."""
        while self._deliver(without) or self._work():
            pass

    def run_pods(self) -> None:
        """Schedule every Pod and start its containers, as scheduler and kubelet do."""
        for key, body in self.store.list(POD):
            self.store.set_pod(key, body["metadata"]["uid"], node="node-1", status=RUNNING)

    def phases(self) -> set[str]:
        return {body["status"]["phase"] for _unused, body in self.store.list(VIRTUAL_MACHINE_INSTANCE)}

    def _deliver(self, without: Resource | None) -> bool:
        moved = False
        history = self.store.history
        for resource, store in self.caches.items():
            if resource == without:
                continue
            changes, self._read[resource] = history[self._read[resource] :], len(history)
            for change in (change for change in changes if change.resource == resource):
                moved = True
                if change.after is None:
                    store.remove(change.key, change.raw)
                else:
                    store.put(change.raw)
                store.move(change.version)
        return moved

    def _work(self) -> bool:
        moved = False
        now = self.clock.monotonic()
        for queue, reconciler in zip(self._queues, self._reconcilers, strict=True):
            while (key := queue.take(now)) is not None:
                moved = True
                try:
                    reconcile(reconciler, key).send(None)
                except StopIteration as end:
                    failed, again = end.value.error is not None, end.value.requeue_after
                    queue.finish(key, now, failed=failed, requeue_after=again)
        return moved


def milliseconds_per_vm(vms: int) -> float:
    """Start the VMs; return the CPU time of virt-controller for each."""
    storm = Storm(vms)
    began = time.process_time()
    storm.settle(without=POD)
    apart = time.process_time()
    storm.run_pods()
    apart = time.process_time() - apart
    storm.settle()
    spent = time.process_time() - began - apart - storm.api.seconds
    if storm.phases() != {"Scheduled"}:
        raise RuntimeError(f"not every machine is Scheduled: {storm.phases()}")
    return spent / vms * 1000


def run(report: Report) -> None:
    """Report the time for many VMs and its ratio to that for few: it must not grow with the number.

    Raises AssertionError after the last report when the limit is exceeded.
    """
    few, many = milliseconds_per_vm(FEW_VMS), milliseconds_per_vm(VMS)
    report(
        {
            "name": "cp-start-storm",
            "value": round(many, 2),
            "unit": "ms of CPU per VM",
            "vms": VMS,
            "target": MILLISECONDS_AT_MOST,
            f"with_{FEW_VMS}": round(few, 2),
            "ratio": round(many / few, 2),
        }
    )
    if many > MILLISECONDS_AT_MOST:
        raise AssertionError(f"{many:.2f} ms of CPU per VM")
