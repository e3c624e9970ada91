# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read your own writes: no decision on a view older than a response, and none on a response that the cache has
passed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.resources import POD, Key
from controlplane.engine.errors import NotFound
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache

WEB = Key("default", "web")
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
Change = tuple[int | None, int | None]


@dataclass
class FakeCache:
    """A cache fed by the test, with watch events or with lists."""

    raw: dict[Key, bytes] = field(default_factory=dict)
    synced: bool = True
    resource_version: int = 0
    callbacks: list[Callable[[Key, bytes | None, bytes | None], None]] = field(default_factory=list)
    followers: list[Callable[[int], None]] = field(default_factory=list)

    def get(self, key: Key) -> bytes | None:
        return self.raw.get(key)

    def keys(self) -> Collection[Key]:
        return self.raw.keys()

    def indexed(self, index: str, value: str) -> Collection[Key]:
        metadata = {key: msgspec.json.decode(raw)["metadata"] for key, raw in self.raw.items()}
        return [
            key
            for key, meta in metadata.items()
            if value in [reference["uid"] for reference in meta.get("ownerReferences") or ()]
        ]

    def subscribe(self, callback: Callable[[Key, bytes | None, bytes | None], None]) -> None:
        self.callbacks.append(callback)

    def on_resource_version(self, callback: Callable[[int], None]) -> None:
        self.followers.append(callback)

    def see(self, body: dict[str, Any]) -> None:
        """An ADDED or MODIFIED event."""
        self._take(self.raw.get(WEB), msgspec.json.encode(body))
        self.move(int(body["metadata"]["resourceVersion"]))

    def lose(self, last: dict[str, Any]) -> None:
        """A DELETED event; last is the state that it carries, with the version of the deletion."""
        if WEB in self.raw:
            self._take(msgspec.json.encode(last), None)
        self.move(int(last["metadata"]["resourceVersion"]))

    def relist(self, version: int, body: dict[str, Any] | None = None) -> None:
        """A new list at that version, with the object in this state or without it."""
        before = self.raw.get(WEB)
        after = None if body is None else msgspec.json.encode(body)
        if before != after:
            self._take(before, after)
        self.move(version)

    def move(self, resource_version: int) -> None:
        self.resource_version = resource_version
        for callback in self.followers:
            callback(resource_version)

    def _take(self, before: bytes | None, after: bytes | None) -> None:
        self.raw.pop(WEB, None)
        if after is not None:
            self.raw[WEB] = after
        for callback in self.callbacks:
            callback(WEB, before, after)


