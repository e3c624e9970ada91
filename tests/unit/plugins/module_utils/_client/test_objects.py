# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One check tells objects of the API from other responses, with a message."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import objects, streams
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api, Resource
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import ApiError, Unavailable
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.waiter import Verdict, Waiter

THINGS = Resource("v1", "things", "Thing", "default")
GOOD: dict[str, Any] = {
    "metadata": {
        "name": "a",
        "namespace": "default",
        "resourceVersion": "1",
        "labels": {"a": "b"},
        "annotations": None,
        "ownerReferences": [{"uid": "u"}],
    },
    "spec": {},
    "status": {"conditions": [{"type": "Ready"}]},
}
ODD: dict[str, Any] = {
    "a web service's own": {"error": "no route"},
    "a list": [],
    "no name": {**GOOD, "metadata": {"namespace": "default"}},
    "a name that is no text": {**GOOD, "metadata": {"name": ["a"]}},
    "a name of no characters": {**GOOD, "metadata": {"name": "\ud800"}},
    "a version of no characters": {**GOOD, "metadata": {"name": "a", "resourceVersion": "\ud800"}},
    "metadata that is none": {**GOOD, "metadata": "a"},
    "labels that are none": {**GOOD, "metadata": {"name": "a", "labels": ["x"]}},
    "annotations that are none": {**GOOD, "metadata": {"name": "a", "annotations": "x"}},
    "an owner that is none": {**GOOD, "metadata": {"name": "a", "ownerReferences": [None]}},
    "a spec that is none": {**GOOD, "spec": "x"},
    "a status that is none": {**GOOD, "status": ["x"]},
    "conditions that are none": {**GOOD, "status": {"conditions": "x"}},
    "a condition that is none": {**GOOD, "status": {"conditions": [None]}},
}
CASES = pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())


def answering(*answers: Any) -> Api:
    """Return an API that gives these responses, the last one for ever."""
    given = itertools.chain(answers, itertools.repeat(answers[-1]))
    return Api(SimpleNamespace(request=lambda *_asked: (200, next(given)), deadline=None))  # type: ignore[arg-type]


def test_an_object_of_the_api_is_accepted() -> None:
    assert objects.flaw(GOOD) is None
    assert objects.flaw({"metadata": {"name": "a"}}) is None


@CASES
def test_a_malformed_object_is_no_response(odd: Any) -> None:
    with pytest.raises(Unavailable, match="unexpected response"):
        answering(odd).get(THINGS, "a")
    with pytest.raises(Unavailable, match="unexpected response"):
        answering(odd).apply(THINGS, {"metadata": {"name": "a"}})


@CASES
def test_a_malformed_object_is_no_item(odd: Any) -> None:
    with pytest.raises(Unavailable, match="unexpected response"):
        answering({"metadata": {}, "items": [odd]}).list(THINGS)


@CASES
def test_a_malformed_object_is_no_event(odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"type": "MODIFIED", "object": odd}).encode()
    monkeypatch.setattr(streams, "lines", lambda *_asked: (200, iter([line])))
    with pytest.raises(Unavailable, match="unexpected response"):
        list(answering(odd).watch(THINGS, fields=None, version="1", timeout_seconds=1))


@pytest.mark.parametrize("code", [[1], {}, "x", None, 0])
def test_an_error_event_without_a_code_counts_as_500(code: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = json.dumps({"type": "ERROR", "object": {"metadata": {}, "code": code}}).encode()
    monkeypatch.setattr(streams, "lines", lambda *_asked: (200, iter([line])))
    with pytest.raises(ApiError) as caught:
        list(answering({}).watch(THINGS, fields=None, version="1", timeout_seconds=1))
    assert caught.value.status == 500


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"a": NaN}', b'{"a": -Infinity}', b"\xff", b"{"])
def test_malformed_json_is_a_value_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        objects.json_of(raw)


def test_a_list_whose_continue_token_repeats_ends() -> None:
    with pytest.raises(Unavailable, match="the same page twice"):
        answering({"metadata": {"continue": "again"}, "items": []}).list(THINGS)


def test_a_collection_without_a_version_is_read_again_after_a_pause() -> None:
    """It cannot be watched."""
    pauses: list[float] = []
    waiter = Waiter(
        answering({"metadata": {}, "items": [GOOD]}),
        THINGS,
        lambda _name, _obj: Verdict(done=len(pauses) == 3),
        deadline=100,
        clock=lambda: 0,
        sleep=pauses.append,
    )
    assert waiter.until(["a"])["a"].verdict.done
    assert min(pauses) >= 0.8
