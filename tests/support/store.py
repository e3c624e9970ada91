# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server in memory: one history, resourceVersions, finalizers, status subresources, garbage collection.

It has no admission: controllers must survive objects that admission would refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from kubevirt_api.condition_types import UNPAUSED

from controlplane.api.objects.resources import (
    CONTROLLER_REVISION,
    LEASE,
    MIGRATION_POLICY,
    NODE,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Key,
    Resource,
)
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.errors import AlreadyExists, Conflict, Invalid, NotFound
from tests.support.clock import SimulatedClock

Json = dict[str, Any]

WITH_STATUS = (
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_POOL,
)
RESOURCES = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD, NODE, LEASE)
UNWATCHED = (CONTROLLER_REVISION,)
"""Kinds that every world has and no process watches."""
UNCOUNTED = (LEASE, CONTROLLER_REVISION)
"""Kinds that do not shift the UIDs of other objects."""
WITH_SETS = (*RESOURCES, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET)
"""For worlds with replica sets. Other worlds save a cache in each process."""
WITH_MIGRATIONS = (*RESOURCES, VIRTUAL_MACHINE_INSTANCE_MIGRATION, MIGRATION_POLICY)
WITH_POOLS = (*RESOURCES, VIRTUAL_MACHINE_POOL)
OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history. after: None if the object was removed; before: its last state."""

    version: int
    resource: Resource
    key: Key
    before: Json | None
    after: Json | None
    raw: bytes
    actor: str
    """controller, handler, user, kubelet, scheduler, garbage collector, ..."""
    at: float = 0.0
    """Time of the simulated clock."""


class Store:
    def __init__(self, clock: SimulatedClock, resources: tuple[Resource, ...] = RESOURCES) -> None:
        self._clock = clock
        self.resources = resources
        self.kinds = (*resources, *UNWATCHED)
        self._objects: dict[str, dict[Key, Json]] = {resource.kind: {} for resource in self.kinds}
        self._raw: dict[str, dict[Key, bytes]] = {resource.kind: {} for resource in self.kinds}
        self._listed: dict[str, list[tuple[Key, Json]]] = {}
        """Sorted objects of each kind that has not changed since the last list."""
        self._uids = 0
        self.version = 0
        self.actor = ""
        """The current actor; set before each action."""
        self.history: list[Change] = []
        self.idle_writes: list[tuple[str, str]] = []
        """Actor and object of each patch that changed nothing."""
        self.histories: dict[str, list[Change]] = {resource.kind: [] for resource in self.kinds}

    @property
    def now(self) -> float:
        return self._clock.now()

    def get(self, resource: Resource, key: Key) -> Json:
        """Return a copy."""
        raw = self._raw[resource.kind].get(key)
        if raw is None:
            raise NotFound(f"{resource.kind} {key} not found")
        return msgspec.json.decode(raw)  # type: ignore[no-any-return]

    def find(self, resource: Resource, key: Key) -> Json | None:
        """Return the object without a copy, for readers only."""
        return self._objects[resource.kind].get(key)

    def list(self, resource: Resource) -> list[tuple[Key, Json]]:
        """Return the objects, sorted by key, without copies."""
        objects = self._listed.get(resource.kind)
        if objects is None:
            objects = self._listed[resource.kind] = sorted(self._objects[resource.kind].items(), key=_by_key)
        return objects

    def raw(self, resource: Resource, key: Key) -> bytes:
        """Return the object as JSON."""
        return self._raw[resource.kind][key]

    def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        stored = _copy(body)
        meta = stored["metadata"]
        key = Key(namespace, meta["name"])
        if key in self._objects[resource.kind]:
            raise AlreadyExists(f"{resource.kind} {key} already exists")
        self._uids += resource not in UNCOUNTED
        identity = {"namespace": namespace} if resource.namespaced else {}
        kind = "4000" if resource not in UNCOUNTED else f"{self.version:04x}"
        meta.update(identity, uid=f"{self._uids:08x}-0000-{kind}-8000-000000000000", generation=1)
        meta["creationTimestamp"] = format_timestamp(self._clock.now())
        if resource in WITH_STATUS:
            stored.pop("status", None)
        if resource == POD:
            stored["status"] = {"phase": "Pending"}
        return self._put(resource, key, stored)

    def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        resource_version: str | None = None,
        uid: str | None = None,
    ) -> Json:
        old = self.get(resource, key)
        self._check(resource, key, old, uid, resource_version)
        new = merged(old, patch)
        if resource in WITH_STATUS:
            new = {**old, "status": new.get("status", {})} if subresource else {**new, "status": old.get("status", {})}
        meta = new["metadata"]
        if sum(bool(owner.get("controller")) for owner in meta.get("ownerReferences") or ()) > 1:
            raise Invalid(f"{resource.kind} {key}: only one reference can have controller set to true")
        if "deletionTimestamp" in old["metadata"]:
            if set(meta.get("finalizers", ())) - set(old["metadata"].get("finalizers", ())):
                raise Invalid(f"{resource.kind} {key}: no new finalizers can be added if the object is being deleted")
            if not meta.get("finalizers") and resource != POD:
                return self._remove(resource, key, new)
        if resource in WITH_STATUS and new.get("spec") != old.get("spec"):
            meta["generation"] = meta.get("generation", 1) + 1
        if new == old and resource in (LEASE, NODE):  # renewals at the same time, or of two leaders, may be equal
            return old
        if new == old:
            self.idle_writes.append((self.actor, f"{resource.kind} {key}"))
            return old
        return self._put(resource, key, new)

    def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: str | None = None,
    ) -> None:
        old = self.get(resource, key)
        self._check(resource, key, old, uid, resource_version)
        meta = old["metadata"]
        if propagation == "Orphan" and "deletionTimestamp" not in meta:
            meta["finalizers"] = [*meta.get("finalizers", ()), "orphan"]
        runs = resource == POD and "nodeName" in old["spec"] and old["status"]["phase"] not in OVER
        if not meta.get("finalizers") and not (runs and grace_period_seconds != 0):
            self._remove(resource, key, old)
        elif "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = format_timestamp(self._clock.now())
            meta["deletionGracePeriodSeconds"] = 30 if runs else 0
            self._put(resource, key, old)

    def set_pod(self, key: Key, uid: str, *, status: Json | None = None, node: str | None = None) -> None:
        """Write as kubelet or scheduler: conditions of others stay. Does nothing if the Pod is gone."""
        old = self.find(POD, key)
        if old is None or old["metadata"]["uid"] != uid:
            return
        new = _copy(old)
        if node is not None:
            new["spec"]["nodeName"] = node
        if status is not None:
            new["status"] = _with_others_conditions(status, old.get("status", {}))
        if new != old:
            self._put(POD, key, new)

    def finish_pod(self, key: Key, uid: str) -> None:
        """Let the kubelet confirm that a deleted Pod has ended."""
        old = self.find(POD, key)
        if old is not None and old["metadata"]["uid"] == uid:
            self._remove(POD, key, _copy(old))

    @staticmethod
    def _check(resource: Resource, key: Key, old: Json, uid: str | None, version: str | None) -> None:
        meta = old["metadata"]
        if uid is not None and meta["uid"] != uid:
            raise Conflict(f"{resource.kind} {key}: UID precondition failed")
        if version is not None and meta["resourceVersion"] != version:
            raise Conflict(f"{resource.kind} {key}: the object has been modified")

    def _put(self, resource: Resource, key: Key, body: Json) -> Json:
        return self._record(resource, key, body, is_gone=False)

    def _remove(self, resource: Resource, key: Key, body: Json) -> Json:
        return self._record(resource, key, body, is_gone=True)

    def _record(self, resource: Resource, key: Key, body: Json, *, is_gone: bool) -> Json:
        objects, raws = self._objects[resource.kind], self._raw[resource.kind]
        before = objects.pop(key, None)
        self._listed.pop(resource.kind, None)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        raw = msgspec.json.encode(body)
        raws.pop(key, None)
        if not is_gone:
            objects[key], raws[key] = body, raw
        change = Change(self.version, resource, key, before, None if is_gone else body, raw, self.actor, self.now)
        self.history.append(change)
        self.histories[resource.kind].append(change)
        return msgspec.json.decode(raw)  # type: ignore[no-any-return]


def _by_key(item: tuple[Key, Json]) -> Key:
    return item[0]


def _with_others_conditions(status: Json, before: Json) -> Json:
    others = [condition for condition in before.get("conditions", ()) if condition["type"] == UNPAUSED]
    return {**status, "conditions": [*status.get("conditions", ()), *others]} if others else status


def _copy(body: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


def merged(target: Any, patch: Any) -> Any:
    """Apply a merge patch to a copy: RFC 7386."""
    if not isinstance(patch, Mapping):
        return _copy(patch) if isinstance(patch, list | tuple) else patch
    new = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        else:
            new[name] = merged(new.get(name), value)
    return new
