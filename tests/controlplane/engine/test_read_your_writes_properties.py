# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of ReadYourWritesCache: several requests at once, responses in any order, a watch that lags.

After each step the cache must show the newest state that a response or the watch has brought, and never an object that
either has reported as gone. Once the watch has caught up, it must show exactly what the API server holds.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import ApiError, NotFound
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from tests.support.calls import READ, Call, CallingApi, Fate, perform
from tests.support.clock import SimulatedClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
KEYS = (Key("default", "a"), Key("default", "b"))
OWNERS = ("red", "blue")
FATES: tuple[Fate, ...] = (*("done",) * 6, "request lost", "answer lost")
MOST_REQUESTS = 3
STEPS = 600


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_cache_shows_the_newest_known_state(seed: int) -> None:
    run = Run(random.Random(seed))
    try:
        for _step in range(STEPS):
            run.step()
            run.check()
        while run.requests:
            run.respond(run.requests[0])
        run.catch_up()
    finally:
        for request in run.requests:
            request.coroutine.close()


@dataclass(slots=True)
class Request:
    coroutine: Coroutine[Call, Any, Any]
    call: Call
    shown_uid: str
    """UID of the object that the cache showed when the request began; "" for none."""
    response: tuple[Any, Exception | None] | None = None


class Run:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._store = Store(SimulatedClock(), (VMI,))
        self._watch_cache = LaggingCache(self._store, VMI, _is_selected)
        self._cache = ReadYourWritesCache(self._watch_cache)
        self._api = ReadYourWritesApi(CallingApi(self._store), {VMI: self._cache})
        self.requests: list[Request] = []
        self._newest: dict[str, int] = {}
        """UID -> newest version in a response."""
        self._responses = dict.fromkeys(KEYS, (0, ""))
        """Key -> version and UID of the newest state in a response."""
        self._gone: set[str] = set()
        """UIDs of objects that a response reported as gone."""
        self._ended: set[str] = set()
        """UIDs of objects that the watch reported as gone."""
        self._deleted: set[str] = set()
        self._notified: set[Key] = set()
        self._watched_version: dict[Key, int] = {}
        self._cache.subscribe(lambda key, _before, _after: self._notified.add(key))
        self._watch_cache.subscribe(self._watch_changed)
        self._watch_cache.start()

    def step(self) -> None:
        steps = (self._request, self._respond_to_any, self._watch, self._change_by_user, self.catch_up)
        self._rng.choices(steps, (6, 8, 6, 3, 0.3))[0]()

    def _request(self) -> None:
        if len(self.requests) == MOST_REQUESTS:
            return
        key = self._rng.choice(KEYS)
        shown = self._shown(key)
        uid = "" if shown is None else str(shown["metadata"]["uid"])
        coroutine = self._write(key, uid) if self._rng.random() < 0.5 else self._api.get(VMI, key)
        self.requests.append(Request(coroutine, coroutine.send(None), uid))

    def _write(self, key: Key, uid: str) -> Coroutine[Call, Any, Any]:
        if not uid:
            return self._api.create(VMI, key.namespace, _body(key, self._rng))
        if self._rng.random() < 0.3:
            return self._api.delete(VMI, key, uid=uid)
        return self._api.patch(VMI, key, _patch(self._rng), uid=uid)

    def _respond_to_any(self) -> None:
        if self.requests:
            self.respond(self._rng.choice(self.requests))

    def respond(self, request: Request) -> None:
        """Carry a request out, or deliver its response: other responses may come between the two."""
        if request.response is None:
            self._store.actor = "controller"
            request.response = perform(request.call, self._rng.choice(FATES))
            return
        self.requests.remove(request)
        result, error = request.response
        self._note(request, result, error)
        try:
            request.coroutine.send(result) if error is None else request.coroutine.throw(error)
        except (StopIteration, ApiError):
            return
        raise AssertionError("one call sends more than one request")

    def _note(self, request: Request, result: Any, error: Exception | None) -> None:
        verb = request.call.verb
        if isinstance(error, NotFound) and verb in (READ, "delete"):
            self._gone.add(request.shown_uid if verb == READ else request.call.asked["uid"])
        elif error is None and verb == "delete":
            self._deleted.add(request.call.asked["uid"])
        elif error is None:
            meta = result["metadata"]
            uid, version = meta["uid"], int(meta["resourceVersion"])
            self._newest[uid] = max(self._newest.get(uid, 0), version)
            self._responses[request.call.key] = max(self._responses[request.call.key], (version, uid))
            if verb == "patch" and "deletionTimestamp" in meta and not meta.get("finalizers"):
                self._gone.add(uid)

    def _watch(self) -> None:
        before, self._notified = self._versions(), set()
        how = self._rng.random()
        if how < 0.05:
            self._watch_cache.relist()
        elif how < 0.15:
            self._watch_cache.bookmark()
        elif how < 0.3:
            self._watch_cache.repeat(self._rng.choice((1, 3, 6)))
        elif self._watch_cache.is_behind:
            self._watch_cache.advance()
        changed = {key for key, version in self._versions().items() if version != before[key]}
        assert changed <= self._notified, "subscribers are not notified of a change"

    def catch_up(self) -> None:
        while self._watch_cache.is_behind:
            self._watch_cache.advance()
        self._watch_cache.bookmark()
        stored = {key: int(body["metadata"]["resourceVersion"]) for key, body in self._store.list(VMI)}
        assert {key: version for key, version in self._versions().items() if version} == stored

    def _change_by_user(self) -> None:
        self._store.actor, key = "user", self._rng.choice(KEYS)
        if self._store.find(VMI, key) is None:
            self._store.create(VMI, key.namespace, _body(key, self._rng))
        elif self._rng.random() < 0.3:
            self._store.delete(VMI, key)
        else:
            self._store.patch(VMI, key, _patch(self._rng))

    def _shown(self, key: Key) -> Json | None:
        raw = self._cache.get(key)
        return None if raw is None else msgspec.json.decode(raw)

    def _versions(self) -> dict[Key, int]:
        """Return the resource versions that the cache shows; 0 for no object."""
        shown = {key: self._shown(key) for key in KEYS}
        return {key: 0 if body is None else int(body["metadata"]["resourceVersion"]) for key, body in shown.items()}

    def check(self) -> None:
        shown = {key: body for key in KEYS if (body := self._shown(key)) is not None}
        assert {*self._cache.keys()} == {*shown}
        for key, (version, uid) in self._responses.items():
            is_news = version > self._watch_cache.resource_version and uid not in self._gone | self._ended
            assert key in shown or not is_news, f"{key} is not shown, and a response had version {version}"
        for key, body in shown.items():
            self._check_object(key, body["metadata"])
        for owner in OWNERS:
            owned = {key for key, body in shown.items() if body["metadata"]["ownerReferences"][0]["uid"] == owner}
            assert {*self._cache.indexed("owner", owner)} == owned

    def _check_object(self, key: Key, meta: Json) -> None:
        uid = meta["uid"]
        assert uid not in self._gone, f"{key} is shown after a response that it is gone"
        assert uid not in self._ended, f"{key} is shown after the watch reported its end"
        assert int(meta["resourceVersion"]) >= self._newest.get(uid, 0), f"{key} is older than a response"
        is_delete_sent = uid in self._deleted and "deletionTimestamp" not in meta
        assert self._cache.is_delete_sent(key, uid) is is_delete_sent

    def _watch_changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        was, now = ({} if raw is None else msgspec.json.decode(raw)["metadata"] for raw in (before, after))
        if was and was["uid"] != now.get("uid"):  # a relist shows the next object of that name at once
            self._ended.add(was["uid"])
        version = int(now.get("resourceVersion", 0))
        assert after is None or version >= self._watched_version.get(key, 0), f"the watch cache goes back for {key}"
        self._watched_version[key] = max(version, self._watched_version.get(key, 0))


def _body(key: Key, rng: random.Random) -> Json:
    owners = [{"apiVersion": "v1", "kind": "Owner", "name": "x", "uid": rng.choice(OWNERS), "controller": True}]
    meta: Json = {"name": key.name, "labels": {"seen": "yes"}}
    finalizers = rng.choice(([], ["hold"]))
    return {"metadata": {**meta, "ownerReferences": owners, "finalizers": finalizers}, "spec": {}}


def _patch(rng: random.Random) -> Json:
    owner = {"kind": "Owner", "name": "x", "uid": rng.choice(OWNERS), "controller": True}
    note: Json = {"annotations": {"note": str(rng.random())}}
    return {"metadata": rng.choice((note, note, {"ownerReferences": [owner]}, {"finalizers": None}))}


def _is_selected(body: Json) -> bool:
    return "labels" in body["metadata"]
