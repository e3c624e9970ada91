# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from controlplane.api.objects.resources import POD, Key
from controlplane.kube import transport, watch
from controlplane.kube.client import Selection, fit_limit
from controlplane.kube.watch import HistoryRewoundError, Timing, WatchCache
from tests.controlplane.kube.fake_api import FakeApi, Json, a_client, status
from tests.controlplane.kube.streaming import Streaming
from tests.support.clock import SimulatedClock

PODS = "/api/v1/namespaces/ns/pods"
LIST = f"{PODS}?limit"
WATCH = f"{PODS}?watch"
FAST = Timing(back_off_first=0.001, back_off_limit=0.002, refused_limit=0.002)


@dataclass(kw_only=True)
class Watched(Streaming):
    """A running cache and its server."""

    cache: WatchCache
    clock: SimulatedClock
    changes: list[tuple[str, str]] = field(default_factory=list)

    def changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        self.changes.append((key.name, "gone" if after is None else "new" if before is None else "changed"))
        self.note()

    def names(self) -> set[str]:
        return {key.name for key in self.cache.keys()}  # noqa: SIM118  -- no dict, a Cache


@asynccontextmanager
async def watching(api: FakeApi, timing: Timing = FAST, jitter: float = 0.5) -> AsyncIterator[Watched]:
    clock = SimulatedClock(1000.0)
    async with a_client(api) as client:
        cache = WatchCache(client, Selection(POD, "ns"), clock, timing=timing, jitter=lambda: jitter)
        watched = Watched(api=api, cache=cache, clock=clock)
        cache._sleep = watched.sleep
        cache.subscribe(watched.changed)
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


@pytest.fixture
async def watched(api: FakeApi) -> AsyncIterator[Watched]:
    """A synced cache with an open stream."""
    async with watching(api) as running:
        await running.cache.wait_synced()
        await running.until(lambda: len(api.streams) == 1)
        yield running


async def test_a_cache_lists_then_watches(watched: Watched, api: FakeApi) -> None:
    assert watched.names() == {"a", "b", "c"}

    api.put(f"{PODS}/d", a_pod())
    api.put(f"{PODS}/a", a_pod(x=1))
    api.drop(f"{PODS}/b")
    await watched.until(lambda: len(watched.changes) == 6)

    assert watched.names() == {"a", "c", "d"}
    assert watched.changes[3:] == [("d", "new"), ("a", "changed"), ("b", "gone")]
    assert watched.cache.counters.lists == 1


async def test_a_stream_that_ends_is_resumed_without_a_list(watched: Watched, api: FakeApi) -> None:
    api.put(f"{PODS}/d", a_pod())
    await watched.until(lambda: "d" in watched.names())

    api.cut()
    api.put(f"{PODS}/e", a_pod())
    await watched.until(lambda: "e" in watched.names())

    assert "resourceVersion=104" in watched.requests(WATCH)[1]
    assert watched.cache.counters.lists == 1


async def test_a_bookmark_moves_the_resource_version(watched: Watched, api: FakeApi) -> None:
    api.bookmark(PODS, 190)
    await watched.until(lambda: watched.cache.resource_version == 190)

    api.cut()
    await watched.until(lambda: len(watched.requests(WATCH)) == 2)

    assert "resourceVersion=190" in watched.requests(WATCH)[1]
    assert watched.names() == {"a", "b", "c"}
    assert watched.cache.counters.events == 0, "nothing happened to anything"


async def test_an_expired_version_lists_again_and_only_then_announces_deletions(watched: Watched, api: FakeApi) -> None:

    api.drop(f"{PODS}/a")
    api.put(f"{PODS}/b", a_pod(x=1))
    api.put(f"{PODS}/d", a_pod())
    api.compact()
    await watched.until(lambda: watched.names() == {"b", "c", "d"})

    assert watched.cache.counters.repaired == 0


