# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is laid over a cache, in a play of its own: many ask and write at once, and their answers come in any order.

In the big world two workers are seldom about one object, and the later answer mostly comes later. Here what is shown is
compared after each step with what was answered, and with the truth once all is heard.
"""

from __future__ import annotations

import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import ApiError, NotFound
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from tests.support.breach import Breach
from tests.support.calls import READ, Call, CallingApi, Fate, perform
from tests.support.clock import SimulatedClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import Json, Store

VMI = VIRTUAL_MACHINE_INSTANCE
KEYS = (Key("default", "a"), Key("default", "b"))
OWNERS = ("red", "blue")
FATES: tuple[Fate, ...] = (*("done",) * 6, "request lost", "answer lost")
MOST_ASKED = 3
"""At once."""


@dataclass(slots=True)
class Asking:
    coroutine: Coroutine[Call, Any, Any]
    call: Call
    shown: str
    """UID of what was shown when it was asked; "" for nothing."""
    came: tuple[Any, Exception | None] | None = None


class OverlayPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._store = Store(SimulatedClock(), (VMI,))
        self._cache = LaggingCache(self._store, VMI, _is_selected)
        self._overlay = ReadYourWritesCache(self._cache)
        self._api = ReadYourWritesApi(CallingApi(self._store), {VMI: self._overlay})
        self._asking: list[Asking] = []
        self._newest: dict[str, int] = {}
        """Version of the newest state that was answered, by UID."""
        self._answered = dict.fromkeys(KEYS, (0, ""))
        """Version and UID of the newest state that was answered, by key."""
        self._gone: set[str] = set()
        """UIDs of what was answered to be gone."""
        self._deleted: set[str] = set()
        self._told: set[Key] = set()
        self._last: dict[Key, int] = {}
        self._ended: set[str] = set()
        """UIDs of what the cache has told to be gone."""
        self._wrong: list[str] = []
        self._overlay.subscribe(lambda key, _before, _after: self._told.add(key))
        self._cache.subscribe(self._cache_changed)
        self._cache.start()

    def run(self, steps: int) -> None:
        """Take random steps, and hear of everything in the end. Raises Breach."""
        try:
            for _unused in range(steps):
                self._step()
                self._judge()
            while self._asking:
                self._answer(self._asking[0])
            self._hear_all()
        finally:
            for one in self._asking:
                one.coroutine.close()

    def _step(self) -> None:
        moves = (self._ask, self._answer_one, self._hear, self._happen, self._hear_all)
        self._rng.choices(moves, (6, 8, 6, 3, 0.3))[0]()

    def _ask(self) -> None:
        if len(self._asking) == MOST_ASKED:
            return
        key = self._rng.choice(KEYS)
        shown = self._shown(key)
        uid = "" if shown is None else str(shown["metadata"]["uid"])
        coroutine = self._write(key, uid) if self._rng.random() < 0.5 else self._api.get(VMI, key)
        self._asking.append(Asking(coroutine, coroutine.send(None), uid))

    def _write(self, key: Key, uid: str) -> Coroutine[Call, Any, Any]:
        if not uid:
            return self._api.create(VMI, key.namespace, _body(key, self._rng))
        if self._rng.random() < 0.3:
            return self._api.delete(VMI, key, uid=uid)
        return self._api.patch(VMI, key, _patch(self._rng), uid=uid)

    def _answer_one(self) -> None:
        if self._asking:
            self._answer(self._rng.choice(self._asking))

    def _answer(self, one: Asking) -> None:
        """Let it happen, or whoever asked hear of it: by then others may have been answered."""
        if one.came is None:
            self._store.actor = "controller"
            one.came = perform(one.call, self._rng.choice(FATES))
            return
        self._asking.remove(one)
        result, error = one.came
        self._note(one, result, error)
        try:
            one.coroutine.send(result) if error is None else one.coroutine.throw(error)
        except (StopIteration, ApiError):
            return
        raise Breach("laid over: more is asked than one thing")

    def _note(self, one: Asking, result: Any, error: Exception | None) -> None:
        if isinstance(error, NotFound) and one.call.verb in (READ, "delete"):
            self._gone.add(one.shown if one.call.verb == READ else one.call.asked["uid"])
        elif error is None and one.call.verb == "delete":
            self._deleted.add(one.call.asked["uid"])
        elif error is None:
            meta = result["metadata"]
            uid = meta["uid"]
            version = int(meta["resourceVersion"])
            self._newest[uid] = max(self._newest.get(uid, 0), version)
            self._answered[one.call.key] = max(self._answered[one.call.key], (version, uid))
            if one.call.verb == "patch" and "deletionTimestamp" in meta and not meta.get("finalizers"):
                self._gone.add(uid)

    def _hear(self) -> None:
        before, self._told = self._versions(), set()
        how = self._rng.random()
        if how < 0.05:
            self._cache.relist()
        elif how < 0.15:
            self._cache.bookmark()
        elif how < 0.3:
            self._cache.repeat(self._rng.choice((1, 3, 6)))
        elif self._cache.is_behind:
            self._cache.advance()
        untold = [key for key, version in self._versions().items() if version != before[key] and key not in self._told]
        if untold:
            raise Breach(f"laid over: {untold[0]} was shown as of {before[untold[0]]}, and nobody is told of its end")

    def _hear_all(self) -> None:
        while self._cache.is_behind:
            self._cache.advance()
        self._cache.bookmark()
        there = dict(self._store.list(VMI))
        for key, version in self._versions().items():
            body = there.get(key)
            is_there = 0 if body is None else int(body["metadata"]["resourceVersion"])
            if version != is_there and (version or (body is not None and _is_selected(body))):
                raise Breach(f"laid over: all is heard, and {key} is shown as of {version}, not of {is_there}")

    def _happen(self) -> None:
        """Let somebody else do something."""
        self._store.actor, key = "user", self._rng.choice(KEYS)
        if self._store.find(VMI, key) is None:
            self._store.create(VMI, key.namespace, _body(key, self._rng))
        elif self._rng.random() < 0.3:
            self._store.delete(VMI, key)
        else:
            self._store.patch(VMI, key, _patch(self._rng))

    def _shown(self, key: Key) -> Json | None:
        raw = self._overlay.get(key)
        return None if raw is None else msgspec.json.decode(raw)

    def _versions(self) -> dict[Key, int]:
        shown = {key: self._shown(key) for key in KEYS}
        return {key: 0 if one is None else int(one["metadata"]["resourceVersion"]) for key, one in shown.items()}

    def _judge(self) -> None:
        if self._wrong:
            raise Breach(f"laid over: {self._wrong[0]}")
        shown = {key: body for key in KEYS if (body := self._shown(key)) is not None}
        if {*self._overlay.keys()} != {*shown}:
            raise Breach(f"laid over: {sorted(self._overlay.keys())} are listed, and {sorted(shown)} are shown")
        for key, (version, uid) in self._answered.items():
            is_news = version > self._cache.resource_version and uid not in self._gone | self._ended
            if is_news and key not in shown:
                raise Breach(f"laid over: {key} is not shown, and its state of {version} was answered")
        for key, body in shown.items():
            meta = body["metadata"]
            uid, version = meta["uid"], int(meta["resourceVersion"])
            if uid in self._gone:
                raise Breach(f"laid over: {key} is shown, and it was answered that it is gone")
            if version < self._newest.get(uid, 0):
                raise Breach(f"laid over: {key} is shown as of {version}, and {self._newest[uid]} was answered")
            if uid in self._ended:
                raise Breach(f"laid over: {key} is shown as of {version}, and its end was heard")
            is_sent = uid in self._deleted and "deletionTimestamp" not in meta
            if self._overlay.is_delete_sent(key, uid) is not is_sent:
                raise Breach(f"laid over: whether {key} is asked to go: {not is_sent}, and it is {is_sent}")
        for owner in OWNERS:
            owned = {key for key, body in shown.items() if body["metadata"]["ownerReferences"][0]["uid"] == owner}
            if {*self._overlay.indexed("owner", owner)} != owned:
                raise Breach(f"laid over: {owner} owns {sorted(owned)}, and another answer is given")

    def _cache_changed(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Take note of what the cache tells: who raises in here is not heard."""
        was, now = ({} if raw is None else msgspec.json.decode(raw)["metadata"] for raw in (before, after))
        if was and was["uid"] != now.get("uid"):  # a relist tells of the next one of a name at once
            self._ended.add(was["uid"])
        version = int(now.get("resourceVersion", 0))
        if after is not None and version < self._last.get(key, 0):
            self._wrong.append(f"the cache has {key} as of {version}, after {self._last[key]}")
        self._last[key] = max(version, self._last.get(key, 0))


def _body(key: Key, rng: random.Random) -> Json:
    owners = [{"apiVersion": "v1", "kind": "Owner", "name": "x", "uid": rng.choice(OWNERS), "controller": True}]
    meta: Json = {"name": key.name, "labels": {"seen": "yes"}}
    finalizers = rng.choice(([], ["hold"]))
    return {"metadata": {**meta, "ownerReferences": owners, "finalizers": finalizers}, "spec": {}}


def _patch(rng: random.Random) -> Json:
    what: Json = rng.choice(
        (
            {"annotations": {"note": str(rng.random())}},
            {"annotations": {"note": str(rng.random())}},
            {"ownerReferences": [{"kind": "Owner", "name": "x", "uid": rng.choice(OWNERS), "controller": True}]},
            {"finalizers": None},
        )
    )
    return {"metadata": what}


def _is_selected(body: Json) -> bool:
    return "labels" in body["metadata"]  # as all are: what the selection leaves out is for the big world
