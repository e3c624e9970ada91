# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API verbs: quorum reads, writes with preconditions, pages of lists, watch streams. Implements engine.ports.Api.

No retries and no read-modify-write: after a conflict the reconciler decides again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import quote, urlencode

import msgspec

from controlplane.api.objects.resources import LEASE, Key, Resource
from controlplane.engine.errors import Conflict, Invalid, Unavailable
from controlplane.engine.ports import Json
from controlplane.kube.decoding import NOT_DECODED, decode
from controlplane.kube.errors import causes_field
from controlplane.kube.transport import Request, Transport

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
PAGE_ITEMS = 500
SHORTEST_STREAM_SECONDS = 1.0  # an empty stream that ends sooner is a fault, not the end of a watch
LEAST_ITEMS = 10
PAGE_BYTES = 8 * 1024 * 1024  # target size of a page, which is in memory twice while a cache stores it


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a kind: all, or of a namespace, or by label and field selectors."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""

    def __str__(self) -> str:
        parts = (self.resource.plural, self.namespace, self.label_selector, self.field_selector)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: objects as the server wrote them, and where the next part begins ("" = complete)."""

    items: list[bytes]
    resource_version: str
    continue_token: str


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_list_decoder = msgspec.json.Decoder(_List)


@dataclass(frozen=True, slots=True)
class Client:
    """engine.ports.Api on a real API server, plus what the caches need.

    field_manager is this process's name in managedFields. guard is called before each write and raises when this
    process may not write any more (it has lost the leadership).
    """

    transport: Transport
    field_manager: str
    guard: Callable[[], None] = lambda: None

    def guarded(self, guard: Callable[[], None]) -> Client:
        """Return a client on the same connections whose writes ask guard first."""
        return replace(self, guard=guard)

    async def get(self, resource: Resource, key: Key) -> Json:
        path, attempt = object_path(resource, key), f"get {resource.kind} {key}"
        return await self._object(Request("GET", path, attempt, pool=_pool(resource)))

    async def create(self, resource: Resource, namespace: str, body: Json, *, dry_run: bool = False) -> Json:
        self.guard()
        name = body.get("metadata", {}).get("name", "")
        return await self._object(
            Request(
                "POST",
                collection_path(resource, namespace) + self._write_query(dry_run=dry_run),
                f"create {resource.kind} {Key(namespace, name)}",
                msgspec.json.encode(body),
                pool=_pool(resource),
            )
        )

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Mapping[str, Any],
        *,
        subresource: Literal["", "status"] = "",
        resource_version: str | None = None,
        uid: str | None = None,
        dry_run: bool = False,
    ) -> Json:
        """Send a JSON merge patch. Conflict: the object has another resourceVersion or UID."""
        self.guard()
        body = _with_preconditions(patch, resource_version=resource_version, uid=uid)
        path = object_path(resource, key) + (f"/{subresource}" if subresource else "")
        attempt = f"patch {subresource + ' of ' if subresource else ''}{resource.kind} {key}"
        query, encoded = self._write_query(dry_run=dry_run), msgspec.json.encode(body)
        request = Request("PATCH", path + query, attempt, encoded, MERGE_PATCH, pool=_pool(resource))
        try:
            return await self._object(request)
        except Invalid as error:
            # Patches have no UID precondition: the API server refuses another UID as a change of an immutable field.
            if uid is not None and causes_field(error, "metadata.uid"):
                raise Conflict(str(error), reason="Conflict", details=error.details) from error
            raise

    async def ensure(self, resource: Resource, key: Key) -> Json:
        """Create an empty object of this name. An existing object stays as it is.

        By server-side apply and not by create: RBAC can limit an apply to a name, and a create not.
        """
        self.guard()
        metadata = {"name": key.name} | ({"namespace": key.namespace} if resource.namespaced else {})
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        path = object_path(resource, key) + self._write_query(dry_run=False)
        encoded = msgspec.json.encode(body)
        return await self._object(Request("PATCH", path, f"make {resource.kind} {key}", encoded, APPLY_PATCH))

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str,
        resource_version: str | None = None,
    ) -> None:
        """Delete the object with this UID. NotFound: it is gone. Conflict: another object has the name."""
        self.guard()
        preconditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        options: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        attempt = f"delete {resource.kind} {key}"
        await self.transport.send(Request("DELETE", object_path(resource, key), attempt, msgspec.json.encode(options)))

    async def list_page(
        self,
        selection: Selection,
        continue_token: str = "",
        *,
        limit: int = PAGE_ITEMS,
        not_older_than: int = 0,
        most_bytes: int = 0,
    ) -> Page:
        """Read one page, from the quorum or, cheaper, from any server that has reached not_older_than.

        A page that continues a list is of that list's version. Gone: continue_token is too old. Unavailable with
        ANSWER_TOO_LARGE: the page has more than most_bytes.
        """
        query = _selectors(selection) | {"limit": str(limit)}
        if continue_token:
            query["continue"] = continue_token
        elif not_older_than:
            query |= {"resourceVersion": str(not_older_than), "resourceVersionMatch": "NotOlderThan"}
        path = collection_path(selection.resource, selection.namespace)
        attempt = f"list {selection}"
        request = Request("GET", f"{path}?{urlencode(query)}", attempt, most_bytes=most_bytes)
        answer = await self.transport.send(request)
        try:
            return await _read_page(answer)
        except NOT_DECODED as error:
            raise Unavailable(f"cannot {attempt}: the answer is not a list ({error})") from error

    def watch(
        self, selection: Selection, resource_version: str, *, timeout_seconds: int, silence_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open the stream of changes after resource_version; each item is one JSON line (an event)."""
        query = _selectors(selection) | {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
        }
        path = collection_path(selection.resource, selection.namespace)
        return self.transport.stream(
            Request("GET", f"{path}?{urlencode(query)}", f"watch {selection}"), silence_seconds
        )

    async def _object(self, request: Request) -> Json:
        answer = await self.transport.send(request)
        try:
            return msgspec.json.decode(answer, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Unavailable(f"cannot {request.attempt}: the answer is not a JSON object ({error})") from error

    def _write_query(self, *, dry_run: bool) -> str:
        return "?" + urlencode({"fieldManager": self.field_manager} | ({"dryRun": "All"} if dry_run else {}))


def fit_limit(items: Sequence[bytes], limit: int) -> int:
    """Return how many items to ask for in the next page, by the average size of these."""
    if not items:
        return limit
    average = max(1, sum(map(len, items)) // len(items))
    return max(LEAST_ITEMS, min(PAGE_ITEMS, PAGE_BYTES // average))


async def _read_page(answer: bytes) -> Page:
    page = await decode(_list_decoder, answer)
    return Page([bytes(item) for item in page.items or ()], page.metadata.resource_version, page.metadata.continue_)


def collection_path(resource: Resource, namespace: str) -> str:
    """Return the path of a collection. Every segment is escaped."""
    root = f"/apis/{_segment(resource.group)}" if resource.group else "/api"
    inside = f"/namespaces/{_segment(namespace)}" if resource.namespaced and namespace else ""
    return f"{root}/{_segment(resource.version)}{inside}/{_segment(resource.plural)}"


def object_path(resource: Resource, key: Key) -> str:
    """Return the path of one object. Raises Invalid for a namespaced kind without a namespace."""
    if resource.namespaced and not key.namespace:
        raise Invalid(f"cannot address {resource.kind} {key}: it needs a namespace")
    return f"{collection_path(resource, key.namespace)}/{_segment(key.name)}"


def _segment(text: str) -> str:
    if text in {"", ".", ".."}:
        raise Invalid(f"cannot address an object by the name {text!r}")
    return quote(text, safe="")


def _pool(resource: Resource) -> str:
    return "leases" if resource == LEASE else "requests"


def _selectors(selection: Selection) -> dict[str, str]:
    query = {"labelSelector": selection.label_selector, "fieldSelector": selection.field_selector}
    return {name: value for name, value in query.items() if value}


def _with_preconditions(patch: Mapping[str, Any], *, resource_version: str | None, uid: str | None) -> Json:
    metadata = dict(patch.get("metadata") or {})
    if resource_version is not None:
        metadata["resourceVersion"] = resource_version
    if uid is not None:
        metadata["uid"] = uid
    return {**patch, "metadata": metadata} if metadata else dict(patch)
