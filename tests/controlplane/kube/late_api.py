# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An in-process API server whose responses a test can hold back; for whole processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from controlplane.api.objects.resources import Key, Resource
from controlplane.kube.client import object_path
from tests.controlplane.kube.fake_api import FakeApi, Json

ROUNDS = 300
"""Iterations of the event loop: enough for everything in flight over loopback, and its consequences."""
TIMEOUT_SECONDS = 10.0


@dataclass
class LateApi(FakeApi):
    """Holds back lists and watches by verb and resource."""

    held: dict[tuple[str, str], asyncio.Event] = field(default_factory=dict)
    held_where: str = ""

    def hold(self, verb: str, resource: Resource, *, where: str = "") -> None:
        """Hold back requests. verb: list or watch. where: only requests with this text in the query; all by default."""
        self.held[verb, resource.plural] = asyncio.Event()
        self.held_where = where

    def hold_get(self, key: Key) -> None:
        """Hold back requests for objects of that name."""
        self.held["list", key.name] = asyncio.Event()

    def release(self) -> None:
        for item in self.held.values():
            item.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        verb = "watch" if request.query.get("watch") else "list"
        waiting = self.held.get((verb, request.path.rsplit("/", 1)[1])) if request.method == "GET" else None
        if waiting is not None and self.held_where in request.query_string:
            await waiting.wait()
        return await super().handle(request)

    def set(self, resource: Resource, key: Key, body: Json) -> Json:
        """Write as another client."""
        return self.put(object_path(resource, key), body)

    def find(self, resource: Resource, key: Key) -> Json | None:
        return self.objects.get(object_path(resource, key))

    def only(self, resource: Resource, namespace: str = "default") -> Json | None:
        """Return the one object of a kind in a namespace; None without one."""
        start = object_path(resource, Key(namespace, "x")).removesuffix("x")
        bodies = [body for path, body in self.objects.items() if path.startswith(start)]
        assert len(bodies) < 2, bodies
        return bodies[0] if bodies else None

    def writes(self, part: str = "") -> list[str]:
        """List the writes so far whose path contains `part`, except to Leases, as "verb path"."""
        requests = [(method, path.partition("?")[0]) for method, path, *_rest in self.seen if method != "GET"]
        return [f"{method} {path}" for method, path in requests if part in path and "/leases" not in path]

    def watched(self) -> dict[str, list[str]]:
        """Return the watch queries by path, one for each request."""
        queries: dict[str, list[str]] = {}
        for path, _mark, query in (path.partition("?") for _method, path, *_rest in self.seen if "watch=1" in path):
            queries.setdefault(path, []).append(query)
        return queries


async def until(holds: Callable[[], object], task: asyncio.Task[None]) -> None:
    """Run the loop until `holds()` is true. Fails when `task` ends first."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not holds():
            assert not task.done(), task
            await asyncio.sleep(0)


async def settle() -> None:
    """Run the loop until all consequences of the last step have happened."""
    for _unused in range(ROUNDS):
        await asyncio.sleep(0)
