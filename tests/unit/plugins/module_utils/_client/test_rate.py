# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The request rate of waiting tasks behind a faulty proxy: 429 as text, an error page, a cut or silent connection,
watches that end at once. A hundred tasks for each mix of faults, in simulated time.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import transport as transport_module
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api, Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import Silent, Unavailable
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import Transport
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.waiter import Judge, Verdict, Waiter

THINGS = Resource("v1", "things", "Thing", "default")
TASKS = 100
MOST_PER_SECOND = 2.0
WINDOW_SECONDS = 10.0
PATIENCE_SECONDS = 6 * 3600.0
"""When four of five responses are lost, a judge's two reads seldom both succeed in one attempt."""
JSON = "application/json"
OF_READS = ("busy", "busy: 0", "busy: 1", "page", "cut", "silent")
OF_WATCHES = (*OF_READS, "empty", "one event", "mute")
MIXES = {
    "all": OF_WATCHES,
    "quick": ("busy", "busy: 0", "page", "cut", "empty", "one event"),
    "in a hurry": ("busy: 0", "empty"),
    "a proxy": ("page", "cut", "empty"),
    "a firewall": ("silent", "mute"),
}


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


class Mute(Answer):
    """A stream without further data."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        super().__init__(200, JSON)
        self._clock, self._seconds = clock, seconds

    def readline(self, _limit: int) -> bytes:
        self._clock.now += self._seconds
        raise TimeoutError


class Server:
    """One object that becomes ready after a while, behind random faults."""

    def __init__(self, clock: Clock, chance: random.Random, mix: tuple[str, ...], share: float) -> None:
        self.clock, self._chance, self._share = clock, chance, share
        self._of_watches, self._of_reads = mix, [item for item in mix if item in OF_READS]
        self._ready_at = clock.now + chance.uniform(30, 90)
        self.asked: list[float] = []

    def _thing(self) -> dict[str, Any]:
        return {"metadata": {"name": "a", "resourceVersion": "5"}, "ready": self.clock.now >= self._ready_at}

    def send(self, _method: str, target: str, _payload: object, _headers: object, timeout: float) -> Answer:
        self.asked.append(self.clock.now)
        self.clock.now += 0.005
        is_watch = "watch=" in target
        if self._chance.random() < self._share:
            return self._fault(self._chance.choice(self._of_watches if is_watch else self._of_reads), timeout)
        if target.endswith("-of"):
            return self._said(self._thing())
        if not is_watch:
            return self._said({"kind": "List", "metadata": {"resourceVersion": "5"}, "items": [self._thing()]})
        self.clock.now = min(max(self.clock.now, self._ready_at), self.clock.now + timeout - 1)
        return self._said({"type": "MODIFIED", "object": self._thing()})

    def _fault(self, which: str, timeout: float) -> Answer:
        if which.startswith("busy"):
            asks = {"Retry-After": which[-1]} if ":" in which else {}
            return Answer(429, "text/plain", b"slow down\n", **asks)
        if which == "page":
            return Answer(502, "text/html", b"<html>no backend</html>")
        if which == "mute":
            return Mute(self.clock, timeout)
        if which == "one event":
            return self._said({"type": "BOOKMARK", "object": self._thing()})
        if which == "empty":
            return Answer(200, JSON)
        self.clock.now += timeout if which == "silent" else 0
        if which == "silent":
            raise Silent("it says nothing") from TimeoutError()
        raise Unavailable("it is gone") from ConnectionResetError()

    def _said(self, what: dict[str, Any]) -> Answer:
        return Answer(200, JSON, json.dumps(what).encode() + b"\n")


def judge_of(api: Api) -> Judge:
    """Return a judge that reads another object first, as the judge of a VM reads its instance."""

    def judge(name: str, obj: dict[str, Any] | None) -> Verdict:
        other = api.get(THINGS, f"{name}-of") if obj else None
        return Verdict(done=bool(obj and other and obj["ready"]), missing="it is not ready")

    return judge


def waited(
    monkeypatch: pytest.MonkeyPatch, chance: random.Random, mix: tuple[str, ...], share: float
) -> tuple[bool, list[float], float]:
    """Run one task; return whether it ended right, when it sent requests, and how long it took."""
    clock = Clock()
    server = Server(clock, chance, mix, share)
    monkeypatch.setattr(transport_module, "time", SimpleNamespace(monotonic=clock.monotonic, sleep=clock.sleep))
    monkeypatch.setattr(Transport, "_send", lambda _self, *asked: server.send(*asked))
    api, began = Api(Transport(Endpoint(server="http://127.0.0.1"))), clock.now
    waiter = Waiter(
        api, THINGS, judge_of(api), deadline=began + PATIENCE_SECONDS, clock=clock.monotonic, sleep=clock.sleep
    )
    reached = waiter.until(["a"])["a"]
    return reached.verdict.done, server.asked, clock.now - began


def busiest(asked: list[float]) -> float:
    """Return the highest request rate in any window of time."""
    return max(sum(start <= at < start + WINDOW_SECONDS for at in asked) for start in asked) / WINDOW_SECONDS


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_waiting_tasks_end_right_with_few_requests(share: float, mix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{share} {mix}")
    tasks = [waited(monkeypatch, chance, MIXES[mix], share) for _task in range(TASKS)]

    assert Counter(done for done, _asked, _seconds in tasks) == {True: TASKS}
    assert max(len(times) / seconds for _done, times, seconds in tasks) <= MOST_PER_SECOND
    assert max(busiest(times) for _done, times, _seconds in tasks) <= MOST_PER_SECOND
