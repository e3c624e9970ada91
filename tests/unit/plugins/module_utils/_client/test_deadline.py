# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wait ends on time, or a few seconds later, however the server behaves. The clock is simulated: pauses and
silence advance it.
"""

from __future__ import annotations

import functools
import http.client
import io
import itertools
import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import deadline
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import transport as transport_module
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api, Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    Silent,
    TimeIsUp,
    Unavailable,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import LATE_SECONDS, Transport
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.waiter import (
    LAST_LOOKS,
    Reached,
    Verdict,
    Waiter,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import kinds
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import wait_for
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait.goal import Goal

JSON = "application/json"
THINGS = Resource("v1", "things", "Thing", "default")
SECONDS = 10.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Answer:
    """What http.client would return."""

    def __init__(self, status: int, kind: str, body: bytes = b"", **headers: str) -> None:
        self.status = status
        self._headers = {"Content-Type": kind, **headers}
        self._parts = [body] if body else []

    def getheader(self, name: str, default: str = "") -> str:
        return self._headers.get(name, default)

    def read1(self, _size: int) -> bytes:
        return self._parts.pop() if self._parts else b""

    def read(self) -> bytes:
        return b""

    def readline(self, _limit: int) -> bytes:
        return self.read1(0)

    def close(self) -> None:
        self._parts.clear()


Behaviour = Callable[[Clock, float], Answer]


def busy(asks: str = "") -> Behaviour:
    return lambda _clock, _timeout: Answer(429, "text/plain", b"slow down\n", **({"Retry-After": asks} if asks else {}))


def page(_clock: Clock, _timeout: float) -> Answer:
    return Answer(502, "text/html", b"<html>no backend</html>")


def cut(_clock: Clock, _timeout: float) -> Answer:
    raise Unavailable("it hung up") from ConnectionResetError()


def silent(clock: Clock, timeout: float) -> Answer:
    clock.now += timeout
    raise Silent("it says nothing") from TimeoutError()


class Trickle(Answer):
    """A response that arrives one byte at a time, slowly."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(200, JSON)
        self._clock = clock

    def read1(self, _size: int) -> bytes:
        self._clock.now += 1
        return b" "


BAD: dict[str, Behaviour] = {
    "busy": busy(),
    "busy for a minute": busy("60"),
    "a proxy's page": page,
    "cut": cut,
    "silent": silent,
    "a byte now and then": lambda clock, _timeout: Trickle(clock),
}


class Server:
    """Responds as the test says for known paths, and badly for the others."""

    def __init__(self, clock: Clock, behave: Behaviour, **good: Any) -> None:
        self.clock, self._behave, self._good = clock, behave, good
        self.requests: list[tuple[float, str]] = []

    def send(self, _method: str, target: str, _payload: object, _headers: object, timeout: float) -> Answer:
        assert timeout > 0
        self.requests.append((self.clock.now, target))
        self.clock.now += 0.01
        path, _unused, query = target.partition("?")
        of = next((item for item in self._good if f"/{item}" in path), None)
        if of is None:
            return self._behave(self.clock, timeout)
        if "watch=" in query:
            self.clock.now += timeout - 1
            return Answer(200, JSON)
        is_one = path.rpartition("/")[2] != of
        body = self._good[of] if is_one else {"kind": "List", "metadata": {}, "items": [self._good[of]]}
        return Answer(200, JSON, json.dumps(body).encode())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    now = Clock()
    monkeypatch.setattr(transport_module, "time", SimpleNamespace(monotonic=now.monotonic, sleep=now.sleep))
    timed = functools.partial(Waiter, clock=now.monotonic, sleep=now.sleep)
    monkeypatch.setattr(wait_for, "Waiter", timed)
    return now


@pytest.fixture
def api_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Server], Api]:
    def connected(server: Server) -> Api:
        monkeypatch.setattr(Transport, "_send", lambda _self, *requests: server.send(*requests))
        return Api(Transport(Endpoint(server="http://127.0.0.1")))

    return connected


def waited(api: Api, clock: Clock, seconds: float = SECONDS) -> Reached:
    waiter = Waiter(
        api,
        THINGS,
        lambda _name, _obj: Verdict(),
        deadline=clock.now + seconds,
        clock=clock.monotonic,
        sleep=clock.sleep,
    )
    return waiter.until(["a"])["a"]


