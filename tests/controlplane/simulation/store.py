# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server of the simulation: one history, resourceVersions, finalizers, status subresources, garbage collection.

As the real one as far as the reconcilers can tell. No admission: what admission would refuse must be survived.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from controlplane.virt_controller.stamps import render_stamp
from tests.controlplane.simulation.clock import SimulatedClock

Json = dict[str, Any]

WITH_STATUS = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
RESOURCES = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, POD, NODE)


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the history. after is None when the object went away; before is its last state."""

    version: int
    resource: Resource
    key: Key
    before: Json | None
    after: Json | None
    raw: bytes


class Store:
    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._objects: dict[tuple[Resource, Key], Json] = {}
        self._raw: dict[tuple[Resource, Key], bytes] = {}
        self._uids = 0
        self.version = 0
        self.history: list[Change] = []

    def get(self, resource: Resource, key: Key) -> Json:
        found = self.find(resource, key)
        if found is None:
            raise NotFound(f"{resource.kind} {key} not found")
        return copy.deepcopy(found)

    def find(self, resource: Resource, key: Key) -> Json | None:
        """Look without copying: for oracles and actors that only read."""
        return self._objects.get((resource, key))

    def list(self, resource: Resource) -> list[tuple[Key, Json]]:
        found = [(key, body) for (kind, key), body in self._objects.items() if kind == resource]
        return sorted(found, key=lambda one: one[0])

    def raw(self, resource: Resource, key: Key) -> bytes:
        """The object as a list shows it."""
        return self._raw[resource, key]

    def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        stored = copy.deepcopy(body)
        meta = stored["metadata"]
        key = Key(namespace, meta["name"])
        if (resource, key) in self._objects:
            raise AlreadyExists(f"{resource.kind} {key} already exists")
        self._uids += 1
        meta.update(namespace=namespace, uid=f"{self._uids:08x}-0000-4000-8000-000000000000", generation=1)
        meta["creationTimestamp"] = render_stamp(self._clock.now())
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
        merged = _merge(old, patch)
        if resource in WITH_STATUS:
            merged = (
                {**old, "status": merged.get("status", {})}
                if subresource
                else {**merged, "status": old.get("status", {})}
            )
        meta = merged["metadata"]
        if "deletionTimestamp" in old["metadata"]:
            if set(meta.get("finalizers", ())) - set(old["metadata"].get("finalizers", ())):
                raise Invalid(f"{resource.kind} {key}: no new finalizers can be added if the object is being deleted")
            if not meta.get("finalizers") and resource != POD:
                return self._remove(resource, key, merged)
        if merged.get("spec") != old.get("spec"):
            meta["generation"] = meta.get("generation", 1) + 1
        if merged == old:
            return old
        return self._put(resource, key, merged)

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
        runs = resource == POD and "nodeName" in old["spec"] and old["status"]["phase"] not in ("Succeeded", "Failed")
        if not meta.get("finalizers") and not (runs and grace_period_seconds != 0):
            self._remove(resource, key, old)
        elif "deletionTimestamp" not in meta:
            meta["deletionTimestamp"] = render_stamp(self._clock.now())
            meta["deletionGracePeriodSeconds"] = 30 if runs else 0
            self._put(resource, key, old)

    def would_accept(self, run: Callable[[], object]) -> bool:
        """Tell whether a call would take effect now; leaves no trace of it."""
        objects, raw = dict(self._objects), dict(self._raw)
        history, version = len(self.history), self.version
        try:
            run()
        except ApiError:
            return False
        finally:
            self._objects, self._raw, self.version = objects, raw, version
            del self.history[history:]
        return True

    def set_pod(self, key: Key, uid: str, *, status: Json | None = None, node: str | None = None) -> None:
        """Write as kubelet or scheduler do; nothing happens when that Pod is gone."""
        old = self.find(POD, key)
        if old is None or old["metadata"]["uid"] != uid:
            return
        new = copy.deepcopy(old)
        if node is not None:
            new["spec"]["nodeName"] = node
        if status is not None:
            new["status"] = status
        if new != old:
            self._put(POD, key, new)

    def finish_pod(self, key: Key, uid: str) -> None:
        """Let the kubelet confirm that a deleted Pod has ended."""
        old = self.find(POD, key)
        if old is not None and old["metadata"]["uid"] == uid:
            self._remove(POD, key, copy.deepcopy(old))

    def collect_garbage(self) -> bool:
        """Do one thing that the garbage collector owes; tell whether there was one."""
        uids = {body["metadata"]["uid"] for body in self._objects.values()}
        for (resource, key), body in sorted(self._objects.items(), key=lambda one: (one[0][0].plural, one[0][1])):
            meta = body["metadata"]
            owners = meta.get("ownerReferences") or []
            if owners and "deletionTimestamp" not in meta and all(one["uid"] not in uids for one in owners):
                self.delete(resource, key, uid=meta["uid"])
                return True
            if "deletionTimestamp" in meta and "orphan" in meta.get("finalizers", ()):
                self._orphan(resource, key, meta)
                return True
        return False

    def _orphan(self, resource: Resource, key: Key, meta: Json) -> None:
        """Cut the first dependant loose, or let go of the owner when there is none left."""
        for (kind, child), body in self._objects.items():
            owners = body["metadata"].get("ownerReferences") or []
            kept = [one for one in owners if one["uid"] != meta["uid"]]
            if len(kept) != len(owners):
                self.patch(kind, child, {"metadata": {"ownerReferences": kept or None}})
                return
        rest = [one for one in meta["finalizers"] if one != "orphan"]
        self.patch(resource, key, {"metadata": {"finalizers": rest or None}})

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
        before = self._objects.pop((resource, key), None)
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        raw = msgspec.json.encode(body)
        self._raw.pop((resource, key), None)
        if not is_gone:
            self._objects[resource, key], self._raw[resource, key] = body, raw
        after = None if is_gone else body
        self.history.append(Change(self.version, resource, key, before or body, after, raw))
        return copy.deepcopy(body)


def _merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge(merged.get(name), value)
    return merged
