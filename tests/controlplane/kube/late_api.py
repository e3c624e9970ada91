# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server in this process, which answers late where a test says so; for processes as they are wired."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from controlplane.api.objects.resources import Key, Resource
from controlplane.kube.client import object_path
from tests.controlplane.kube.fake_api import FakeApi, Json

ROUNDS = 300
"""Of the event loop: what is on its way over loopback has arrived by then, and what follows from it."""
PATIENCE_SECONDS = 10.0


@dataclass
class LateApi(FakeApi):
    """Lists and watches can be held back, by what is asked for."""

    held: dict[tuple[str, str], asyncio.Event] = field(default_factory=dict)
    held_where: str = ""

    def hold(self, verb: str, resource: Resource, *, where: str = "") -> None:
        """verb: list or watch. where: a part of the query of those that are held; all of them by default."""
        self.held[verb, resource.plural] = asyncio.Event()
        self.held_where = where

    def hold_get(self, key: Key) -> None:
        """Hold back whoever asks for objects of that name."""
        self.held["list", key.name] = asyncio.Event()

    def release(self) -> None:
        for one in self.held.values():
            one.set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        verb = "watch" if request.query.get("watch") else "list"
        waiting = self.held.get((verb, request.path.rsplit("/", 1)[1])) if request.method == "GET" else None
        if waiting is not None and self.held_where in request.query_string:
            await waiting.wait()
        return await super().handle(request)

    def set(self, resource: Resource, key: Key, body: Json) -> Json:
        """Write as somebody else."""
        return self.put(object_path(resource, key), body)

    def find(self, resource: Resource, key: Key) -> Json | None:
        return self.objects.get(object_path(resource, key))

    def only(self, resource: Resource, namespace: str = "default") -> Json | None:
        """Return the one object of a kind in a namespace; None while there is none."""
        start = object_path(resource, Key(namespace, "x")).removesuffix("x")
        found = [body for path, body in self.objects.items() if path.startswith(start)]
        assert len(found) < 2, found
        return found[0] if found else None

    def writes(self, part: str = "") -> list[str]:
        """List the writes so far whose path contains that, but for Leases: verb and path."""
        asked = [(method, path.partition("?")[0]) for method, path, *_rest in self.seen if method != "GET"]
        return [f"{method} {path}" for method, path in asked if part in path and "/leases" not in path]

    def watched(self) -> dict[str, list[str]]:
        """Return what is watched: queries by path, each once for each that asks otherwise."""
        asked: dict[str, list[str]] = {}
        for path, _mark, query in (path.partition("?") for _method, path, *_rest in self.seen if "watch=1" in path):
            asked.setdefault(path, []).append(query)
        return asked


async def until(holds: Callable[[], object], task: asyncio.Task[None]) -> None:
    """Let things happen until that is so. task: whose end would be in vain."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():
            assert not task.done(), task
            await asyncio.sleep(0)


async def settle() -> None:
    """Let everything happen that follows from what was done."""
    for _unused in range(ROUNDS):
        await asyncio.sleep(0)
