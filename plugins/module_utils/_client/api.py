# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls that modules make on objects as plain dictionaries: one method, one request; refusals are raised.

Writes ask for strict field validation, so that a field the server does not know is an error whatever it does elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from . import paths
from .endpoint import Endpoint
from .errors import NotFound, Unavailable, refusal
from .transport import Transport

FIELD_MANAGER = "virtops.kubevirt"
APPLY = "application/apply-patch+yaml"  # JSON is YAML
MERGE_PATCH = "application/merge-patch+json"
PAGE = 500
"""Objects per request of a list."""

Object = dict[str, Any]


class Api:
    """A cluster. Not thread-safe; `clone` for each thread."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @classmethod
    def connect(cls, endpoint: Endpoint) -> Api:
        """Return the API of an endpoint; the connection is made at the first call."""
        return cls(Transport(endpoint))

    def clone(self) -> Api:
        """Return the same cluster over a connection of its own."""
        return Api(self._transport.clone())

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def get(self, resource: Resource, name: str) -> Object | None:
        """Return the object, or None if it is not there."""
        status, answer = self._transport.request("GET", resource.path(name))
        if status == 404 and _is_object_missing(answer):
            return None
        return _expect_object(f"read {resource.title(name)}", status, answer)

    def list(
        self, resource: Resource, *, labels: str | None = None, fields: str | None = None, pages: int | None = None
    ) -> list[Object]:
        """Return all objects that the selectors choose, page by page; at most so many pages."""
        found: list[Object] = []
        token: str | None = None
        while True:
            query = {"labelSelector": labels, "fieldSelector": fields, "limit": PAGE, "continue": token}
            target = paths.with_query(resource.path(), query)
            answer = _expect_object(f"list {resource.plural}", *self._transport.request("GET", target))
            for item in answer.get("items") or ():
                item.setdefault("apiVersion", resource.api_version)
                item.setdefault("kind", resource.kind)
                found.append(item)
            token = (answer.get("metadata") or {}).get("continue")
            if not token or (pages is not None and len(found) >= pages * PAGE):
                return found

    def apply(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Apply (create or update) what the object declares; conflicting owners give way."""
        name = obj["metadata"]["name"]
        query = {"fieldManager": FIELD_MANAGER, "force": True, "fieldValidation": "Strict", **_dry(dry_run)}
        answer = self._transport.request("PATCH", paths.with_query(resource.path(name), query), obj, APPLY)
        return _expect_object(f"apply {resource.title(name)}", *answer)

    def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Create the object, whose name may be left to the server (generateName)."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_dry(dry_run)}
        name = obj["metadata"].get("name") or obj["metadata"].get("generateName")
        answer = self._transport.request("POST", paths.with_query(resource.path(), query), obj)
        return _expect_object(f"create {resource.title(name)}", *answer)

    def patch(self, resource: Resource, name: str, patch: Object, *, dry_run: bool = False) -> Object:
        """Send a JSON merge patch."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_dry(dry_run)}
        answer = self._transport.request("PATCH", paths.with_query(resource.path(name), query), patch, MERGE_PATCH)
        return _expect_object(f"change {resource.title(name)}", *answer)

    def replace(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Put the object in the place of the stored one, whose resourceVersion it must carry."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_dry(dry_run)}
        name = obj["metadata"]["name"]
        answer = self._transport.request("PUT", paths.with_query(resource.path(name), query), obj)
        return _expect_object(f"replace {resource.title(name)}", *answer)

    def delete(self, resource: Resource, name: str, options: Mapping[str, Any], *, dry_run: bool = False) -> bool:
        """Ask for the deletion; return whether the object was there."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        if dry_run:
            body["dryRun"] = ["All"]
        status, answer = self._transport.request("DELETE", resource.path(name), body)
        if status == 404 and _is_object_missing(answer):
            return False
        _expect(f"delete {resource.title(name)}", status, answer)
        return True

    def put(self, resource: Resource, name: str, subresource: str, body: Object) -> None:
        """Ask for an operation (start, stop, restart...)."""
        status, answer = self._transport.request("PUT", resource.path(name, subresource), body)
        _expect(f"{subresource} {resource.title(name)}", status, answer)

    def kinds(self, api_version: str) -> dict[str, tuple[str, bool]]:
        """Return the kinds of a group version: kind to plural and whether it is namespaced. NotFound for no group."""
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = _expect_object(f"discover {api_version}", *self._transport.request("GET", path))
        known = answer.get("resources") or ()
        return {one["kind"]: (one["name"], one["namespaced"]) for one in known if "/" not in one["name"]}

    def serves(self, group: str) -> bool:
        """Tell whether the server knows a group of kinds at all; what answers otherwise is no API server."""
        answer = _expect_object("discover the API's groups", *self._transport.request("GET", "/apis"))
        if answer.get("kind") != "APIGroupList":
            raise Unavailable("cannot discover the API's groups: what answers at this address is not an API server")
        return any(one.get("name") == group for one in answer.get("groups") or ())

    def watch(self, resource: Resource, *, fields: str | None, timeout_seconds: float) -> Iterator[Object]:
        """Yield events {type, object}, first one per object that exists; ends with the time or the connection.

        The watch stands when this returns: what is read afterwards is not older than its first event.
        """
        query = {"watch": True, "fieldSelector": fields, "timeoutSeconds": max(1, int(timeout_seconds))}
        target = paths.with_query(resource.path(), query)
        status, lines = self._transport.stream(target, timeout_seconds + 1)
        if status != 200:
            answer = json.loads(next(lines, b"") or b"null")
            raise refusal(f"watch {resource.plural}", status, answer)
        return _events(lines)


class Resource:
    """A kind in a namespace (None: of the cluster, or of all namespaces in a list)."""

    def __init__(self, api_version: str, plural: str, kind: str, namespace: str | None) -> None:
        self.api_version = api_version
        self.plural = plural
        self.kind = kind
        self.namespace = namespace

    def path(self, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, of an object, of a subresource."""
        return paths.resource_path(self.api_version, self.plural, self.namespace, name, subresource)

    def title(self, name: str | None) -> str:
        """Return kind, namespace and name for a message."""
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


def _events(lines: Iterator[bytes]) -> Iterator[Object]:
    for line in lines:
        event = json.loads(line)
        if event.get("type") == "ERROR":
            return  # expired or overloaded: the reader opens another
        if event.get("type") != "BOOKMARK":
            yield event


def _dry(dry_run: bool) -> dict[str, str | None]:
    return {"dryRun": "All" if dry_run else None}


def _is_object_missing(answer: Any) -> bool:
    """Tell a missing object from a missing kind, whose 404 has no details.name."""
    return isinstance(answer, dict) and bool((answer.get("details") or {}).get("name"))


def _expect(attempt: str, status: int, answer: Any) -> Any:
    if status == 404 and not _is_object_missing(answer):
        raise NotFound(
            f"cannot {attempt}: the API server does not know this kind; is KubeVirt (or virtops.kubevirt's control"
            " plane) installed in this cluster?",
            status=404,
        )
    if status >= 300:
        raise refusal(attempt, status, answer)
    return answer


def _expect_object(attempt: str, status: int, answer: Any) -> Object:
    found = _expect(attempt, status, answer)
    if not isinstance(found, dict):
        raise Unavailable(f"cannot {attempt}: unexpected answer, status {status} without an object")
    return found
