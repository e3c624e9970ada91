# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from controlplane.api.objects.resources import POD, Key
from controlplane.kube.client import Selection
from controlplane.kube.watch import Timing, WatchCache
from tests.controlplane.kube.fake_api import FakeApi, Json, a_client, status

PODS = "/api/v1/namespaces/ns/pods"
LIST = f"{PODS}?limit"
WATCH = f"{PODS}?watch"
FAST = Timing(back_off_first=0.001, back_off_limit=0.002, refused_limit=0.002)


@dataclass
class Clock:
    seconds: float = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds


@dataclass
class Watched:
    """A running cache, its server, and a way to wait for what must come true."""

    api: FakeApi
    cache: WatchCache
    clock: Clock
    delays: list[float] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    _something: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        self.changes.append((key.name, "gone" if after is None else "new" if before is None else "changed"))
        self._something.set()

    async def sleep(self, seconds: float) -> None:
        self.delays.append(seconds)
        self._something.set()
        await asyncio.sleep(0)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not is_so():
                self._something.clear()
                try:
                    async with asyncio.timeout(0.02):
                        await self._something.wait()
                except TimeoutError:
                    continue

    def names(self) -> set[str]:
        return {key.name for key in self.cache.keys()}  # noqa: SIM118  -- no dict, a Cache

    def requests(self, part: str) -> list[str]:
        return [path for _unused, path, *_unused in self.api.seen if part in path]


@asynccontextmanager
async def watching(api: FakeApi, timing: Timing = FAST, jitter: float = 0.5) -> AsyncIterator[Watched]:
    clock = Clock()
    async with a_client(api) as client:
        cache = WatchCache(client, Selection(POD, "ns"), clock, timing=timing, jitter=lambda: jitter)
        watched = Watched(api, cache, clock)
        cache._sleep = watched.sleep
        cache.subscribe(watched.note)
        running = asyncio.create_task(cache.run())
        try:
            yield watched
        finally:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running


def a_pod(**extra: object) -> Json:
    return {"spec": extra}


@pytest.fixture
def api() -> FakeApi:
    made = FakeApi()
    for name in ("a", "b", "c"):
        made.put(f"{PODS}/{name}", a_pod())
    return made


async def test_a_cache_lists_then_follows(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        assert watched.names() == {"a", "b", "c"}

        api.put(f"{PODS}/d", a_pod())
        api.put(f"{PODS}/a", a_pod(x=1))
        api.drop(f"{PODS}/b")
        await watched.until(lambda: len(watched.changes) == 6)

    assert watched.names() == {"a", "c", "d"}
    assert watched.changes[3:] == [("d", "new"), ("a", "changed"), ("b", "gone")]
    assert watched.cache.counters.lists == 1


async def test_the_first_list_is_a_quorum_read(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()

    assert watched.requests(LIST) == [f"{PODS}?limit=500"]


async def test_a_stream_that_ends_is_resumed_where_it_was_without_a_list(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.put(f"{PODS}/d", a_pod())
        await watched.until(lambda: "d" in watched.names())

        api.cut()
        api.put(f"{PODS}/e", a_pod())
        await watched.until(lambda: "e" in watched.names())

    assert "resourceVersion=104" in watched.requests(WATCH)[1]
    assert watched.cache.counters.lists == 1


async def test_a_bookmark_moves_the_position(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.bookmark(PODS, 190)
        await watched.until(lambda: watched.cache._version == "190")

        api.cut()
        await watched.until(lambda: len(watched.requests(WATCH)) == 2)

    assert "resourceVersion=190" in watched.requests(WATCH)[1]
    assert watched.names() == {"a", "b", "c"}


async def test_an_expired_position_lists_again_and_only_then_sees_deletes(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()

        api.drop(f"{PODS}/a")
        api.put(f"{PODS}/b", a_pod(x=1))
        api.put(f"{PODS}/d", a_pod())
        api.compact()
        await watched.until(lambda: watched.names() == {"b", "c", "d"})

    assert watched.cache.counters.repaired == 0


async def test_an_error_event_with_410_lists_again(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.raw_line(PODS, b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n')
        await watched.until(lambda: watched.cache.counters.lists == 2)

        assert watched.cache.synced
        assert watched.names() == {"a", "b", "c"}


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}}\n',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","names',
        b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"ns","resourceVersion":"999"}}}',
        b'{"type":"DELETED","object":[]}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
        b"<html>\n",
    ],
    ids=["error event", "truncated", "no newline at the end", "no object", "bad utf-8", "a proxy's page"],
)
async def test_a_broken_stream_is_resumed_and_nothing_half_is_taken_in(api: FakeApi, line: bytes) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        await watched.until(lambda: len(api.streams) == 1)
        api.raw_line(PODS, line)
        await watched.until(lambda: len(watched.requests(WATCH)) == 2)

        assert watched.names() == {"a", "b", "c"}
        assert "resourceVersion=103" in watched.requests(WATCH)[1]
        assert watched.cache.counters.lists == 1
        assert watched.cache.synced


