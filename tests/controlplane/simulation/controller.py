# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One virt-controller process: the real reconcilers, queue and caches, wired as in the process."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from kubevirt_api.names import LAUNCHER_ROLE, ROLE

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    KUBEVIRT,
    LEASE,
    NODE,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    Key,
    Resource,
)
from controlplane.engine.ports import Cache
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.virt_controller.controllers import CONTROLLERS
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.reporting.events import Kind, Regarding
from controlplane.virt_controller.settings import Settings
from controlplane.virt_controller.vm.reconciler import VmReconciler
from tests.controlplane.simulation.answers import Request, View
from tests.controlplane.simulation.configuration import Configuration
from tests.controlplane.simulation.controller_preconditions import unmet_precondition
from tests.controlplane.simulation.listing import INSTALL_NAMESPACE
from tests.controlplane.simulation.process import Process, Queue
from tests.support.calls import CallingApi
from tests.support.clock import WrongClock
from tests.support.lagging_cache import everything
from tests.support.store import Json, Store


@dataclass(slots=True)
class RecordedEvents:
    """Events, recorded instead of written."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    kinds: list[Kind] = field(default_factory=list)
    """Of the events, in their order."""
    occurrences: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    """UIDs of VMs with a request that was dropped, as their status reports."""

    @property
    def reasons(self) -> list[str]:
        """Those of the events, in their order."""
        return [reason for _regarding, reason, _message in self.events]

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        self.events.append((str(regarding.key), reason, message))
        self.kinds.append(kind)
        self.occurrences.append((reason, occurrence))
        if reason == "RequestDropped":
            self.dropped.append(regarding.uid)

    def take_dropped(self) -> list[str]:
        taken, self.dropped = self.dropped, []
        return taken


ALIKE = {"host-model-cpu.node.kubevirt.io/EPYC": "true"}
"""All nodes have the same CPU."""


def vm_reconciler(**parts: Any) -> VmReconciler:
    return VmReconciler(
        vms=parts["overlays"][VIRTUAL_MACHINE],
        vmis=parts["overlays"][VIRTUAL_MACHINE_INSTANCE],
        api=parts["api"],
        clock=parts["clock"],
        events=parts["events"],
        configuration=parts.get("configuration", KubeVirtConfiguration),
    )


_MACHINES = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
SIMULATED = {
    "vm": _MACHINES,
    "vmi": _MACHINES,
    "replicaset": (VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,),
    "migration": (VIRTUAL_MACHINE_INSTANCE_MIGRATION,),
    "orphan": (VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION),
    "node": (NODE,),
}
"""The simulated controllers, and the kinds whose keys may need one. It runs in the worlds that have all of them."""


class Controller(Process):
    role = "controller"

    def __init__(
        self,
        name: str,
        store: Store,
        clock: WrongClock,
        rng: random.Random,
        configuration: Configuration | None = None,
        rules: Callable[[Request], str | None] = unmet_precondition,
    ) -> None:
        """rules: returns the missing precondition of a call."""
        super().__init__(name, store, clock)
        self._rules = rules
        configuration = configuration or Configuration()
        by_resource = {item: self.watch(item, _is_launcher if item == POD else everything) for item in store.resources}
        self.caches = tuple(by_resource.values())
        self.overlays = {
            resource: ReadYourWritesCache(cache) for resource, cache in by_resource.items() if resource != LEASE
        }
        self.recorded = RecordedEvents()
        deps = Dependencies(
            caches=self.overlays,
            read_only={LEASE: by_resource[LEASE], KUBEVIRT: cast(Cache, configuration)},
            api=ReadYourWritesApi(CallingApi(store), self.overlays),
            clock=clock,
            events=self.recorded,
            settings=Settings(namespace=INSTALL_NAMESPACE, launcher_image="launcher"),
            configuration=configuration,
            node_labels=lambda _name: ALIKE,
        )
        self._add_controllers(deps, rng)
        for cache in self.caches:
            cache.start()
        for controller in self._controllers:
            if controller.begin is not None:
                controller.begin(self.work[controller.name][1])

    def _add_controllers(self, deps: Dependencies, rng: random.Random) -> None:
        """Build and connect the controllers as the process does."""
        watched = {*self.overlays, *deps.read_only}
        self._controllers = [item for item in CONTROLLERS if self._has_kinds_of(item.name)]
        for controller in self._controllers:
            self.work[controller.name] = (Queue(rng), controller.build(deps))
        for controller in self._controllers:
            _queue, reconciler = self.work[controller.name]
            controller.connect(deps, reconciler, self._enqueue(controller.name), is_watched=watched.__contains__)

    def _enqueue(self, name: str) -> Callable[[Key], None]:
        queue = self.work[name][0]

        def enqueue(key: Key) -> None:
            if not self.is_dead:
                queue.add(key, self.clock.monotonic())

        return enqueue

    def view(self, key: Key, since: int) -> View:
        vms, vmis = self.overlays[VIRTUAL_MACHINE], self.overlays[VIRTUAL_MACHINE_INSTANCE]
        return View(vms.get(key), vmis.get(key), since)

    def _has_kinds_of(self, name: str) -> bool:
        return name in SIMULATED and self.overlays.keys() >= set(SIMULATED[name])

    def keys(self, work: str) -> Iterable[Key]:
        none: frozenset[Key] = frozenset()
        return sorted(none.union(*(self.overlays[resource].keys() for resource in SIMULATED[work])))

    def raw(self, resource: Resource, key: Key) -> bytes | None:
        return self.overlays[resource].get(key) if resource in self.overlays else None

    def unmet_precondition(self, request: Request) -> str | None:
        return self._rules(request)


def _is_launcher(body: Json) -> bool:
    return bool(body["metadata"].get("labels", {}).get(ROLE) == LAUNCHER_ROLE)