@pytest.mark.parametrize("behave", BAD.values(), ids=BAD.keys())
def test_a_misbehaving_server_does_not_extend_a_wait(
    clock: Clock, api_of: Callable[[Server], Api], behave: Behaviour
) -> None:
    began, server = clock.now, Server(clock, behave)
    reached = waited(api_of(server), clock)
    assert reached.trouble
    assert "no time is left" not in reached.trouble, "but what the server did with it"
    assert SECONDS <= clock.now - began <= SECONDS + LATE_SECONDS + 1.1
    late = [when for when, _target in server.requests if when >= began + SECONDS]
    assert len(late) <= LAST_LOOKS


@pytest.mark.parametrize("behave", BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("lists", [False, True], ids=["no request succeeds", "only lists succeed"])
def test_a_misbehaving_server_gets_few_requests(
    clock: Clock, api_of: Callable[[Server], Api], behave: Behaviour, *, lists: bool
) -> None:
    """Hundreds of tasks may wait for the same server."""
    began = clock.now
    server = Server(clock, behave, **({"things": {"metadata": {"name": "a"}}} if lists else {}))
    waited(api_of(server), clock, seconds=600)
    times = [when for when, _target in server.requests]
    busiest = max(sum(start <= when < start + 10 for when in times) for start in times)
    assert clock.now - began >= 600
    assert len(times) <= 2 * 600
    assert busiest <= 2 * 10


def test_transient_errors_are_retried_before_the_deadline(clock: Clock, api_of: Callable[[Server], Api]) -> None:
    began, server = clock.now, Server(clock, page)
    waited(api_of(server), clock)
    assert len([when for when, _target in server.requests if when < began + SECONDS]) > 2


def test_a_silently_dropped_connection_is_abandoned_long_before_the_wait_ends(
    clock: Clock, api_of: Callable[[Server], Api]
) -> None:
    """Otherwise two of them use up a wait of a minute, although the machine runs."""
    began, server = clock.now, Server(clock, silent)
    with pytest.raises(Silent):
        api_of(server).get(THINGS, "a")
    sent = [round(when - began) for when, _target in server.requests]
    assert (sent[0], 10 <= sent[1] < 12, 30 <= sent[2] < 35) == (0, True, True)
    assert 60 <= clock.now - began < 65, "who is slow has as long as ever in the end"


def test_a_write_has_its_full_timeout_at_once(clock: Clock, api_of: Callable[[Server], Api]) -> None:
    """Admission of a write may take long."""
    began, server = clock.now, Server(clock, silent)
    with pytest.raises(Silent):
        api_of(server).create(THINGS, {"metadata": {"name": "a"}})
    assert clock.now - began == pytest.approx(transport_module.TIMEOUT_SECONDS, abs=0.1)


def test_a_watch_begins_soon_or_is_abandoned(clock: Clock, api_of: Callable[[Server], Api]) -> None:
    began, server = clock.now, Server(clock, silent)
    with pytest.raises(Silent):
        api_of(server).watch(THINGS, fields=None, version="1", timeout_seconds=30)
    assert clock.now - began == pytest.approx(transport_module.ANSWER_SECONDS[0], abs=0.1)


def test_a_wait_resets_the_deadline_of_the_connection(clock: Clock, api_of: Callable[[Server], Api]) -> None:
    server = Server(clock, page)
    api = api_of(server)
    waited(api, clock)
    tried = len(server.requests)
    with pytest.raises(Unavailable):
        api.get(THINGS, "a")
    assert len(server.requests) - tried == len(transport_module.PAUSES_SECONDS) + 1


def test_with_a_timeout_of_zero_a_good_response_is_accepted(clock: Clock, api_of: Callable[[Server], Api]) -> None:
    api = api_of(Server(clock, page, things={"metadata": {"name": "a"}}))
    with api.bounded(clock.now):
        assert api.get(THINGS, "a")


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
EMPTY = b'{"kind": "List", "metadata": {"resourceVersion": "5"}}'
LIST = OK + b"Content-Length: %d\r\n\r\n" % len(EMPTY) + EMPTY
DRIPS = {
    "a head that does not end": (OK + b"X: ", b"a"),
    "told to go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "the size of a chunk": (CHUNKED, b"0"),
    "a line that does not end": (CHUNKED, b"1\r\n \r\n"),
}


class Dripping(io.RawIOBase):
    """A socket's data: first some bytes, then a few more each second, and never the end."""

    def __init__(self, clock: Clock, first: bytes, then: bytes) -> None:
        self._clock, self._parts = clock, itertools.chain([first] if first else [], itertools.repeat(then))
        self._is_first = bool(first)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._clock.now += 0 if self._is_first else 1
        self._is_first = False
        assert self._clock.now < 10_000, "nobody waits so long"
        part = next(self._parts)
        buffer[: len(part)] = part
        return len(part)


class Drip:
    """Such a socket."""

    def __init__(self, *said: Any) -> None:
        self._said = said

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(Dripping(*self._said))

    def sendall(self, _data: bytes) -> None:
        pass

    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def close(self) -> None:
        pass


@pytest.fixture
def dripping(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterator[tuple[bytes, bytes]]], Api]:
    """An API whose connections each send the next given data."""
    monkeypatch.setattr(deadline, "time", SimpleNamespace(monotonic=clock.monotonic))

    def connected(said: Iterator[tuple[bytes, bytes]]) -> Api:
        def connect(connection: http.client.HTTPConnection) -> None:
            connection.sock = Drip(clock, *next(said))  # type: ignore[assignment]

        monkeypatch.setattr(http.client.HTTPConnection, "connect", connect)
        return Api(Transport(Endpoint(server="http://127.0.0.1")))

    return connected


