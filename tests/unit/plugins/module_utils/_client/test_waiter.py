# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting on servers and networks that misbehave. The clock is simulated: only pauses and watches advance it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api, Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    ApiError,
    Forbidden,
    NotFound,
    Unavailable,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.refusals import refusal
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.waiter import (
    LAST_LOOKS,
    LAST_LOOKS_PAUSE_SECONDS,
    LAST_PAUSE_SECONDS,
    WATCH_SECONDS,
    Reached,
    Stuck,
    Verdict,
    Waiter,
)

Object = dict[str, Any]
THINGS = Resource("v1", "things", "Thing", "default")
BUSY = refusal("watch things", 429, "Too many requests")
EXPIRED = {"code": 410, "reason": "Expired", "metadata": {}}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


class Server:
    """A collection and the behaviour of each watch in turn; the last one repeats."""

    def __init__(self, clock: Clock, *watches: Callable[[Server, float], Iterator[Object]]) -> None:
        self.clock = clock
        self.watches = list(watches) or [idle]
        self.things: dict[str, Object] = {}
        self.version = 0
        self.requests: list[str] = []
        """The requests: "read", or the version at which a watch starts."""
        self.refusals: list[VirtError] = []
        """Errors of the next reads."""
        self.longest = 0.0
        self.open = 0

    def put(self, name: str, state: str) -> Object:
        self.version += 1
        self.things[name] = {"metadata": {"name": name, "resourceVersion": str(self.version)}, "state": state}
        return self.things[name]

    def read_all(self, _resource: Resource, *, fields: str | None) -> tuple[list[Object], str]:
        self.requests.append("read")
        if self.refusals:
            raise self.refusals.pop(0)
        chosen = fields.partition("metadata.name=")[2] if fields else None
        return [item for name, item in self.things.items() if chosen in (None, name)], str(self.version)

    def bounded(self, _deadline: float) -> AbstractContextManager[None]:
        return nullcontext()

    def clone(self) -> Server:
        self.open += 1
        return self

    def close(self) -> None:
        self.open -= 1

    def watch(
        self, _resource: Resource, *, fields: str | None, version: str, timeout_seconds: float
    ) -> Iterator[Object]:
        assert fields is None or fields.startswith("metadata.name=")
        self.requests.append(version)
        self.longest = max(self.longest, timeout_seconds)
        behave = self.watches[0] if len(self.watches) == 1 else self.watches.pop(0)
        return behave(self, timeout_seconds)


def idle(server: Server, seconds: float) -> Iterator[Object]:
    """Send nothing until the time is over."""
    server.clock.now += seconds
    yield from ()


def ends_at_once(_server: Server, _seconds: float) -> Iterator[Object]:
    yield from ()


def telling(*events: Object | Exception) -> Callable[[Server, float], Iterator[Object]]:
    def behave(_server: Server, _seconds: float) -> Iterator[Object]:
        for item in events:
            if isinstance(item, Exception):
                raise item
            yield item

    return behave


def event(kind: str, name: str, state: str, version: int) -> Object:
    metadata = {"name": name, "resourceVersion": str(version)}
    return {"type": kind, "object": {"metadata": metadata, "state": state}}


def is_up(_name: str, obj: Object | None) -> Verdict:
    if obj is None:
        return Verdict(missing="it is not there")
    if obj["state"] == "broken":
        return Verdict(hopeless="it is broken")
    return Verdict(done=obj["state"] == "up", missing=f"it is {obj['state']}")


def wait(server: Server, *names: str, seconds: float = 100, judge: Any = is_up) -> dict[str, Reached]:
    waiter = Waiter(server, THINGS, judge, deadline=seconds, clock=server.clock, sleep=server.clock.sleep)
    reached = waiter.until(names)
    assert server.open == 0
    return reached


@pytest.fixture
def clock() -> Clock:
    return Clock()


def stuck_in(key: str, seconds: float = 15) -> Callable[[str, Object | None], Verdict]:
    """Judge objects as stuck while their state begins with a key."""

    def judge(_name: str, obj: Object | None) -> Verdict:
        state = (obj or {"state": ""})["state"]
        found = Stuck(key, f"it is {state}", seconds) if state.startswith(key) else None
        return Verdict(done=state == "up", missing="it is not up", stuck=found)

    return judge


def test_a_stuck_object_is_hopeless_when_its_state_has_lasted(clock: Clock) -> None:
    server = Server(clock)
    server.put("a", "broken")
    reached = wait(server, "a", judge=stuck_in("broken"))["a"]

    assert (reached.verdict.hopeless, clock.now) == ("it is broken", 15)
    assert server.requests == ["read", "1", "read"]
    assert clock.pauses == []


