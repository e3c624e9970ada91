# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All controllers, connected as in the process, on caches that a test fills. Records what is enqueued."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    DATA_VOLUME,
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
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.kube.cache import Store
from controlplane.virt_controller.controller import AnyController, KeysOf, Watch
from controlplane.virt_controller.controllers import CONTROLLERS, INDEXES
from controlplane.virt_controller.dependencies import Dependencies
from controlplane.virt_controller.settings import Settings
from tests.controlplane.simulation.controller import RecordedEvents
from tests.support.clock import SimulatedClock

Json = dict[str, Any]
Enqueued = set[tuple[str, str]]
KINDS = (
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_POOL,
    MIGRATION_POLICY,
    POD,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    DATA_VOLUME,
    KUBEVIRT,
    LEASE,
)


class WatchedCluster:
    def __init__(self) -> None:
        self.stores = {resource: Store(resource, INDEXES.get(resource)) for resource in KINDS}
        self.caches = {resource: ReadYourWritesCache(store) for resource, store in self.stores.items()}
        self.enqueued: Enqueued = set()
        """Controller and key."""
        self.watches: list[str] = []
        """Controller, kind and number of each watch."""
        self.effective: set[str] = set()
        """Those of them that returned a key."""
        self._version = 0
        no_api: Any = None
        self.deps = Dependencies(
            caches=self.caches,
            read_only={resource: self.stores[resource] for resource in (LEASE, PERSISTENT_VOLUME_CLAIM)},
            api=ReadYourWritesApi(no_api, self.caches),
            clock=SimulatedClock(),
            events=RecordedEvents(),
            settings=Settings(namespace="kubevirt", launcher_image="launcher"),
            configuration=KubeVirtConfiguration,
            node_labels=lambda _name: {},
        )
        self.reconcilers = {controller.name: controller.build(self.deps) for controller in CONTROLLERS}
        for controller in CONTROLLERS:
            reconciler = self.reconcilers[controller.name]
            recorded = replace(controller, watches=partial(self._recorded, controller))
            recorded.connect(self.deps, reconciler, self._enqueue(controller.name), is_watched=lambda _kind: True)

    def _recorded(self, controller: AnyController, deps: Dependencies, reconciler: Any) -> Iterator[Watch]:
        """Return the watches of a controller, which record what they return."""
        for number, watch in enumerate(controller.watches(deps, reconciler), start=1):
            name = f"{controller.name}: watch {number}, {watch.resource.kind}"
            self.watches.append(name)
            yield replace(watch, keys=partial(self._keys, name, watch.keys))

    def _keys(self, watch: str, keys: KeysOf, key: Key, before: bytes | None, after: bytes | None) -> Iterator[Key]:
        for affected in keys(key, before, after):
            self.effective.add(watch)
            yield affected

    def _enqueue(self, name: str) -> Any:
        return lambda key: self.enqueued.add((name, str(key)))

    def put(self, resource: Resource, key: Key, body: Json, uid: str = "") -> Enqueued:
        """Add or change an object; return what that enqueues."""
        self.enqueued.clear()
        self.effective.clear()
        self._version += 1
        identity = {"name": key.name, "namespace": key.namespace, "uid": uid or f"uid-{key.name}"}
        meta = {**identity, **body.get("metadata", {}), "resourceVersion": str(self._version)}
        self.stores[resource].put(msgspec.json.encode({**body, "metadata": meta}))
        return set(self.enqueued)

    def remove(self, resource: Resource, key: Key) -> Enqueued:
        """Delete an object; return what that enqueues."""
        self.enqueued.clear()
        self.effective.clear()
        self.stores[resource].remove(key)
        return set(self.enqueued)
