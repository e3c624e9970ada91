# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP interface of the API server, on the in-memory store: paths, codes and bodies.

It behaves as the real one where our client depends on it. A kind that is not served gets a plain 404, which says
nothing about any object.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import AlreadyExists, ApiError, Conflict, Forbidden, Gone, Invalid, NotFound
from tests.support.store import Change, Json, Store

CODES: dict[type[ApiError], tuple[int, str]] = {
    NotFound: (404, "NotFound"),
    AlreadyExists: (409, "AlreadyExists"),
    Conflict: (409, "Conflict"),
    Forbidden: (403, "Forbidden"),
    Invalid: (422, "Invalid"),
    Gone: (410, "Expired"),
}
PAGE = 2
"""The most items in a page, whatever limit is requested."""
NOT_SERVED = b"404 page not found\n"
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
NO_EVENT = b"<html></html>\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """A response on its way."""

    code: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        return self.code < 300


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request. key: None for a collection."""

    resource: Resource
    namespace: str
    key: Key | None
    subresource: str
    query: Mapping[str, str]

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    def selects(self, body: Json) -> bool:
        """Whether the selector of the collection matches the object."""
        meta = body["metadata"]
        has = meta.get("labels") or {}
        return (
            (not self.namespace or meta.get("namespace", "") == self.namespace)
            and all(_field(body, name) == value for name, value in self._wanted("fieldSelector"))
            and all(has.get(name) == value for name, value in self._wanted("labelSelector"))
        )

    def _wanted(self, selector: str) -> list[list[str]]:
        return [word.split("=") for word in self.query[selector].split(",")] if selector in self.query else []


class ApiServer:
    """Answers each request in one step."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._by_path = {(resource.group, resource.version, resource.plural): resource for resource in store.resources}
        self.unserved: set[Resource] = set()
        self.compacted: dict[Resource, int] = {}
        """Up to which version the history of a kind is dropped."""
        self.garbled: dict[Resource, int] = {}
        """The version of an unreadable event, in each stream that begins before it."""

    def target(self, path: str, query: Mapping[str, str]) -> Target:
        """Parse a path. Raises KeyError for an unknown one."""
        parts = path.strip("/").split("/")
        group, version, rest = (parts[1], parts[2], parts[3:]) if parts[0] == "apis" else ("", parts[1], parts[2:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        resource = self._by_path[group, version, rest[0]]
        key = Key(namespace, rest[1]) if len(rest) > 1 else None
        return Target(resource, namespace, key, rest[2] if len(rest) > 2 else "", query)

    def answer(self, method: str, target: Target, body: bytes | None) -> Reply:
        """Apply a request and return the response."""
        if target.resource in self.unserved:
            return Reply(404, NOT_SERVED, {"Content-Type": "text/plain"})
        sent = None if body is None else msgspec.json.decode(body)
        try:
            result = self._do(method, target, sent)
        except ApiError as error:
            code, reason = CODES[type(error)]
            return status(code, reason, str(error), error.details)
        return Reply(
            201 if method == "POST" else 200, result if isinstance(result, bytes) else msgspec.json.encode(result)
        )

    def _do(self, method: str, target: Target, sent: Any) -> Json | bytes:
        store, resource, key = self.store, target.resource, target.key
        if key is None:
            return store.create(resource, target.namespace, sent) if method == "POST" else self._list(target)
        if method == "GET":
            return store.get(resource, key)
        if method == "PATCH":
            return self._patch(target, key, sent)
        wanted = sent["preconditions"]
        store.delete(resource, key, uid=wanted["uid"], resource_version=wanted.get("resourceVersion"))
        return {"kind": "Status", "status": "Success"}

    def _patch(self, target: Target, key: Key, sent: Json) -> Json:
        meta = dict(sent.get("metadata") or {})
        version, uid = meta.pop("resourceVersion", None), meta.pop("uid", None)
        old = self.store.get(target.resource, key)
        if uid is not None and old["metadata"]["uid"] != uid:
            causes = [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]
            raise Invalid("metadata.uid: field is immutable", details={"causes": causes})
        patch = {
            **{name: value for name, value in sent.items() if name != "metadata"},
            **({"metadata": meta} if meta else {}),
        }
        return self.store.patch(target.resource, key, patch, subresource=target.subresource, resource_version=version)

    def _list(self, target: Target) -> Json | bytes:
        """Return a page. The continue token has the position and the version of the list."""
        version, _unused, last = target.query.get("continue", "").partition(":")
        at = int(version or self.store.version)
        if version and at < self.compacted.get(target.resource, 0):
            raise Gone("The provided continue parameter is too old")
        items = [item for item in self._there(target, at) if not last or str(item.key) > last]
        limit = min(PAGE, int(target.query.get("limit", PAGE)))
        page, rest = items[:limit], items[limit:]
        meta = {"resourceVersion": str(at)} | ({"continue": f"{at}:{page[-1].key}"} if rest else {})
        return b'{"kind":"List","metadata":%s,"items":[%s]}' % (
            msgspec.json.encode(meta),
            b",".join(item.raw for item in page),
        )

    def _there(self, target: Target, version: int) -> list[Change]:
        """Return the objects at a version, by name."""
        there: dict[Key, Change] = {}
        for change in self.store.histories[target.resource.kind]:
            if change.version > version:
                break
            there.pop(change.key, None)
            if change.after is not None and target.selects(change.after):
                there[change.key] = change
        return sorted(there.values(), key=lambda item: str(item.key))

    def open(self, target: Target) -> Reply:
        """Respond to a watch request."""
        if target.resource in self.unserved:
            return Reply(404, NOT_SERVED)
        return Reply(
            200, EXPIRED if int(target.query["resourceVersion"]) < self.compacted.get(target.resource, 0) else b""
        )

    def events(self, target: Target, after: int) -> Iterable[tuple[int, bytes]]:
        """Yield the events for a watcher, each with the version that it then has reached."""
        history = self.store.histories[target.resource.kind]
        for change in history[bisect_right(history, after, key=_version) :]:
            was, is_there = (item is not None and target.selects(item) for item in (change.before, change.after))
            if was or is_there:
                if after < self.garbled.get(target.resource, 0) <= change.version:
                    yield after, NO_EVENT
                    return
                kind = b"DELETED" if not is_there else b"MODIFIED" if was else b"ADDED"
                yield change.version, b'{"type":"%s","object":%s}\n' % (kind, change.raw)

    def bookmark(self, target: Target) -> bytes:
        meta = {"resourceVersion": str(self.store.version)}
        body = {"type": "BOOKMARK", "object": {"kind": target.resource.kind, "metadata": meta}}
        return msgspec.json.encode(body) + b"\n"


def status(code: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> Reply:
    """Return an error response in the wording of the API server."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details or {}}
    return Reply(code, msgspec.json.encode(body), {"Content-Type": "application/json"})


def _version(change: Change) -> int:
    return change.version


def _field(body: Json, name: str) -> Any:
    result: Any = body
    for part in name.split("."):
        result = result.get(part) if isinstance(result, dict) else None
    return result
