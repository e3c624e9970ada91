# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Never decide on a view older than one's own writes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.resources import POD, Key
from controlplane.engine.errors import NotFound
from controlplane.engine.overlay import GHOST_SECONDS, Overlay, RememberingApi

WEB = Key("default", "web")


@dataclass
class Clock:
    seconds: float = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds


@dataclass
class FakeCache:
    """A cache that is told what it sees."""

    raw: dict[Key, bytes] = field(default_factory=dict)
    synced: bool = True
    callbacks: list[Callable[[Key, bytes | None, bytes | None], None]] = field(default_factory=list)

    def get(self, key: Key) -> bytes | None:
        return self.raw.get(key)

    def keys(self) -> Collection[Key]:
        return self.raw.keys()

    def indexed(self, index: str, value: str) -> Collection[Key]:
        return []

    def subscribe(self, callback: Callable[[Key, bytes | None, bytes | None], None]) -> None:
        self.callbacks.append(callback)

    def see(self, body: dict[str, Any] | None) -> None:
        before = self.raw.pop(WEB, None)
        if body is not None:
            self.raw[WEB] = msgspec.json.encode(body)
        for callback in self.callbacks:
            callback(WEB, before, self.raw.get(WEB))


def an_object(version: int, uid: str = "u1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web", "namespace": "default", "uid": uid, "resourceVersion": str(version), **meta}}


@dataclass
class Stage:
    clock: Clock = field(default_factory=Clock)
    cache: FakeCache = field(default_factory=FakeCache)
    overlay: Overlay = field(init=False)

    def __post_init__(self) -> None:
        self.overlay = Overlay(self.cache, self.clock)

    def seen(self) -> int | None:
        raw = self.overlay.get(WEB)
        return None if raw is None else int(msgspec.json.decode(raw)["metadata"]["resourceVersion"])


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_an_answer_is_shown_until_the_cache_has_it(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    stage.overlay.note(WEB, an_object(7))
    assert stage.seen() == 7
    stage.cache.see(an_object(6))
    assert stage.seen() == 7
    stage.cache.see(an_object(8))
    assert stage.seen() == 8


def test_versions_are_numbers(stage: Stage) -> None:
    stage.cache.see(an_object(10))
    stage.overlay.note(WEB, an_object(9))
    assert stage.seen() == 10


def test_an_own_create_is_there_at_once_and_found_by_its_owner(stage: Stage) -> None:
    stage.overlay.note(WEB, an_object(7, ownerReferences=[{"uid": "parent"}]))
    assert (stage.seen(), set(stage.overlay.keys())) == (7, {WEB})
    assert (stage.overlay.indexed("owner", "parent"), stage.overlay.indexed("owner", "other")) == ({WEB}, set())


def test_an_object_that_came_and_went_is_forgotten(stage: Stage) -> None:
    stage.overlay.note(WEB, an_object(7))
    stage.cache.see(an_object(7))
    stage.cache.see(None)
    assert stage.seen() is None


def test_an_answer_that_is_never_confirmed_is_dropped_after_a_while(stage: Stage) -> None:
    stage.overlay.note(WEB, an_object(7))
    stage.clock.seconds = GHOST_SECONDS + 1
    assert stage.seen() is None


def test_the_write_that_ends_an_object_hides_it_before_the_cache_knows(stage: Stage) -> None:
    stage.cache.see(an_object(5, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"]))
    stage.overlay.note(WEB, an_object(6, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=0))
    assert stage.seen() is None
    stage.cache.see(an_object(8, uid="u2"))
    assert stage.seen() == 8


def test_a_pod_in_its_grace_period_is_not_gone(stage: Stage) -> None:
    stage.overlay.note(WEB, an_object(6, deletionTimestamp="2026-01-01T00:00:00Z", deletionGracePeriodSeconds=30))
    assert stage.seen() == 6


def test_a_delete_is_remembered_until_its_effect_is_seen(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    stage.overlay.note_delete(WEB, "u1")
    assert stage.overlay.is_delete_sent(WEB, "u1")
    assert not stage.overlay.is_delete_sent(WEB, "u2")
    stage.cache.see(an_object(6))
    assert stage.overlay.is_delete_sent(WEB, "u1")
    stage.cache.see(an_object(7, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"]))
    assert not stage.overlay.is_delete_sent(WEB, "u1")


class Answering:
    """An Api with one object, or none."""

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
async def test_every_answer_goes_into_the_overlay(stage: Stage, verb: str) -> None:
    api = RememberingApi(Answering(an_object(7)), {POD: stage.overlay})
    match verb:
        case "get":
            await api.get(POD, WEB)
        case "create":
            await api.create(POD, "default", {})
        case _:
            await api.patch(POD, WEB, {})
    assert stage.seen() == 7


async def test_a_quorum_read_that_finds_nothing_ends_a_ghost(stage: Stage) -> None:
    stage.overlay.note(WEB, an_object(7))
    with pytest.raises(NotFound):
        await RememberingApi(Answering(None), {POD: stage.overlay}).get(POD, WEB)
    assert stage.seen() is None


async def test_a_delete_that_finds_nothing_hides_that_very_object(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    with pytest.raises(NotFound):
        await RememberingApi(Answering(None), {POD: stage.overlay}).delete(POD, WEB, uid="u1")
    assert stage.seen() is None


async def test_a_delete_that_is_accepted_is_remembered(stage: Stage) -> None:
    stage.cache.see(an_object(5))
    await RememberingApi(Answering(an_object(5)), {POD: stage.overlay}).delete(POD, WEB, uid="u1")
    assert stage.overlay.is_delete_sent(WEB, "u1")