async def test_only_the_first_list_is_a_quorum_read_and_later_ones_ask_for_the_version_once(
    watched: Watched, api: FakeApi
) -> None:
    watched.cache._limit = 2
    api.put(f"{PODS}/d", a_pod())
    api.compact()
    await watched.until(lambda: "d" in watched.names())

    first, *again = watched.requests(LIST)
    assert first == f"{PODS}?limit=500"
    assert again == [
        f"{PODS}?limit=2&resourceVersion=103&resourceVersionMatch=NotOlderThan",
        f"{PODS}?limit=500&continue=104-2",
    ]


async def test_the_resource_version_moves_only_with_events_and_complete_lists(api: FakeApi) -> None:
    moves: list[int] = []
    async with watching(api) as watched:
        watched.cache.on_resource_version(moves.append)
        await watched.cache.wait_synced()
        api.put(f"{PODS}/d", a_pod())
        await watched.until(lambda: watched.cache.resource_version == 104)
        api.faults += [
            ("GET", LIST, {"metadata": {"resourceVersion": "104", "continue": "104-1"}, "items": [], "code": 200}),
            ("GET", "continue=", status(500, "InternalError")),
        ]
        api.drop(f"{PODS}/d")
        api.compact()
        await watched.until(lambda: watched.cache.resource_version == 105)

    assert moves == [103, 104, 105]


async def test_a_list_does_not_remove_objects_newer_than_itself(watched: Watched, api: FakeApi) -> None:
    newer = {"metadata": {"name": "d", "namespace": "ns", "resourceVersion": "104"}}
    api.faults += [
        ("GET", WATCH, status(410, "Expired")),
        ("GET", LIST, {"metadata": {"resourceVersion": "104", "continue": "104-9"}, "items": [newer], "code": 200}),
        ("GET", "continue=", status(500, "InternalError")),
        (
            "GET",
            LIST,
            {"metadata": {"resourceVersion": "103"}, "items": [api.objects[f"{PODS}/a"]], "code": 200},
        ),
    ]
    api.cut()
    await watched.until(lambda: "b" not in watched.names())

    assert watched.names() == {"a", "d"}, "d is newer than the list that was read to its end"


async def test_a_lagging_server_is_followed_by_a_quorum_read(api: FakeApi) -> None:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        api.faults.append(("GET", LIST, status(504, "Timeout", causes=[cause])))
        api.put(f"{PODS}/d", a_pod())
        api.compact()
        await watched.until(lambda: "d" in watched.names())

    assert watched.requests(LIST)[-1] == f"{PODS}?limit=500"


async def test_a_list_older_than_asked_for_is_ignored(watched: Watched, api: FakeApi) -> None:
    api.faults.append(("GET", LIST, {"metadata": {"resourceVersion": "90"}, "items": [], "code": 200}))
    api.put(f"{PODS}/d", a_pod())
    api.compact()
    await watched.until(lambda: "d" in watched.names())

    assert not [name for name, how in watched.changes if how == "gone"]
    assert watched.requests(LIST)[-1] == f"{PODS}?limit=500"


async def test_a_rewound_history_ends_the_process(api: FakeApi) -> None:
    async with a_client(api) as client:
        cache = WatchCache(client, Selection(POD, "ns"), SimulatedClock(1000.0), timing=FAST)
        cache.move(104)
        async with asyncio.timeout(5):
            with pytest.raises(HistoryRewoundError, match="resourceVersion '103', this cache is at 104"):
                await cache.run()


async def test_an_event_older_than_the_resource_version_brings_nothing_back(watched: Watched, api: FakeApi) -> None:
    stale = dict(api.objects[f"{PODS}/a"])
    api.drop(f"{PODS}/a")
    api._record("ADDED", f"{PODS}/a", stale)
    api.put(f"{PODS}/d", a_pod())
    await watched.until(lambda: "d" in watched.names())

    assert "a" not in watched.names()
    assert watched.cache.resource_version == 105


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([], 77), ([2_000] * 500, 500), ([512 * 1024] * 500, 16), ([100, 1_048_476], 16), ([8 * 1024 * 1024], 10)],
    ids=["nothing to go by", "small", "large", "mixed", "huge"],
)
def test_a_page_has_about_eight_mib(sizes: list[int], expected: int) -> None:
    assert fit_limit([b"x" * size for size in sizes], 77) == expected


