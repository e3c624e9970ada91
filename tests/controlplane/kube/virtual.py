# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock that a test advances, and an in-memory API; for code that sleeps and renews."""

from __future__ import annotations

import asyncio
import heapq
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import AlreadyExists, Conflict, Forbidden, NotFound
from tests.controlplane.kube.fake_api import Json, merge


@dataclass
class VirtualTime:
    """A Clock whose sleepers wake in order while `advance` moves it."""

    seconds: float = 1_000_000.0
    rate: float = 1.0
    _sleepers: list[tuple[float, int, asyncio.Future[None]]] = field(default_factory=list)
    _order: count[int] = field(default_factory=count)

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return 1_750_000_000.0 + self.seconds

    async def sleep(self, seconds: float) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.seconds + seconds, next(self._order), waiting))
        await waiting

    async def settle(self) -> None:
        """Let every task run until it sleeps."""
        for _unused in range(30):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        end = self.seconds + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self.seconds, _unused, waiting = heapq.heappop(self._sleepers)
            if not waiting.done():
                waiting.set_result(None)
            await self.settle()
        self.seconds = end

    def suspend(self, seconds: float) -> None:
        """Suspend the host: this clock goes on (CLOCK_BOOTTIME), sleepers keep their remaining time."""
        self.seconds += seconds
        self._sleepers = [(due + seconds, order, waiting) for due, order, waiting in self._sleepers]


@dataclass
class MemoryApi:
    """engine.ports.Api in a dict. `failing` is raised by each request; `hook` runs before each write."""

    objects: dict[tuple[str, Key], Json] = field(default_factory=dict)
    version: int = 0
    writes: list[tuple[str, str, Json]] = field(default_factory=list)
    failing: Exception | None = None

    def _check(self) -> None:
        if self.failing is not None:
            raise self.failing

    async def get(self, resource: Resource, key: Key) -> Json:
        self._check()
        try:
            return deepcopy(self.objects[resource.plural, key])
        except KeyError:
            raise NotFound(f"no {resource.kind} {key}") from None

    async def create(self, resource: Resource, namespace: str, body: Json, *, dry_run: bool = False) -> Json:
        self._check()
        key = Key(namespace, body["metadata"]["name"])
        if (resource.plural, key) in self.objects:
            raise AlreadyExists(str(key))
        return self._store("create", resource, key, {"metadata": {"uid": f"uid-{key}"}}, body)

    async def ensure(self, resource: Resource, key: Key) -> Json:
        with suppress(NotFound):
            return await self.get(resource, key)
        return await self.create(resource, key.namespace, {"metadata": {"name": key.name, "namespace": key.namespace}})

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        subresource: str = "",
        resource_version: str | None = None,
        uid: str | None = None,
        dry_run: bool = False,
    ) -> Json:
        if resource.plural == "nodes" and subresource != "status":
            raise Forbidden("no account of ours writes a Node but by its status")
        current = await self.get(resource, key)
        if resource_version not in {None, current["metadata"]["resourceVersion"]}:
            raise Conflict(f"{resource.kind} {key} is another version by now")
        if uid not in {None, current["metadata"]["uid"]}:
            raise Conflict(f"{resource.kind} {key} is another object by now")
        if dry_run:
            return current
        return self._store(f"patch {subresource}".strip(), resource, key, current, patch)

    async def delete(self, resource: Resource, key: Key, **_unused: Any) -> None:
        self._check()
        if self.objects.pop((resource.plural, key), None) is None:
            raise NotFound(str(key))

    def _store(self, verb: str, resource: Resource, key: Key, current: Json, patch: Any) -> Json:
        self.version += 1
        stored = merge(current, patch)
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[resource.plural, key] = stored
        self.writes.append((verb, resource.plural, deepcopy(dict(patch))))
        return deepcopy(stored)


@dataclass
class SlowApi(MemoryApi):
    """Writes are stored at once; their responses are delayed."""

    time: VirtualTime = field(default_factory=VirtualTime)
    answers_after: float = 0.0

    async def create(self, *arguments: Any, **options: Any) -> Any:
        answer = await super().create(*arguments, **options)
        await self.time.sleep(self.answers_after)
        return answer

    async def patch(self, *arguments: Any, **options: Any) -> Any:
        answer = await super().patch(*arguments, **options)
        await self.time.sleep(self.answers_after)
        return answer
