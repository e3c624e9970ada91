# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For tests of reconcilers: a store with the API server's rules, caches that a test advances, and an API that refuses.

The store is the simulation's: resourceVersions, UID preconditions, finalizers, subresources. Nothing is random: a test
determines the order of events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import ApiError
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from tests.controlplane.simulation.controller import RecordedEvents
from tests.support.clock import SimulatedClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import RESOURCES, Json, Store


@dataclass(slots=True)
class StoreApi:
    """engine.ports.Api on the store. Records every call with its preconditions."""

    store: Store
    calls: list[str] = field(default_factory=list)
    refusals: dict[str, ApiError] = field(default_factory=dict)
    """The error of every call of a kind without preconditions, e.g. "create Pod"."""
    meanwhile: dict[str, Callable[[], object]] = field(default_factory=dict)
    """The action of another client just before a call, once."""

    async def get(self, resource: Resource, key: Key) -> Json:
        self._call("get", resource)
        return self.store.get(resource, key)

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        self._call("create", resource)
        return self.store.create(resource, namespace, body)

    async def patch(self, resource: Resource, key: Key, patch: Mapping[str, Any], **options: Any) -> Json:
        verb = "patch status of" if options.get("subresource") else "patch"
        self._call(verb, resource, uid=options.get("uid"), version=options.get("resource_version"))
        return self.store.patch(resource, key, patch, **options)

    async def delete(self, resource: Resource, key: Key, *, uid: str, **options: Any) -> None:
        self._call("delete", resource, uid=uid, version=options.get("resource_version"))
        self.store.delete(resource, key, uid=uid, **options)

    def _call(self, verb: str, resource: Resource, **preconditions: str | None) -> None:
        names = "+".join(name for name, value in preconditions.items() if value)
        self.calls.append(f"{verb} {resource.kind}" + (f" [{names}]" if names else ""))
        self.meanwhile.pop(f"{verb} {resource.kind}", lambda: None)()
        if error := self.refusals.get(f"{verb} {resource.kind}"):
            raise error


class SmallWorld:
    def __init__(self, resources: tuple[Resource, ...] = RESOURCES, store: Store | None = None) -> None:
        """store: that of another process, to share its objects."""
        self.clock = SimulatedClock()
        self.store = Store(self.clock, resources) if store is None else store
        self.caches = {resource: LaggingCache(self.store, resource) for resource in resources}
        self.overlays = {resource: ReadYourWritesCache(cache) for resource, cache in self.caches.items()}
        self.direct = StoreApi(self.store)
        self.api = ReadYourWritesApi(self.direct, self.overlays)
        self.recorder = RecordedEvents()

    @property
    def calls(self) -> list[str]:
        return self.direct.calls

    def start(self) -> None:
        """List the store into the caches."""
        for cache in self.caches.values():
            cache.start()

    def catch_up(self, *resources: Resource) -> None:
        """Let these caches, or all, read up to the store's current version."""
        for resource in resources or self.caches:
            while self.caches[resource].is_behind:
                self.caches[resource].advance()
            self.caches[resource].bookmark()