Drips = Callable[[Iterator[tuple[bytes, bytes]]], Api]


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS.keys())
def test_a_response_byte_by_byte_ends_on_time(clock: Clock, dripping: Drips, drip: tuple[bytes, bytes]) -> None:
    began = clock.now
    with pytest.raises(Unavailable):
        dripping(itertools.repeat(drip)).get(THINGS, "a")
    assert clock.now - began <= 3 * (transport_module.TIMEOUT_SECONDS + 1) + sum(transport_module.PAUSES_SECONDS)


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS.keys())
def test_a_watch_byte_by_byte_does_not_extend_a_wait(clock: Clock, dripping: Drips, drip: tuple[bytes, bytes]) -> None:
    """The collection is still read."""
    began, drips = clock.now, itertools.cycle([(LIST, b""), drip])
    waited(dripping(drips), clock)
    assert SECONDS <= clock.now - began <= SECONDS + LATE_SECONDS + 1.1


METADATA = {"name": "web", "namespace": "default", "uid": "u"}
VM = {"kind": "VirtualMachine", "metadata": METADATA, "spec": {"runStrategy": "Always"}}
VMI = {"kind": "VirtualMachineInstance", "metadata": METADATA, "status": {"phase": "Scheduling"}}


def why_in_vain(api: Api, clock: Clock) -> VirtError:
    resource = kinds.VM.resource("default")
    done = wait_for.wait_for(api, resource, {"web": Goal("running")}, timeout_seconds=SECONDS, start=clock.now)
    assert isinstance(done["web"], VirtError)
    return done["web"]


@pytest.mark.parametrize("behave", BAD.values(), ids=BAD.keys())
def test_the_diagnosis_does_not_extend_a_wait(clock: Clock, api_of: Callable[[Server], Api], behave: Behaviour) -> None:
    """The user may read the machine, and gets no response about its Pods and Events."""
    began = clock.now
    server = Server(clock, behave, virtualmachineinstances=VMI, virtualmachines=VM)
    error = why_in_vain(api_of(server), clock)
    assert "its instance is Scheduling" in error.message
    assert clock.now - began <= SECONDS + LATE_SECONDS + 1.1
    about = [target for _when, target in server.requests if "virtualmachine" not in target.partition("?")[0]]
    assert len(about) == len(set(about)), "one try each"


def test_after_the_deadline_nothing_is_sent(clock: Clock, api_of: Callable[[Server], Api]) -> None:
    server = Server(clock, silent)
    api = api_of(server)
    with api.bounded(clock.now - LATE_SECONDS), pytest.raises(TimeIsUp):
        api.get(THINGS, "a")
    assert server.requests == []