def an_object(version: int, uid: str = "u1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "namespace": "default", "uid": uid, "resourceVersion": str(version), **meta}}


def owned_by(*uids: str) -> dict[str, Any]:
    return {"ownerReferences": [{"uid": uid} for uid in uids]}


def version_of(raw: bytes | None) -> int | None:
    return None if raw is None else int(msgspec.json.decode(raw)["metadata"]["resourceVersion"])


@dataclass
class Stage:
    cache: FakeCache = field(default_factory=FakeCache)
    overlay: ReadYourWritesCache = field(init=False)
    changes: list[Change] = field(default_factory=list)
    """(version before, version after) of all changes that subscribers got."""

    def __post_init__(self) -> None:
        self.overlay = ReadYourWritesCache(self.cache)
        self.overlay.subscribe(lambda _key, before, after: self.changes.append((version_of(before), version_of(after))))

    def seen(self) -> int | None:
        return version_of(self.overlay.get(WEB))

    def is_idle(self) -> bool:
        """Whether no state is left that only a later event would remove."""
        kept = self.overlay._expectations, self.overlay._owned, self.overlay._ends, self.overlay._reads
        return not any(kept)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_response_is_shown_until_the_cache_has_it(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    stage.overlay.record_write(WEB, an_object(7))
    assert stage.seen() == 7
    stage.cache.see(an_object(6))
    assert stage.seen() == 7
    stage.cache.see(an_object(8))
    assert stage.seen() == 8
    assert stage.is_idle()


def test_a_confirmed_response_is_announced_once(stage: Stage) -> None:
    stage.overlay.record_write(WEB, an_object(7))
    stage.cache.see(an_object(7))
    assert stage.changes == [(None, 7)]


def test_a_response_is_indexed_by_its_own_owners_not_by_those_of_the_cache(stage: Stage) -> None:
    stage.cache.see(an_object(5, **owned_by("old", "kept")))
    stage.overlay.record_write(WEB, an_object(7, **owned_by("kept", "new")))
    keys = [set(stage.overlay.indexed("owner", uid)) for uid in ("old", "kept", "new")]
    assert keys == [set(), {WEB}, {WEB}]
    stage.cache.see(an_object(8, **owned_by("old")))
    assert [set(stage.overlay.indexed("owner", uid)) for uid in ("old", "kept", "new")] == [{WEB}, set(), set()]
    assert stage.is_idle()


def test_a_response_is_unconfirmed_until_the_cache_has_it(stage: Stage) -> None:
    assert stage.overlay.unconfirmed() == []
    stage.overlay.record_write(WEB, an_object(7))
    assert stage.overlay.unconfirmed() == [WEB]
    stage.cache.see(an_object(7))
    assert stage.overlay.unconfirmed() == []
    stage.overlay.record_delete(WEB, "u1")
    assert stage.overlay.unconfirmed() == [], "nothing is shown that the cache lacks"


def test_a_response_for_an_object_that_came_and_went_unseen_ends_with_the_relist_and_is_announced(stage: Stage) -> None:
    stage.overlay.record_write(WEB, an_object(7, **owned_by("parent")))
    stage.cache.relist(20)
    assert (stage.seen(), stage.changes) == (None, [(7, None)])
    assert set(stage.overlay.indexed("owner", "parent")) == set()
    assert stage.is_idle()


@pytest.mark.parametrize("resource_version", [7, 8])
def test_a_response_for_an_object_outside_the_selection_ends_once_the_cache_is_past_it(
    stage: Stage, resource_version: int
) -> None:
    stage.overlay.record_write(WEB, an_object(7))
    stage.cache.move(6)
    assert (stage.seen(), stage.changes) == (7, [])
    stage.cache.move(resource_version)
    assert (stage.seen(), stage.changes) == (None, [(7, None)])
    assert stage.is_idle()


def test_a_response_about_the_previous_object_ends_when_the_next_one_is_seen(stage: Stage) -> None:
    stage.overlay.record_write(WEB, an_object(7, "u1", **owned_by("first")))
    stage.cache.relist(12, an_object(9, "u2", **owned_by("second")))
    assert stage.seen() == 9
    assert stage.changes == [(None, 9), (7, 9)], "subscribers that saw the first object get its end"
    assert stage.is_idle()


def test_the_write_that_ends_an_object_hides_it_before_the_cache_sees_the_end(stage: Stage) -> None:
    stage.cache.see(an_object(5, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"], **owned_by("parent")))
    stage.overlay.record_write(
        WEB, an_object(6, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0)
    )
    assert (stage.seen(), set(stage.overlay.keys()), stage.overlay.indexed("owner", "parent")) == (None, set(), set())
    stage.cache.see(an_object(8, uid="u2"))
    assert stage.seen() == 8
    assert stage.is_idle()


def test_the_end_of_a_hidden_object_that_the_cache_never_had_is_announced(stage: Stage) -> None:
    stage.overlay.record_write(WEB, an_object(7))
    stage.overlay.record_absence(WEB, "u1")
    assert stage.changes == []
    stage.cache.relist(20)
    assert stage.changes == [(7, None)]
    assert stage.is_idle()


def test_absence_is_about_one_uid(stage: Stage) -> None:
    stage.cache.see(an_object(5, "u1"))
    stage.overlay.record_absence(WEB, "u0")
    assert stage.seen() == 5
    assert stage.is_idle()


def test_a_sent_delete_is_remembered_until_its_effect_is_seen(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    stage.overlay.record_delete(WEB, "u1")
    assert stage.overlay.is_delete_sent(WEB, "u1")
    assert not stage.overlay.is_delete_sent(WEB, "u2")
    stage.cache.see(an_object(6))
    assert stage.overlay.is_delete_sent(WEB, "u1")
    stage.cache.see(an_object(7, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"]))
    assert not stage.overlay.is_delete_sent(WEB, "u1")
    assert stage.is_idle()


@pytest.mark.parametrize("uid", ["u1", "u2"], ids=["gone", "another of its name"])
def test_a_delete_response_after_its_effect_was_seen_leaves_nothing(stage: Stage, uid: str) -> None:
    stage.cache.see(an_object(5, "u1"))
    stage.cache.lose(an_object(6, "u1"))
    if uid != "u1":
        stage.cache.see(an_object(8, uid))
    stage.overlay.record_delete(WEB, "u1")
    assert not stage.overlay.is_delete_sent(WEB, "u1")
    assert stage.is_idle()


def test_a_read_object_outside_the_selection_is_shown_until_the_cache_moves_and_its_end_is_announced(
    stage: Stage,
) -> None:
    stage.cache.move(100)
    stage.overlay.record_read(WEB, an_object(7))
    stage.overlay.record_delete(WEB, "u1")
    assert (stage.seen(), stage.overlay.is_delete_sent(WEB, "u1")) == (7, True)
    stage.cache.move(101)
    assert (stage.seen(), stage.overlay.is_delete_sent(WEB, "u1"), stage.changes) == (None, False, [(7, None)])
    assert stage.is_idle()


def test_a_read_is_not_shown_when_the_cache_is_as_new(stage: Stage) -> None:
    stage.cache.see(an_object(7))
    stage.overlay.record_read(WEB, an_object(7))
    assert stage.is_idle()


def test_a_delete_of_an_object_being_deleted_is_not_remembered(stage: Stage) -> None:
    stage.cache.see(an_object(5, **DELETING))
    stage.overlay.record_delete(WEB, "u1")
    assert stage.is_idle()


def test_an_error_in_a_subscriber_does_not_keep_a_change_from_the_others(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(key: Key, before: bytes | None, after: bytes | None) -> None:
        raise RuntimeError("bug")

    events: list[Key] = []
    stage.overlay._callbacks.insert(0, broken)
    stage.overlay.subscribe(lambda key, before, after: events.append(key))
    stage.cache.see(an_object(5))
    assert events == [WEB]
    assert "cache subscriber failed" in caplog.text


class Answering:
    """An Api with at most one object."""

    def __init__(self, body: dict[str, Any] | None) -> None:
        self._body = body

    async def get(self, resource: Any, key: Key) -> dict[str, Any]:
        return self._answer()

    async def create(self, resource: Any, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._answer()

    async def patch(self, resource: Any, key: Key, patch: Any, **options: Any) -> dict[str, Any]:
        return self._answer()

    async def delete(self, resource: Any, key: Key, **options: Any) -> None:
        self._answer()

    def _answer(self) -> dict[str, Any]:
        if self._body is None:
            raise NotFound("no such object")
        return self._body


@pytest.mark.parametrize("verb", ["get", "create", "patch"])
async def test_every_response_is_recorded(stage: Stage, verb: str) -> None:
    api = ReadYourWritesApi(Answering(an_object(7)), {POD: stage.overlay})
    match verb:
        case "get":
            await api.get(POD, WEB)
        case "create":
            await api.create(POD, "default", {})
        case _:
            await api.patch(POD, WEB, {})
    assert stage.seen() == 7


@pytest.mark.parametrize("is_cached", [False, True], ids=["own create", "cached"])
async def test_a_quorum_read_without_a_result_hides_the_object_shown_at_its_start(
    stage: Stage, is_cached: bool
) -> None:
    if is_cached:
        stage.cache.see(an_object(7))
    else:
        stage.overlay.record_write(WEB, an_object(7))
    with pytest.raises(NotFound):
        await ReadYourWritesApi(Answering(None), {POD: stage.overlay}).get(POD, WEB)
    assert stage.seen() is None


async def test_a_quorum_read_without_a_result_does_not_hide_an_object_created_since_its_start(stage: Stage) -> None:
    class Late(Answering):
        async def get(self, resource: Any, key: Key) -> dict[str, Any]:
            stage.overlay.record_write(WEB, an_object(9, "u2"))
            return await super().get(resource, key)

    stage.cache.see(an_object(5, "u1"))
    with pytest.raises(NotFound):
        await ReadYourWritesApi(Late(None), {POD: stage.overlay}).get(POD, WEB)
    assert stage.seen() == 9


@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "came and went meanwhile"])
async def test_a_quorum_read_answered_after_the_object_was_deleted_does_not_bring_it_back(
    stage: Stage, is_known: bool
) -> None:
    """Another worker deletes the object while the response is on its way. If shown, it would stay until the cache
    moves.
    """

    class Overtaken(Answering):
        async def get(self, resource: Any, key: Key) -> dict[str, Any]:
            stage.cache.see(an_object(7))
            stage.cache.lose(an_object(8, **DELETING))
            return await super().get(resource, key)

    if is_known:
        stage.cache.see(an_object(7))
    await ReadYourWritesApi(Overtaken(an_object(7)), {POD: stage.overlay}).get(POD, WEB)
    assert stage.seen() is None
    assert stage.is_idle()


async def test_a_delete_that_gets_not_found_hides_that_object(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    with pytest.raises(NotFound):
        await ReadYourWritesApi(Answering(None), {POD: stage.overlay}).delete(POD, WEB, uid="u1")
    assert stage.seen() is None


async def test_an_accepted_delete_is_remembered(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    await ReadYourWritesApi(Answering(an_object(5)), {POD: stage.overlay}).delete(POD, WEB, uid="u1")
    assert stage.overlay.is_delete_sent(WEB, "u1")
