# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls on objects as plain dictionaries: one method, one request. Errors of the API are raised.

Writes ask for strict field validation: an unknown field is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from . import objects, paths
from .endpoint import Endpoint
from .errors import NotFound, Unavailable
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
        self.transport = transport
        """For streams (websocket.py)."""

    @classmethod
    def connect(cls, endpoint: Endpoint) -> Api:
        """Return the API of an endpoint. The first call opens the connection."""
        return cls(Transport(endpoint))

    @property
    def origin(self) -> str:
        """Scheme, host and port of the cluster's address."""
        return self.transport.origin

    def clone(self) -> Api:
        """Return a client of the same cluster with its own connection."""
        return Api(self.transport.clone())

    def close(self) -> None:
        """Close the connection."""
        self.transport.close()

    @contextmanager
    def bounded(self, deadline: float) -> Iterator[None]:
        """End all requests of this block at a deadline plus a few seconds (transport.py)."""
        before, self.transport.deadline = self.transport.deadline, deadline
        try:
            yield
        finally:
            self.transport.deadline = before

    def get(self, resource: Resource, name: str) -> Object | None:
        """Return the object, or None if it does not exist."""
        status, response = self.transport.request("GET", resource.path(name))
        if status == 404 and _is_object_missing(response):
            return None
        return _expect_named(f"read {resource.title(name)}", status, response)

    def list(
        self, resource: Resource, *, labels: str | None = None, fields: str | None = None, pages: int | None = None
    ) -> list[Object]:
        """Return the selected objects. pages: the maximum number of requests."""
        return self.read_all(resource, labels=labels, fields=fields, pages=pages)[0]

    def read_all(
        self, resource: Resource, *, labels: str | None = None, fields: str | None = None, pages: int | None = None
    ) -> tuple[list[Object], str | None]:
        """Return the objects and the resourceVersion of the collection to watch from."""
        listed: list[Object] = []
        token: str | None = None
        while True:
            query = {"labelSelector": labels, "fieldSelector": fields, "limit": PAGE, "continue": token}
            target = paths.with_query(resource.path(), query)
            response = _expect_object(f"list {resource.plural}", *self.transport.request("GET", target))
            for obj in response.get("items") or ():
                _expect_likeness(f"list {resource.plural}", obj)
                obj.setdefault("apiVersion", resource.api_version)
                obj.setdefault("kind", resource.kind)
                listed.append(obj)
            metadata = response.get("metadata") or {}
            before, token = token, metadata.get("continue")
            if token and token == before:
                raise Unavailable(f"cannot list {resource.plural}: unexpected response, the same page twice")
            if not token or (pages is not None and len(listed) >= pages * PAGE):
                return listed, metadata.get("resourceVersion")

    def apply(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Apply (create or update) the object. It takes over fields of other managers."""
        name = obj["metadata"]["name"]
        query = {"fieldManager": FIELD_MANAGER, "force": True, "fieldValidation": "Strict", **_dry(dry_run)}
        response = self.transport.request("PATCH", paths.with_query(resource.path(name), query), obj, APPLY)
        return _expect_named(f"apply {resource.title(name)}", *response)

    def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Create the object. The server may choose its name (generateName)."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_dry(dry_run)}
        name = obj["metadata"].get("name") or obj["metadata"].get("generateName")
        response = self.transport.request("POST", paths.with_query(resource.path(), query), obj)
        return _expect_named(f"create {resource.title(name)}", *response)

    def patch(self, resource: Resource, name: str, patch: Object, *, dry_run: bool = False) -> Object:
        """Send a JSON merge patch."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_dry(dry_run)}
        response = self.transport.request("PATCH", paths.with_query(resource.path(name), query), patch, MERGE_PATCH)
        return _expect_named(f"change {resource.title(name)}", *response)

    def replace(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Replace the stored object. `obj` needs the resourceVersion of the stored object."""
        query = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", **_dry(dry_run)}
        name = obj["metadata"]["name"]
        response = self.transport.request("PUT", paths.with_query(resource.path(name), query), obj)
        return _expect_named(f"replace {resource.title(name)}", *response)

    def delete(self, resource: Resource, name: str, options: Mapping[str, Any], *, dry_run: bool = False) -> bool:
        """Delete the object; return whether it existed."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        if dry_run:
            body["dryRun"] = ["All"]
        status, response = self.transport.request("DELETE", resource.path(name), body)
        if status == 404 and _is_object_missing(response):
            return False
        expect(f"delete {resource.title(name)}", status, response)
        return True

    def put(self, resource: Resource, name: str, subresource: str, body: Object) -> None:
        """Send an operation (start, stop, restart...). The response has no body; the object shows the effect."""
        status, response = self.transport.request("PUT", resource.path(name, subresource), body)
        expect(f"{subresource} {resource.title(name)}", status, response)

    def ask(self, resource: Resource, name: str, subresource: str, body: Object | None = None) -> Object:
        """Return the response of a subresource. body: for subresources that take one."""
        status, response = self.transport.request("GET", resource.path(name, subresource), body)
        return _expect_object(f"read {subresource} of {resource.title(name)}", status, response)

    def download(self, resource: Resource, name: str, subresource: str, accept: str) -> bytes:
        """Return the body of a subresource that is not JSON. accept: its content type; the server may send another."""
        response = self.transport.request("GET", resource.path(name, subresource), accept=accept)
        body: bytes = expect(f"read {subresource} of {resource.title(name)}", *response)
        return body

    def version(self) -> str:
        """Return the server's version, or "" if it reports none."""
        return str(
            _expect_object("read the version", *self.transport.request("GET", "/version")).get("gitVersion") or ""
        )

    def serves(self, group: str) -> bool:
        """Tell whether the server serves an API group."""
        response = _expect_object("discover the API's groups", *self.transport.request("GET", "/apis"))
        if response.get("kind") != "APIGroupList":
            raise Unavailable("cannot discover the API's groups: the server at this address is not an API server")
        return any(served.get("name") == group for served in response.get("groups") or ())

    def watch(
        self, resource: Resource, *, fields: str | None, version: str | None, timeout_seconds: float
    ) -> Iterator[Object]:
        """Yield events {type, object} after a version, also bookmarks. It ends at the timeout or with the connection.

        Raises the API's errors, also between events. ApiError with status 410: the version is too old for the server.
        """
        query = {
            "watch": True,
            "allowWatchBookmarks": True,
            "fieldSelector": fields,
            "resourceVersion": version,
            "timeoutSeconds": max(1, int(timeout_seconds)),
        }
        from . import streams  # only waits need it

        target = paths.with_query(resource.path(), query)
        return streams.events(self.transport, target, timeout_seconds + 1, f"watch {resource.plural}")


class Resource:
    """A kind in a namespace. None: a cluster-wide kind, or all namespaces of a list."""

    def __init__(self, api_version: str, plural: str, kind: str, namespace: str | None) -> None:
        self.api_version = api_version
        self.plural = plural
        self.kind = kind
        self.namespace = namespace

    def path(self, name: str | None = None, subresource: str | None = None) -> str:
        """Return the path of the collection, an object or a subresource."""
        return paths.resource_path(self.api_version, self.plural, self.namespace, name, subresource)

    def title(self, name: str | None) -> str:
        """Return kind, namespace and name for a message."""
        return f"{self.kind} {self.namespace}/{name}" if self.namespace else f"{self.kind} {name}"


def _dry(dry_run: bool) -> dict[str, str | None]:
    return {"dryRun": "All" if dry_run else None}


def _is_object_missing(response: Any) -> bool:
    """Tell whether the object is missing, not the kind. The 404 for a missing kind has no details.name."""
    details = response.get("details") if isinstance(response, dict) else None
    return isinstance(details, dict) and bool(details.get("name"))


def expect(attempt: str, status: int, response: Any) -> Any:
    """Return the decoded body, or raise the API's error."""
    if status == 404 and not _is_object_missing(response):
        raise NotFound(
            f"cannot {attempt}: the API server does not know this kind; is KubeVirt (or virtops.kubevirt's control"
            " plane) installed in this cluster?",
            status=404,
        )
    if status >= 300:
        from .refusals import refusal

        raise refusal(attempt, status, response)
    return response


def _expect_object(attempt: str, status: int, response: Any) -> Object:
    body = expect(attempt, status, response)
    if not isinstance(body, dict):
        raise Unavailable(f"cannot {attempt}: unexpected response, status {status} without an object")
    for field, kind in (("metadata", dict), ("items", list)):
        if not isinstance(body.get(field) or kind(), kind):
            raise Unavailable(f"cannot {attempt}: unexpected response, status {status} with an invalid {field}")
    if not all(isinstance(item, dict) for item in body.get("items") or ()):
        raise Unavailable(f"cannot {attempt}: unexpected response, status {status} with items that are no objects")
    return body


def _expect_named(attempt: str, status: int, response: Any) -> Object:
    return _expect_likeness(attempt, _expect_object(attempt, status, response))


def _expect_likeness(attempt: str, obj: Object) -> Object:
    flaw = objects.flaw(obj)
    if flaw:
        raise Unavailable(f"cannot {attempt}: unexpected response, no object of the API: {flaw}")
    return obj