async def test_a_page_that_is_too_large_is_dropped_and_read_again_with_a_smaller_limit(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PAGE_MOST_BYTES", 500)
    for number in range(30):
        api.put(f"{PODS}/d{number}", a_pod(text="x" * 100))
    async with watching(api) as watched:
        await watched.cache.wait_synced()

    assert len(watched.names()) == 33
    assert [path.split("&")[0] for path in watched.requests(LIST)[:4]] == [
        f"{PODS}?limit={limit}" for limit in (500, 62, 10, 500)
    ]
    assert watched.requests(LIST)[3].endswith("continue=133-10"), "the list goes on where it was"
    assert watched.cache.counters.lists == 1


@pytest.mark.parametrize(("jitter", "due"), [(0.0, 1800), (0.5, 3600), (1.0, 5400)], ids=str)
async def test_the_cache_lists_again_about_every_hour_with_jitter(api: FakeApi, jitter: float, due: float) -> None:
    """A full list is the most expensive request of a cache: it stays rare."""
    async with watching(api, jitter=jitter) as watched:
        await watched.until(lambda: bool(api.streams))
        watched.clock.seconds += due - 1
        api.cut()
        await watched.until(lambda: len(watched.requests(WATCH)) == 2 and bool(api.streams))
        assert watched.cache.counters.lists == 1
        watched.clock.seconds += 1
        api.cut()
        await watched.until(lambda: watched.cache.counters.lists == 2)


async def test_an_error_event_with_410_lists_again(watched: Watched, api: FakeApi) -> None:
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
    ],
    ids=["error event", "truncated", "no newline at the end"],
)
async def test_a_broken_stream_is_resumed_and_a_partial_event_is_ignored(
    watched: Watched, api: FakeApi, line: bytes
) -> None:
    api.raw_line(PODS, line)
    await watched.until(lambda: len(watched.requests(WATCH)) == 2)

    assert watched.names() == {"a", "b", "c"}
    assert "resourceVersion=103" in watched.requests(WATCH)[1]
    assert watched.cache.counters.lists == 1
    assert watched.cache.synced


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"DELETED","object":[]}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}\n',
        b"<html>\n",
        b"[" * 20_000 + b"\n",
        b'{"type":"ADDED","object":{"spec":"' + b"x" * 3000 + b'"}}\n',
    ],
    ids=["no object", "bad utf-8", "a proxy's page", "nothing but depth", "longer than any line"],
)
async def test_after_an_unreadable_line_the_cache_lists_again(
    api: FakeApi, line: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed at the old version, the stream would end at that line for ever."""
    monkeypatch.setattr(transport, "MAX_LINE_BYTES", 2000)
    monkeypatch.setattr(transport, "CHUNK_BYTES", 500)
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        await watched.until(lambda: len(api.streams) == 1)
        api.version = 150
        api.raw_line(PODS, line)
        await watched.until(lambda: len(watched.requests(WATCH)) == 2)

        assert watched.names() == {"a", "b", "c"}
        assert "resourceVersion=150" in watched.requests(WATCH)[1]
        assert watched.requests(LIST)[-1] == f"{PODS}?limit=500", "from the quorum: a server that lags is before it"
        assert watched.cache.synced


async def test_unreadable_lines_cause_ever_rarer_lists(api: FakeApi) -> None:
    """Good events between them do not reset the back-off: a user who can create one such object can create many."""
    async with watching(api, Timing(back_off_first=0.2, back_off_limit=4.0)) as watched:
        await watched.cache.wait_synced()
        for number in range(1, 8):
            await watched.until(lambda: len(api.streams) == 1)
            api.put(f"{PODS}/d{number}", a_pod())
            await watched.until(lambda number=number: f"d{number}" in watched.names())  # type: ignore[misc]
            api.raw_line(PODS, b"<html>\n")
            await watched.until(lambda number=number: watched.cache.counters.lists == number + 1)  # type: ignore[misc]

    assert watched.pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0])


DEEP = b'{"metadata":{"name":"%s","namespace":"ns","uid":"u","resourceVersion":"%d"},"spec":%s}'
NESTED = b'{"f:a":' * 20_000 + b"{}" + b"}" * 20_000


def event(kind: bytes, name: bytes, version: int) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind, DEEP % (name, version, NESTED))


async def test_an_unreadable_object_costs_only_itself(
    watched: Watched, api: FakeApi, caplog: pytest.LogCaptureFixture
) -> None:
    cached = watched.cache.get(Key("ns", "a"))
    api.version = 111
    api.raw_line(PODS, event(b"MODIFIED", b"a", 110) + event(b"MODIFIED", b"a", 111))
    await watched.until(lambda: watched.cache.resource_version == 111)
    api.put(f"{PODS}/d", a_pod())
    await watched.until(lambda: "d" in watched.names())

    assert watched.cache.get(Key("ns", "a")) == cached
    assert "resourceVersion=111" in watched.requests(WATCH)[1]
    assert watched.cache.counters.lists == 1
    assert watched.cache.counters.unreadable == 2
    assert caplog.text.count("cannot read an object") == 1


@pytest.mark.parametrize(
    ("version", "left"),
    [(110, {"b", "c"}), (101, {"b", "c"}), (50, {"a", "b", "c"})],
    ids=["ours", "the version that is cached", "earlier"],
)
async def test_the_deletion_of_an_unreadable_object_is_applied(
    watched: Watched, api: FakeApi, version: int, left: set[str]
) -> None:
    api.raw_line(PODS, event(b"DELETED", b"a", version))
    await watched.until(lambda: len(watched.requests(WATCH)) == 2)

    assert watched.names() == left


async def test_fields_that_a_cache_removes_may_have_any_depth(api: FakeApi) -> None:
    metadata = b'{"name":"d","namespace":"ns","uid":"u","resourceVersion":"110","managedFields":[%s]}' % NESTED
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        await watched.until(lambda: len(api.streams) == 1)
        api.raw_line(PODS, b'{"type":"ADDED","object":{"metadata":%s}}\n' % metadata)
        await watched.until(lambda: watched.cache.resource_version == 110)

        assert watched.names() == {"a", "b", "c", "d"}
        assert watched.cache.counters.unreadable == 0


async def test_an_unreadable_item_is_not_absent_and_does_not_block_others(watched: Watched, api: FakeApi) -> None:
    others = b",".join(json.dumps(api.put(f"{PODS}/{name}", a_pod())).encode() for name in ("d", "e"))
    items = DEEP % (b"a", 109, NESTED) + b"," + others
    body = b'{"kind":"PodList","items":[%s],"metadata":{"resourceVersion":"110"}}\n' % items
    api.version = 110
    api.faults.append(("GET", LIST, web.Response(body=body)))
    api.compact()
    await watched.until(lambda: watched.cache.resource_version == 110)

    assert watched.names() == {"a", "d", "e"}, "a is there, b and c are not"
    assert watched.cache.counters.unreadable == 1
    assert watched.cache.synced


async def test_a_list_with_an_item_without_a_readable_key_removes_nothing(watched: Watched, api: FakeApi) -> None:
    api.faults.append(("GET", LIST, {"metadata": {"resourceVersion": "103"}, "items": [{}], "code": 200}))
    watched.clock.seconds += 5000
    api.cut()
    await watched.until(lambda: watched.cache.counters.lists == 2 and len(api.streams) == 1)

    assert watched.names() == {"a", "b", "c"}


async def test_an_incomplete_list_removes_nothing(watched: Watched, api: FakeApi) -> None:
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


async def test_a_list_without_a_version_is_refused(api: FakeApi) -> None:
    api.faults.append(("GET", LIST, {"metadata": {}, "items": [], "code": 200}))
    async with watching(api) as watched:
        await watched.cache.wait_synced()

    assert (watched.names(), watched.cache.resource_version) == ({"a", "b", "c"}, 103)


async def test_an_expired_continue_token_restarts_the_list(api: FakeApi) -> None:
    api.faults += [
        ("GET", LIST, {"metadata": {"resourceVersion": "90", "continue": "90-1"}, "items": [], "code": 200}),
    ]
    api.compacted = 95
    async with watching(api) as watched:
        await watched.cache.wait_synced()

    assert watched.names() == {"a", "b", "c"}
    assert watched.cache.counters.lists == 2


async def test_an_unreachable_server_leaves_the_cache_as_it_is(watched: Watched, api: FakeApi) -> None:
    api.faults += [("GET", WATCH, status(503, "ServiceUnavailable")) for _unused in range(5)]
    api.cut()
    await watched.until(lambda: not api.faults)

    assert watched.cache.synced
    assert watched.names() == {"a", "b", "c"}


async def test_a_stopped_cache_is_empty_and_lists_when_it_runs_again(api: FakeApi) -> None:
    async with watching(api) as watched:
        await watched.cache.wait_synced()
        await watched.until(lambda: watched.cache.counters.streams == 1)
    watched.cache.start_over()
    assert (watched.names(), watched.cache.synced) == (set(), False)

    async with a_client(api) as client:
        watched.cache._client = client
        running = asyncio.create_task(watched.cache.run())
        await watched.until(lambda: watched.cache.synced)
        running.cancel()
        await asyncio.wait({running})

    assert watched.names() == {"a", "b", "c"}


@pytest.mark.parametrize(
    "answer",
    [status(404, "NotFound"), status(403, "Forbidden"), web.Response(status=404, text="404 page not found")],
    ids=["no such resource", "not allowed", "no such group"],
)
async def test_a_resource_that_is_not_served_resets_synced(api: FakeApi, answer: Any) -> None:
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


async def test_the_back_off_is_bounded_and_jittered_and_honours_the_server(api: FakeApi) -> None:
    api.faults += [("GET", LIST, status(500, "InternalError")) for _unused in range(6)]
    api.faults.append(("GET", LIST, status(429, "TooManyRequests") | {"retry_after": 9}))
    async with watching(api, Timing(back_off_first=0.2, back_off_limit=4.0), jitter=0.5) as watched:
        await watched.cache.wait_synced()

    assert watched.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 11.0])


async def test_a_stream_that_ends_at_once_does_not_become_a_busy_loop(watched: Watched, api: FakeApi) -> None:
    before = len(watched.pauses)
    api.faults += [("GET", WATCH, web.Response()) for _unused in range(3)]
    watched.clock.seconds += 300
    api.cut()
    await watched.until(lambda: not api.faults and bool(api.streams))

    assert len(watched.pauses) == before + 3, "the one that lasted is opened again at once"


async def test_silently_lost_events_are_repaired_and_counted(watched: Watched, api: FakeApi) -> None:
    # a change without an event, and a bookmark with its version
    api.objects[f"{PODS}/a"]["metadata"]["resourceVersion"] = "150"
    api.version = 160
    api.bookmark(PODS, 160)
    await watched.until(lambda: watched.cache.resource_version == 160)

    watched.clock.seconds += 3601
    api.cut()
    await watched.until(lambda: watched.cache.counters.lists == 2)
    await watched.until(lambda: ("a", "changed") in watched.changes)

    assert watched.cache.counters.repaired == 1
