# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When an expectation is recorded, and when it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from controlplane.engine.expectations import (
    CachedVersion,
    Expectation,
    StoredObject,
    advance,
    is_last_state,
    read_stored,
    read_version,
)

STAMP = "2026-01-01T00:00:00Z"
ANSWER = StoredObject(version=10, raw=b"{}", owners=frozenset(), is_deleting=False)
ANSWERED = Expectation("u", until=10, answer=ANSWER)
SENT = Expectation("u", until=10, is_delete_sent=True)
GONE = Expectation("u", until=10, is_gone=True)
HERE, GOING = CachedVersion(8, "u", is_deleting=False), CachedVersion(8, "u", is_deleting=True)
OTHER = CachedVersion(8, "another", is_deleting=False)


def an_object(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "7", "uid": "u", **metadata}}


def test_a_state_has_version_uid_and_whether_it_is_being_deleted() -> None:
    assert read_version(msgspec.json.encode(an_object())) == CachedVersion(7, "u", is_deleting=False)
    assert read_version(msgspec.json.encode(an_object(deletionTimestamp=STAMP))) == CachedVersion(
        7, "u", is_deleting=True
    )


@pytest.mark.parametrize("raw", [b"{}", b"[]", b"{", b'{"metadata": {"uid": "u"}}'])
def test_an_object_without_a_version_is_an_error(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        read_version(raw)


def test_a_response_is_decoded() -> None:
    body = an_object(ownerReferences=[{"uid": "a"}, {"uid": "b"}], deletionTimestamp=STAMP)
    assert read_stored(body) == StoredObject(7, msgspec.json.encode(body), frozenset({"a", "b"}), is_deleting=True)
    assert read_stored(an_object()).owners == frozenset()
    assert not read_stored(an_object()).is_deleting


@pytest.mark.parametrize(
    ("metadata", "is_last"),
    [
        ({}, False),
        ({"deletionTimestamp": STAMP}, True),
        ({"deletionTimestamp": STAMP, "finalizers": ["x"]}, False),
        ({"deletionTimestamp": STAMP, "finalizers": []}, True),
        ({"deletionTimestamp": STAMP, "deletionGracePeriodSeconds": 30}, False),
        ({"deletionTimestamp": STAMP, "deletionGracePeriodSeconds": 0}, True),
        ({"finalizers": []}, False),
    ],
)
def test_the_write_that_removes_the_last_finalizer_ends_an_object(metadata: dict[str, Any], is_last: bool) -> None:
    assert is_last_state(an_object(**metadata)) is is_last


@pytest.mark.parametrize(("resource_version", "is_kept"), [(9, True), (10, False), (11, False)])
def test_a_response_ends_when_the_cache_reaches_its_version(resource_version: int, is_kept: bool) -> None:
    assert (advance(ANSWERED, None, resource_version) is not None) is is_kept


@pytest.mark.parametrize(
    ("cached", "resource_version", "is_kept"),
    [
        (HERE, 9, True),
        (HERE, 11, True),
        (GOING, 9, False),
        (GOING, 11, False),
        (None, 11, False),
        (OTHER, 11, False),
    ],
)
def test_a_sent_delete_ends_when_the_cache_shows_it_or_the_object_is_gone(
    cached: CachedVersion | None, resource_version: int, is_kept: bool
) -> None:
    assert (advance(SENT, cached, resource_version) is not None) is is_kept


def test_a_sent_delete_depends_on_a_response_newer_than_the_cache() -> None:
    created_and_deleted = replace(SENT, answer=ANSWER)
    expectation = advance(created_and_deleted, None, 9)
    assert expectation is not None
    assert expectation.is_delete_sent
    answered = replace(SENT, answer=replace(ANSWER, is_deleting=True))
    expectation = advance(answered, HERE, 9)
    assert expectation is not None
    assert not expectation.is_delete_sent, "the response is newer than the cache and has a deletionTimestamp"


@pytest.mark.parametrize(
    ("cached", "resource_version", "is_kept"),
    [
        (HERE, 9, True),
        (HERE, 11, True),
        (None, 9, True),
        (None, 10, False),
        (OTHER, 9, True),
        (OTHER, 11, False),
    ],
    ids=[
        "shown, behind",
        "shown, though it has come as far",
        "not shown yet: it may come",
        "never to come",
        "another, behind",
        "another",
    ],
)
def test_a_gone_object_stays_hidden_while_the_cache_shows_or_may_show_it(
    cached: CachedVersion | None, resource_version: int, is_kept: bool
) -> None:
    assert (advance(GONE, cached, resource_version) is not None) is is_kept


def test_a_gone_object_is_not_shown() -> None:
    assert ANSWERED.shown is ANSWER
    assert replace(ANSWERED, is_gone=True).shown is None
