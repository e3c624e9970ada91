# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply, patch or remove a list of objects, and wait until each serves or is gone.

Works on any kind by the server's discovery. What "serves" means is in readiness.py; the connection is the client's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Iterator, Mapping, Protocol
from urllib.parse import quote

from .readiness import missing, pod_trouble

FIELD_MANAGER = "virtops.kubevirt"


class NotFound(Exception):
    """The server has no such object or kind."""


class NotReady(Exception):
    """An object did not get where it should in time; the text says what it was waiting for."""


class Client(Protocol):
    """What is needed of a connection to the API server. Paths are encoded already."""

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        body: Any = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        """Send a request and return the answer; NotFound for 404."""

    def watch(self, path: str, *, query: Mapping[str, str], seconds: float) -> Iterator[dict[str, Any]]:
        """Yield watch events until the time is up or the server ends the watch."""


@dataclass(frozen=True)
class Options:
    """How to go about it."""

    check: bool = False
    wait: bool = False
    wait_seconds: float = 300
    labels: Mapping[str, str] = field(default_factory=dict)
    """Added to the metadata of every object that is applied."""


@dataclass(frozen=True)
class Change:
    """What happened to one object."""

    kind: str
    name: str
    namespace: str
    changed: bool
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Objects:
    """A cluster's objects, addressed as manifests address them."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._options = options
        self._kinds: dict[str, dict[str, tuple[str, bool]]] = {}

    def apply(self, obj: dict[str, Any]) -> Change:
        """Bring an object to its definition by server-side apply; a definition that holds already changes nothing."""
        wanted = self._labelled(obj)
        before = self.read(obj)
        query = {"fieldManager": FIELD_MANAGER, "force": "true", **self._dry_run()}
        try:
            after = self._client.call(
                "PATCH", self.path(obj), query=query, body=wanted, content_type="application/apply-patch+yaml"
            )
        except NotFound:
            if not self._options.check:
                raise
            after = wanted  # its kind or namespace would have been made just before
        return _change(obj, before, after)

    def patch(self, obj: dict[str, Any]) -> Change:
        """Merge-patch an object that exists; nothing is done to one that does not."""
        before = self.read(obj)
        if before is None:
            return _change(obj, None, None)
        after = self._client.call(
            "PATCH", self.path(obj), query=self._dry_run(), body=obj, content_type="application/merge-patch+json"
        )
        return _change(obj, before, after)

    def remove(self, obj: dict[str, Any]) -> Change:
        """Delete an object, exactly the one that was read; an absent one is no change."""
        before = self.read(obj)
        if before is None:
            return _change(obj, None, None)
        body = {"preconditions": {"uid": before["metadata"]["uid"]}, "propagationPolicy": "Background"}
        try:
            self._client.call("DELETE", self.path(obj), query=self._dry_run(), body=body)
        except NotFound:
            pass
        return _change(obj, before, None)

    def read(self, obj: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the object as the server has it, None when there is none or its kind is unknown."""
        try:
            return self._client.call("GET", self.path(obj), query={})
        except NotFound:
            return None

    def wait_ready(self, obj: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """Wait by watch until an object serves, and return it; NotReady says what was missing."""
        seen = self.read(obj)
        while seen is None or missing(seen):
            seen = self._next(obj, seen, deadline)
            if time.monotonic() >= deadline and (seen is None or missing(seen)):
                raise NotReady(self._explain(obj, seen))
        return seen

    def wait_gone(self, obj: Mapping[str, Any], deadline: float) -> None:
        """Wait by watch until an object is gone; NotReady says what holds it."""
        seen = self.read(obj)
        while seen is not None:
            seen = self._next(obj, seen, deadline)
            if time.monotonic() >= deadline and seen is not None:
                held = ", ".join(seen["metadata"].get("finalizers") or ()) or "nothing that it says"
                raise NotReady(f"{seen['kind']} {seen['metadata']['name']} is not gone; it is held by {held}")

    def _next(self, obj: Mapping[str, Any], seen: dict[str, Any] | None, deadline: float) -> dict[str, Any] | None:
        """Return the object after its next change, or as it is when the watch ended."""
        collection, _, name = self.path(obj).rpartition("/")
        query = {"fieldSelector": f"metadata.name={name}"}
        if seen is not None:
            query["resourceVersion"] = seen["metadata"]["resourceVersion"]
        for event in self._client.watch(collection, query=query, seconds=max(1.0, deadline - time.monotonic())):
            if event["type"] == "DELETED":
                return None
            if event["type"] in ("ADDED", "MODIFIED"):
                return event["object"]
            break
        return self.read(obj)

    def _explain(self, obj: Mapping[str, Any], seen: dict[str, Any] | None) -> str:
        kind, name = obj["kind"], obj["metadata"]["name"]
        if seen is None:
            return f"{kind} {name} does not exist"
        text = f"{kind} {name}: {missing(seen)}"
        selector = seen.get("spec", {}).get("selector", {})
        labels = selector.get("matchLabels") if isinstance(selector, dict) else None
        if kind in ("Deployment", "DaemonSet") and labels:
            query = {"labelSelector": ",".join(f"{key}={value}" for key, value in sorted(labels.items()))}
            path = f"/api/v1/namespaces/{quote(seen['metadata']['namespace'], safe='')}/pods"
            troubles = [pod_trouble(pod) for pod in self._client.call("GET", path, query=query)["items"]]
            text = "; ".join([text, *filter(None, troubles)])
        return text

    def path(self, obj: Mapping[str, Any]) -> str:
        """Return the encoded path of an object; NotFound when the server does not know its kind."""
        api = obj["apiVersion"]
        plural, namespaced = self._kind(api, obj["kind"])
        root = f"/apis/{api}" if "/" in api else f"/api/{api}"
        metadata = obj["metadata"]
        where = f"/namespaces/{quote(metadata['namespace'], safe='')}" if namespaced else ""
        return f"{root}{where}/{plural}/{quote(metadata['name'], safe='')}"

    def _kind(self, api: str, kind: str) -> tuple[str, bool]:
        if kind not in self._kinds.get(api, {}):
            root = f"/apis/{api}" if "/" in api else f"/api/{api}"
            known = self._client.call("GET", root, query={})["resources"]
            self._kinds[api] = {one["kind"]: (one["name"], one["namespaced"]) for one in known if "/" not in one["name"]}
        try:
            return self._kinds[api][kind]
        except KeyError:
            raise NotFound(f"the server has no kind {kind} in {api}") from None

    def _labelled(self, obj: dict[str, Any]) -> dict[str, Any]:
        metadata = dict(obj["metadata"])
        metadata["labels"] = {**(metadata.get("labels") or {}), **self._options.labels}
        return {**obj, "metadata": metadata}

    def _dry_run(self) -> dict[str, str]:
        return {"dryRun": "All"} if self._options.check else {}


def _change(obj: Mapping[str, Any], before: dict[str, Any] | None, after: dict[str, Any] | None) -> Change:
    metadata = obj["metadata"]
    return Change(
        kind=obj["kind"],
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        changed=_content(before) != _content(after),
        before=before,
        after=after,
    )


def _content(obj: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what counts as a change: all but bookkeeping and status."""
    if obj is None:
        return None
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _BOOKKEEPING}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}


_BOOKKEEPING = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def bring_about(client: Client, definitions: list[dict[str, Any]], state: str, options: Options) -> list[Change]:
    """Make the cluster agree with a list of definitions: present, patched or absent.

    Objects are applied in the order given and removed in the opposite one. With wait, all are awaited after the last
    was sent, so that components which need one another can start. Raises NotReady.
    """
    objects = Objects(client, options)
    if state == "absent":
        changes = []
        for obj in reversed(definitions):
            changes.append(objects.remove(obj))
            if options.wait and not options.check and changes[-1].changed:
                objects.wait_gone(obj, time.monotonic() + options.wait_seconds)
        return changes
    changes = [objects.apply(obj) if state == "present" else objects.patch(obj) for obj in definitions]
    if options.wait and not options.check:
        deadline = time.monotonic() + options.wait_seconds
        for obj in definitions:
            objects.wait_ready(obj, deadline)
    return changes
