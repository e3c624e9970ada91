# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An in-process API server: one history of versions, pages, watch streams, preconditions, and injected faults.

It behaves as the real one where the client depends on it. It has no admission, schemas or RBAC.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from controlplane.kube.client import Client
from controlplane.kube.credentials import Credentials, anonymous
from controlplane.kube.transport import Transport

Json = dict[str, Any]


def status(code: int, reason: str, message: str = "", **details: Any) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message or reason,
        "details": details,
    }


@dataclass
class FakeApi:
    """State and faults. Each entry of `faults` answers one request that matches (method, part of path), in order."""

    version: int = 100
    compacted: int = 0
    objects: dict[str, Json] = field(default_factory=dict)
    log: list[tuple[int, str, str, Json]] = field(default_factory=list)
    faults: list[tuple[str, str, web.StreamResponse | Json | bytes]] = field(default_factory=list)
    requests: list[tuple[str, str, Json]] = field(default_factory=list)
    seen: list[tuple[str, str, Json | None, str]] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    streams: set[asyncio.Event] = field(default_factory=set)
    uids: int = 0

    # For tests.

    def put(self, path: str, body: Json) -> Json:
        """Write as another client would, without checks; `path` is that of the object."""
        before = self.objects.get(path)
        self.version += 1
        stored = deepcopy(body)
        meta = stored.setdefault("metadata", {})
        meta.setdefault("name", path.rsplit("/", 1)[1])
        parts = path.split("/")
        if "namespaces" in parts:
            meta.setdefault("namespace", parts[parts.index("namespaces") + 1])
        if before is None:
            self.uids += 1
        meta["uid"] = before["metadata"]["uid"] if before else meta.get("uid") or f"uid-{self.uids}"
        meta["resourceVersion"] = str(self.version)
        self.objects[path] = stored
        self._record("MODIFIED" if before else "ADDED", path, stored)
        return stored

    def drop(self, path: str) -> None:
        self.version += 1
        gone = deepcopy(self.objects.pop(path))
        gone["metadata"]["resourceVersion"] = str(self.version)
        self._record("DELETED", path, gone)

    def compact(self) -> None:
        """Drop the history: open streams end, and older versions get 410."""
        self.compacted = self.version
        self.log.clear()
        self.cut()

    def cut(self) -> None:
        """End every open stream."""
        for stream in self.streams:
            stream.set()
        self._wake()

    def bookmark(self, collection: str, version: int) -> None:
        self._record("BOOKMARK", f"{collection}/x", {"metadata": {"resourceVersion": str(version)}})

    def raw_line(self, collection: str, line: bytes) -> None:
        """Send raw bytes to the open streams, and end them."""
        self._record("RAW", f"{collection}/x", {"line": line.decode("latin-1")})

    def _record(self, kind: str, path: str, body: Json) -> None:
        self.log.append((self.version, kind, path, deepcopy(body)))
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    # For clients.

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.seen.append((request.method, request.rel_url.raw_path_qs, body, request.headers.get("Authorization", "")))
        for fault in self.faults:
            method, part, answer = fault
            if method == request.method and part in request.rel_url.raw_path_qs:
                self.faults.remove(fault)
                return await self._fault(request, answer)
        path = request.path
        match request.method:
            case "GET" if path in self.objects:
                return web.json_response(self.objects[path])
            case "GET" if request.query.get("watch"):
                return await self._watch(request)
            case "GET" if self._is_collection(path):
                return self._list(request)
            case "POST":
                return self._create(path, body or {})
            case "PATCH":
                return self._patch(path.removesuffix("/status"), body or {})
            case "DELETE":
                return self._delete(path, body or {})
        return _answer(status(404, "NotFound"))

    async def _fault(self, request: web.Request, answer: Any) -> web.StreamResponse:
        if isinstance(answer, bytes):
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(answer)
            if request.transport is not None:
                request.transport.close()
            return response
        return _answer(answer) if isinstance(answer, dict) else answer

    def _is_collection(self, path: str) -> bool:
        return path.rsplit("/", 1)[1].endswith("s")

    def _in(self, collection: str, path: str) -> bool:
        """Whether the object at `path` belongs to the collection (of a namespace or of the cluster)."""
        if path.rsplit("/", 1)[0] == collection:
            return True
        root, plural = collection.rsplit("/", 1)
        return path.startswith(f"{root}/namespaces/") and path.split("/")[-2] == plural

    def _list(self, request: web.Request) -> web.StreamResponse:
        start, version = 0, self.version
        if (least := int(request.query.get("resourceVersion", "0"))) > version:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            return _answer(status(504, "Timeout", f"Too large resource version: {least}", causes=[cause]))
        if token := request.query.get("continue"):
            if {"resourceVersion", "resourceVersionMatch"} & set(request.query):
                return _answer(status(400, "BadRequest", "resourceVersionMatch is forbidden with a continue token"))
            version, start = (int(part) for part in token.split("-"))
            if version < self.compacted:
                return _answer(status(410, "Expired", "continue token too old"))
        limit = int(request.query.get("limit", "500"))
        bodies = [body for path, body in sorted(self.objects.items()) if self._in(request.path, path)]
        page = bodies[start : start + limit]
        more = f"{version}-{start + limit}" if start + limit < len(bodies) else ""
        return web.json_response({"metadata": {"resourceVersion": str(version), "continue": more}, "items": page})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        resource_version = int(request.query["resourceVersion"])
        if resource_version < self.compacted:
            return _answer(status(410, "Expired", "too old resource version"))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        index, ended = 0, asyncio.Event()
        self.streams.add(ended)
        try:
            while not ended.is_set():
                changed = self.changed
                entries = self.log[index:]
                index = len(self.log)
                for version, kind, path, body in entries:
                    if not self._in(request.path, path) or (
                        version <= resource_version and kind not in {"BOOKMARK", "RAW"}
                    ):
                        continue
                    if kind == "RAW":
                        self.log.pop(index - 1)
                        await response.write(body["line"].encode("latin-1"))
                        return response
                    await response.write(json.dumps({"type": kind, "object": body}).encode() + b"\n")
                if not ended.is_set() and changed is self.changed:
                    await changed.wait()
        finally:
            self.streams.discard(ended)
        return response

    def _create(self, collection: str, body: Json) -> web.StreamResponse:
        meta = body["metadata"]
        path = f"{collection}/{meta.get('name') or meta['generateName'] + str(self.version)}"
        if path in self.objects:
            return _answer(status(409, "AlreadyExists"))
        return web.json_response(self.put(path, body), status=201)

    def _patch(self, path: str, patch: Json) -> web.StreamResponse:
        current = self.objects.get(path)
        if current is None:
            return _answer(status(404, "NotFound"))
        meta = patch.get("metadata", {})
        if meta.get("uid") not in {None, current["metadata"]["uid"]}:
            return _answer(status(422, "Invalid", causes=[{"field": "metadata.uid", "message": "field is immutable"}]))
        if meta.get("resourceVersion") not in {None, current["metadata"]["resourceVersion"]}:
            return _answer(status(409, "Conflict"))
        return web.json_response(self.put(path, merge(current, patch)))

    def _delete(self, path: str, options: Json) -> web.StreamResponse:
        current = self.objects.get(path)
        if current is None:
            return _answer(status(404, "NotFound"))
        wanted = options.get("preconditions", {})
        if any(current["metadata"][name] != value for name, value in wanted.items()):
            return _answer(status(409, "Conflict"))
        self.drop(path)
        return web.json_response({"kind": "Status", "status": "Success"})


def merge(into: Any, patch: Any) -> Any:
    """Apply a JSON merge patch, RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(into) if isinstance(into, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def _answer(body: Json) -> web.Response:
    headers = {"Retry-After": str(body["retry_after"])} if "retry_after" in body else {}
    return web.json_response(body, status=body["code"], headers=headers)


@asynccontextmanager
async def serving(api: FakeApi) -> AsyncIterator[str]:
    """Serve on loopback; yield the base URL."""
    application = web.Application(client_max_size=8 * 1024 * 1024)
    application.router.add_route("*", "/{path:.*}", api.handle)
    server = TestServer(application)
    await server.start_server(shutdown_timeout=0)
    try:
        yield str(server.make_url("")).rstrip("/")
    finally:
        api.cut()
        await server.close()


@asynccontextmanager
async def a_client(api: FakeApi, credentials: Credentials | None = None) -> AsyncIterator[Client]:
    """A client with a server of its own."""
    async with serving(api) as url:
        known = credentials or anonymous(url)
        at = Credentials(url, None, known.authorization)
        async with Transport(at, "virtops-test", request_seconds=5) as transport:
            yield Client(transport, "test")