async def test_an_incomplete_list_is_never_a_reason_to_forget(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.faults += [
            ("GET", LIST, {"metadata": {"resourceVersion": "200", "continue": "103-1"}, "items": [], "code": 200}),
            ("GET", "continue=", status(500, "InternalError")),
            ("GET", LIST, b'{"metadata":{"resourceVersion":"200"},"items":['),
            ("GET", LIST, status(503, "ServiceUnavailable")),
        ]
        api.put(f"{PODS}/d", a_pod())
        api.compact()
        await watched.until(lambda: "d" in watched.names())

    assert ("a", "gone") not in watched.changes
    assert api.faults == []


async def test_an_expired_continue_token_starts_the_list_over(api: FakeApi) -> None:
    api.faults += [
        ("GET", LIST, {"metadata": {"resourceVersion": "90", "continue": "90-1"}, "items": [], "code": 200}),
    ]
    api.compacted = 95
    async with watching(api) as watched:
        await watched.cache.wait_synced()

    assert watched.names() == {"a", "b", "c"}
    assert watched.cache.counters.lists == 2


async def test_an_unreachable_server_leaves_the_cache_as_it_is(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.faults += [("GET", WATCH, status(503, "ServiceUnavailable")) for _unused in range(5)]
        api.cut()
        await watched.until(lambda: not api.faults)

        assert watched.cache.synced
        assert watched.names() == {"a", "b", "c"}


@pytest.mark.parametrize(
    "answer",
    [status(404, "NotFound"), status(403, "Forbidden"), web.Response(status=404, text="404 page not found")],
    ids=["no such resource", "not allowed", "no such group"],
)
async def test_a_resource_that_is_not_served_takes_synced_back(api: FakeApi, answer: Any) -> None:
    def again() -> Any:
        return web.Response(status=404, text="404 page not found") if isinstance(answer, web.Response) else answer

    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.faults += [("GET", part, again()) for part in (WATCH, *[LIST] * 300)]
        api.cut()
        await watched.until(lambda: not watched.cache.synced)
        assert watched.names() == {"a", "b", "c"}

        api.faults.clear()
        await watched.until(lambda: watched.cache.synced)

    assert watched.changes == [("a", "new"), ("b", "new"), ("c", "new")]


async def test_waiting_grows_to_its_limit_with_jitter_and_honours_the_server(api: FakeApi) -> None:
    api.faults += [("GET", LIST, status(500, "InternalError")) for _unused in range(6)]
    api.faults.append(("GET", LIST, status(429, "TooManyRequests") | {"retry_after": 9}))
    async with watching(api, Timing(back_off_first=0.2, back_off_limit=4.0), jitter=0.5) as watched:
        await watched.cache.wait_synced()

    assert watched.delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 11.0])


async def test_a_stream_that_ends_at_once_does_not_become_a_busy_loop(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.faults += [("GET", WATCH, {"code": 200}) for _unused in range(3)]
        api.cut()
        await watched.until(lambda: not api.faults)

    assert len(watched.delays) >= 3


async def test_silently_lost_events_are_repaired_and_counted(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        # a change that no stream ever told, and a bookmark that claims it was told
        api.objects[f"{PODS}/a"]["metadata"]["resourceVersion"] = "150"
        api.version = 160
        api.bookmark(PODS, 160)
        await watched.until(lambda: watched.cache._version == "160")

        watched.clock.seconds += 601
        api.cut()
        await watched.until(lambda: watched.cache.counters.lists == 2)
        await watched.until(lambda: ("a", "changed") in watched.changes)

    assert watched.cache.counters.repaired == 1


async def test_a_line_longer_than_any_buffer_arrives_whole(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.put(f"{PODS}/big", a_pod(text="x" * 1_500_000))
        api.put(f"{PODS}/after", a_pod())
        await watched.until(lambda: "after" in watched.names())

    assert len(watched.cache.get(Key("ns", "big")) or b"") > 1_500_000
