# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watch without a cache, on a server that ends streams, drops its history and refuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from controlplane.api.objects.resources import POD
from controlplane.kube import uncached_watch
from controlplane.kube.client import Selection
from controlplane.kube.uncached_watch import BACK_OFF_LIMIT, UncachedWatch
from tests.controlplane.kube.fake_api import FakeApi, a_client, status
from tests.controlplane.kube.streaming import Streaming
from tests.support.clock import SimulatedClock

PODS = "/api/v1/namespaces/ns/pods"


@dataclass(kw_only=True)
class Listening(Streaming):
    """Records the events."""

    heard: list[str] = field(default_factory=list)
    clock: SimulatedClock = field(default_factory=SimulatedClock)

    def handle(self, raw: bytes) -> None:
        self.heard.append(json.loads(raw)["metadata"]["name"])
        self.note()

    async def until_open(self, streams: int = 1) -> None:
        await self.until(lambda: len(self.requests("watch=")) >= streams and self.api.streams)


@asynccontextmanager
async def listening(api: FakeApi) -> AsyncIterator[Listening]:
    async with a_client(api) as client:
        listener = Listening(api=api)
        follower = UncachedWatch(
            client,
            Selection(POD, "ns"),
            listener.handle,
            clock=listener.clock,
            jitter=lambda: 1.0,
            sleep=listener.sleep,
        )
        running = asyncio.create_task(follower.run())
        try:
            yield listener
        finally:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running


@pytest.fixture
def api() -> FakeApi:
    made = FakeApi()
    made.put(f"{PODS}/before", {})
    return made


@pytest.fixture
async def listener(api: FakeApi) -> AsyncIterator[Listening]:
    """A watch with an open stream."""
    async with listening(api) as opened:
        await opened.until_open()
        yield opened


async def test_new_objects_are_announced_and_existing_ones_are_not(listener: Listening, api: FakeApi) -> None:
    api.put(f"{PODS}/a", {})
    api.put(f"{PODS}/a", {"spec": {"x": 1}})
    api.drop(f"{PODS}/a")
    api.put(f"{PODS}/b", {})
    await listener.until(lambda: "b" in listener.heard)

    assert listener.heard == ["a", "a", "b"], "deletions are not reported"
    assert listener.requests("limit=") == [f"{PODS}?limit=1"]


async def test_a_stream_that_ends_is_resumed_where_it_was(listener: Listening, api: FakeApi) -> None:
    api.put(f"{PODS}/a", {})
    await listener.until(lambda: listener.heard)
    api.cut()
    api.put(f"{PODS}/b", {})
    await listener.until(lambda: "b" in listener.heard)

    assert listener.heard == ["a", "b"]
    assert len(listener.requests("limit=")) == 1
    assert not listener.pauses


async def test_after_410_the_watch_starts_from_now(listener: Listening, api: FakeApi) -> None:
    api.put(f"{PODS}/missed", {})
    api.faults = [("GET", "watch=", status(410, "Expired"))]
    api.compact()
    await listener.until(lambda: len(listener.requests("limit=")) == 2)
    await listener.until(lambda: api.streams)
    api.put(f"{PODS}/b", {})
    await listener.until(lambda: "b" in listener.heard)

    assert "b" in listener.heard


async def test_an_unreadable_object_costs_only_itself(listener: Listening, api: FakeApi) -> None:
    line = b'{"type":"ADDED","object":{"metadata":{"name":"deep","resourceVersion":"900","x":%s}}}\n'
    api.version = 900
    api.raw_line(PODS, line % (b'{"x":' * 5000 + b"{}" + b"}" * 5000))
    await listener.until(lambda: len(listener.requests("resourceVersion=900")) == 1)
    api.put(f"{PODS}/b", {})
    await listener.until(lambda: "b" in listener.heard)

    assert listener.heard == ["b"]


async def test_an_unreadable_line_is_skipped_with_the_next_event(listener: Listening, api: FakeApi) -> None:
    api.raw_line(PODS, b"nonsense\n")
    await listener.until(lambda: len(listener.requests("limit=")) == 2)
    await listener.until(lambda: api.streams)
    api.put(f"{PODS}/b", {})
    await listener.until(lambda: "b" in listener.heard)


@pytest.mark.parametrize("refusal", [status(403, "Forbidden"), status(503, "ServiceUnavailable")])
async def test_refusals_back_off(api: FakeApi, refusal: dict[str, Any]) -> None:
    api.faults = [("GET", "pods", refusal) for _unused in range(12)]
    async with listening(api) as listener:
        await listener.until_open()

    assert listener.pauses == sorted(listener.pauses)
    assert listener.pauses[-1] == BACK_OFF_LIMIT
    assert len(listener.pauses) == 12


async def test_a_server_that_ends_every_stream_at_once_gets_a_pause(listener: Listening, api: FakeApi) -> None:
    for number in range(3):
        await listener.until_open(number + 1)
        api.cut()
        await listener.until(lambda number=number: len(listener.pauses) > number)  # type: ignore[misc]

    assert listener.pauses[:3] == sorted(listener.pauses[:3])
    assert listener.pauses[0] >= uncached_watch.BACK_OFF_FIRST


async def test_a_silent_stream_is_resumed_without_a_pause(listener: Listening, api: FakeApi) -> None:
    """Watches of Events have no bookmarks: on a healthy cluster a stream is silent from start to end."""
    for number in range(3):
        await listener.until_open(number + 1)
        listener.clock.advance(uncached_watch.STREAM_SECONDS)
        api.cut()
    await listener.until_open(4)
    api.put(f"{PODS}/b", {})
    await listener.until(lambda: listener.heard)

    assert not listener.pauses
    assert listener.heard == ["b"]
    assert len(listener.requests("limit=")) == 1