def test_texts_of_the_same_key_are_one_state(clock: Clock) -> None:
    server = Server(clock, telling(event("MODIFIED", "a", "broken again", 2)), idle)
    server.put("a", "broken")
    reached = wait(server, "a", judge=stuck_in("broken"))["a"]

    assert reached.verdict.hopeless
    assert clock.now <= 16


def test_a_state_that_ends_in_time_is_not_hopeless(clock: Clock) -> None:
    def heals(server: Server, seconds: float) -> Iterator[Object]:
        server.clock.now += min(seconds, 10)
        server.put("a", "up")
        yield event("MODIFIED", "a", "up", 2)

    server = Server(clock, heals)
    server.put("a", "broken")

    assert wait(server, "a", judge=stuck_in("broken"))["a"].verdict.done


def test_events_of_others_do_not_delay_the_end_of_a_stuck_object(clock: Clock) -> None:
    def busy(server: Server, _seconds: float) -> Iterator[Object]:
        for version in range(3, 99):
            server.clock.now += 1
            yield event("MODIFIED", "b", "starting", version)

    server = Server(clock, busy)
    server.put("a", "broken")
    server.put("b", "starting")
    reached = wait(server, "a", "b", seconds=40, judge=stuck_in("broken"))

    assert reached["a"].verdict.hopeless == "it is broken"
    assert not reached["b"].verdict.hopeless
    assert server.requests[:3] == ["read", "2", "read"]


def test_a_timeout_before_the_state_has_lasted_is_a_timeout(clock: Clock) -> None:
    server = Server(clock)
    server.put("a", "broken")
    reached = wait(server, "a", seconds=5, judge=stuck_in("broken"))["a"]

    assert (reached.verdict.done, reached.verdict.hopeless) == (False, None)


def test_a_condition_that_already_holds_costs_one_read(clock: Clock) -> None:
    server = Server(clock)
    server.put("a", "up")
    server.put("b", "broken")
    reached = wait(server, "a", "b")
    assert reached["a"].verdict.done
    assert reached["b"].verdict.hopeless == "it is broken"
    assert server.requests == ["read"]


def test_the_event_ends_the_wait(clock: Clock) -> None:
    server = Server(clock, telling(event("ADDED", "other", "up", 1), event("MODIFIED", "a", "up", 2)))
    assert wait(server, "a")["a"].obj == event("", "a", "up", 2)["object"]
    assert server.requests == ["read", "0"]
    assert clock.now == 0.0


def test_a_deleted_object_is_judged_as_absent(clock: Clock) -> None:
    server = Server(clock, telling(event("DELETED", "a", "up", 2)))
    server.put("a", "up")
    reached = wait(server, "a", judge=lambda _name, obj: Verdict(done=obj is None))
    assert reached["a"] == Reached(None, Verdict(done=True))


def test_a_watch_resumes_where_the_last_one_ended(clock: Clock) -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "70"}}}
    server = Server(clock, telling(event("MODIFIED", "a", "new", 7)), telling(bookmark), idle)
    assert not wait(server, "a")["a"].verdict.done
    assert server.requests[:4] == ["read", "0", "7", "70"]


def test_a_silent_watch_is_replaced_after_a_while(clock: Clock) -> None:
    """A proxy may have dropped the connection silently."""
    server = Server(clock)
    wait(server, "a", seconds=10 * WATCH_SECONDS)
    assert server.longest == WATCH_SECONDS
    assert server.requests == ["read", "0"] * 10 + ["read"]


def test_before_giving_up_everything_is_read(clock: Clock) -> None:
    """This finds changes that the watch has missed."""

    def miss(server: Server, seconds: float) -> Iterator[Object]:
        server.put("a", "up")
        return idle(server, seconds)

    server = Server(clock, miss)
    assert wait(server, "a")["a"].verdict.done
    assert server.requests[-1] == "read"


def test_after_the_deadline_the_result_says_what_was_missing(clock: Clock) -> None:
    server = Server(clock)
    made = server.put("a", "new")
    assert wait(server, "a", "b") == {
        "a": Reached(made, Verdict(missing="it is new")),
        "b": Reached(None, Verdict(missing="it is not there")),
    }


def test_a_timeout_of_zero_still_reads_once(clock: Clock) -> None:
    server = Server(clock)
    server.put("a", "up")
    assert wait(server, "a", seconds=0)["a"].verdict.done


PASSING = {
    "no connection": Unavailable("cannot talk to it"),
    "a proxy's page": Unavailable("status 502, content type text/html"),
    "too many requests, as text": BUSY,
    "overloaded": refusal("watch things", 503, None),
    "timed out inside": refusal("watch things", 504, None),
}


@pytest.mark.parametrize("trouble", PASSING.values(), ids=PASSING.keys())
def test_transient_errors_do_not_end_the_wait(clock: Clock, trouble: VirtError) -> None:
    server = Server(clock, telling(trouble), telling(trouble), telling(event("MODIFIED", "a", "up", 2)))
    server.refusals = [trouble, trouble]
    assert wait(server, "a")["a"].verdict.done
    assert server.requests == ["read"] * 2 + ["read", "0"] * 3


def test_an_error_that_lasts_is_reported_at_the_end(clock: Clock) -> None:
    server = Server(clock)
    server.refusals = [Unavailable("cannot talk to it")] * 1000
    assert wait(server, "a")["a"] == Reached(None, Verdict(missing="it could not be read"), "cannot talk to it")
    assert clock.now == pytest.approx(100 + LAST_LOOKS_PAUSE_SECONDS * (LAST_LOOKS - 1))


def test_a_failed_last_read_is_retried(clock: Clock) -> None:
    """A proxy error at that moment says nothing about a machine that has started meanwhile."""

    def miss(server: Server, seconds: float) -> Iterator[Object]:
        server.put("a", "up")
        server.refusals = [BUSY] * (LAST_LOOKS - 1)
        return idle(server, seconds)

    server = Server(clock, miss)
    assert wait(server, "a")["a"].verdict.done
    assert server.requests[-LAST_LOOKS:] == ["read"] * LAST_LOOKS


def test_an_error_that_has_passed_is_not_reported(clock: Clock) -> None:
    server = Server(clock, telling(BUSY), idle)
    assert wait(server, "a")["a"].trouble == ""


def test_a_permanent_refusal_is_raised(clock: Clock) -> None:
    server = Server(clock, telling(refusal("watch things", 403, {"message": "no right"})))
    with pytest.raises(Forbidden, match="no right"):
        wait(server, "a")
    assert server.open == 0


class Gone:
    """A transport whose server no longer serves the kind."""

    deadline: float | None = None

    def request(self, *_request: Any, **_options: Any) -> tuple[int, Any]:
        return 404, "404 page not found"


def test_a_kind_that_is_no_longer_served_ends_the_wait(clock: Clock) -> None:
    """A removal waits for objects while their definition is removed: this 404 is permanent."""
    waiter = Waiter(Api(Gone()), THINGS, is_up, deadline=100, clock=clock, sleep=clock.sleep)
    with pytest.raises(NotFound, match="does not know this kind"):
        waiter.until(["a"])
    assert clock.now == 0


@pytest.mark.parametrize("error", [refusal("watch things", 410, EXPIRED)])
def test_an_expired_version_causes_a_new_read(clock: Clock, error: ApiError) -> None:
    server = Server(clock, telling(event("MODIFIED", "a", "new", 7), error), idle)
    wait(server, "a")
    assert server.requests[:4] == ["read", "0", "read", "0"]


def test_an_object_whose_judge_failed_is_judged_again(clock: Clock) -> None:
    """The judge may read other objects, and fail at that."""
    calls = []

    def judge(name: str, obj: Object | None) -> Verdict:
        calls.append(obj)
        if len(calls) == 2:
            raise Unavailable("cannot talk to it")
        return is_up(name, obj)

    come = event("MODIFIED", "a", "up", 2)
    server = Server(clock, telling(come), telling(come))
    assert wait(server, "a", judge=judge)["a"].verdict.done
    assert server.requests == ["read", "0", "read", "0"]


def test_a_server_that_ends_every_watch_gets_fewer_requests_over_time(clock: Clock) -> None:
    server = Server(clock, ends_at_once)
    wait(server, "a", seconds=100)
    assert server.requests.count("0") <= 1 + 4 + 100 / LAST_PAUSE_SECONDS * 1.25
    assert len(server.requests) <= 2 * server.requests.count("0") + 1


@pytest.mark.parametrize("refusal", [BUSY, Unavailable("cannot connect"), None], ids=["busy", "proxy", "ended"])
def test_a_change_that_no_watch_reports_is_read(clock: Clock, refusal: VirtError | None) -> None:
    """The server refuses or ends every watch but serves reads: the wait ends before its deadline."""

    def behave(server: Server, _seconds: float) -> Iterator[Object]:
        if server.clock.now > 5:
            server.put("a", "up")
        if refusal is not None:
            raise refusal
        yield from ()

    server = Server(clock, behave)
    assert wait(server, "a", seconds=300)["a"].verdict.done
    assert clock.now < 20


def test_a_good_watch_resets_the_back_off(clock: Clock) -> None:
    server = Server(clock, *[ends_at_once] * 6, idle, ends_at_once, idle)
    wait(server, "a", seconds=200)
    assert clock.pauses[:5] == pytest.approx([1, 2, 4, 8, 8], rel=0.21)
    assert clock.pauses[6] < 2
