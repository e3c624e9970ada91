# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from controlplane.api.admission.problem import MAX_PROBLEMS, Problem
from controlplane.api.admission.review import (
    MAX_BYTES,
    UnreadableReviewError,
    parse_review,
    render_mutation,
    render_validation,
)
from controlplane.api.admission.verdict import Request, Verdict

REQUEST = Request(operation="CREATE", kind="VirtualMachine", user="u", uid="uid-1", obj={"metadata": {"name": "web"}})


def body(obj: Any, old: Any = None, **more: Any) -> bytes:
    request = {
        "uid": "uid-1",
        "kind": {"group": "kubevirt.io", "version": "v1", "kind": "VirtualMachine"},
        "operation": "CREATE",
        "userInfo": {"username": "u", "groups": []},
        "object": obj,
        "oldObject": old,
        **more,
    }
    return json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}).encode()


def nested(depth: int) -> bytes:
    return body({"spec": 0}).replace(b'"spec": 0', b'"spec": ' + b'{"a":' * depth + b"0" + b"}" * depth)


def test_a_request_is_decoded() -> None:
    assert parse_review(body({"spec": {}}, subResource="status")) == Request(
        operation="CREATE", kind="VirtualMachine", user="u", uid="uid-1", obj={"spec": {}}, subresource="status"
    )


@pytest.mark.parametrize(
    ("sent", "words", "code"),
    [
        pytest.param(nested(70), "nesting deeper than 64", 400, id="deep"),
        pytest.param(nested(10_000), "nesting deeper than 64", 400, id="very deep"),
        pytest.param(nested(200_000), "nesting deeper than 64", 400, id="deeper than any stack"),
        pytest.param(body({"spec": {"volumes": [0] * 1001}}), "spec.volumes: has 1001 items", 400, id="long list"),
        pytest.param(body({"x": "y" * MAX_BYTES}), f"at most {MAX_BYTES}", 413, id="large"),
        pytest.param(body([]), "must be a JSON object", 400, id="list"),
        pytest.param(body("x"), "must be a JSON object", 400, id="text"),
        pytest.param(body({})[:-5], "not an AdmissionReview", 400, id="cut"),
        pytest.param(body({"x": "?"}).replace(b"?", b"\xff"), "not an AdmissionReview", 400, id="no UTF-8"),
        pytest.param(b'{"request": {"uid": "uid-1", "kind": "\xff"}}', "not an Adm", 400, id="no UTF-8 of its own"),
        pytest.param(b'{"request": {"uid": "uid-1"}}', "not an AdmissionReview", 400, id="no request"),
    ],
)
def test_a_request_too_big_deep_or_malformed_is_refused(sent: bytes, words: str, code: int) -> None:
    with pytest.raises(UnreadableReviewError, match=words) as raised:
        parse_review(sent)

    assert raised.value.answer is not None
    response = raised.value.answer["response"]
    assert (response["uid"], response["allowed"], response["status"]["code"]) == ("uid-1", False, code)


@pytest.mark.parametrize(
    ("obj", "field", "words"),
    [
        ({"spec": {"volumes": [0] * 1001}}, "spec.volumes", "has 1001 items"),
        ({"spec": {"a": json.loads("[" * 70 + "]" * 70)}}, "spec.a", "nesting deeper than 64"),
        (json.loads('{"a":' * 70 + "1" + "}" * 70), ".".join("a" * 40) + ".", "nesting deeper than 64"),
    ],
)
def test_an_object_too_deep_or_long_is_a_cause_with_its_field(obj: Any, field: str, words: str) -> None:
    """Clients show causes and tests compare them; an endless path is cut."""
    with pytest.raises(UnreadableReviewError) as raised:
        parse_review(body(obj))

    assert raised.value.answer is not None
    (cause,) = raised.value.answer["response"]["status"]["details"]["causes"]
    assert (cause["field"], cause["reason"]) == (field, "FieldValueInvalid")
    assert words in cause["message"]


@pytest.mark.parametrize("old", [{"spec": {"volumes": [0] * 1001}}, [], "x"], ids=["long list", "list", "text"])
def test_an_invalid_stored_object_can_be_repaired(old: Any) -> None:
    read = parse_review(body({"spec": {}}, old))

    assert (read.obj, read.old) == ({"spec": {}}, old if isinstance(old, dict) else None)


@pytest.mark.parametrize("sent", [b"", b"[]", b"\xff", b"null"])
def test_a_body_that_is_no_review_is_an_error(sent: bytes) -> None:
    with pytest.raises(UnreadableReviewError) as raised:
        parse_review(sent)

    assert raised.value.answer is None


def test_a_refusal_says_when_the_search_for_problems_stopped_early() -> None:
    problems = tuple(Problem(f"spec.a[{number}]", "is wrong; right it") for number in range(MAX_PROBLEMS))

    status = render_validation(REQUEST, Verdict(problems=problems))["response"]["status"]

    assert status["message"].endswith(f"and at least {MAX_PROBLEMS - 20} more problems")


def test_a_refusal_lists_fields_and_counts_the_rest() -> None:
    problems = tuple(Problem(f"spec.a[{number}]", "is wrong; right it") for number in range(23))

    response = render_validation(REQUEST, Verdict(problems=problems, warnings=("old",)))["response"]

    assert response["allowed"] is False
    assert response["warnings"] == ["old"]
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    assert response["status"]["message"].startswith("spec.a[0]: is wrong; right it; spec.a[1]")
    assert response["status"]["message"].endswith("and 3 more problems")
    assert response["status"]["details"]["name"] == "web"
    assert len(response["status"]["details"]["causes"]) == 20
    assert response["status"]["details"]["causes"][0] == {
        "field": "spec.a[0]",
        "message": "is wrong; right it",
        "reason": "FieldValueInvalid",
    }


@pytest.mark.parametrize("metadata", [None, [], {}, {"name": 7}], ids=repr)
def test_an_object_without_a_readable_name_is_refused_too(metadata: Any) -> None:
    request = Request(operation="CREATE", kind="VirtualMachine", user="u", uid="uid-1", obj={"metadata": metadata})

    response = render_validation(request, Verdict(problems=(Problem("metadata", "is wrong"),)))["response"]

    assert response["status"]["details"]["name"] == ""


def test_no_change_is_no_patch() -> None:
    assert render_mutation(REQUEST, Verdict())["response"] == {"uid": "uid-1", "allowed": True}


def test_changes_are_sent_as_a_json_patch() -> None:
    before = {"metadata": {"a/b~": "1", "gone": 1}, "spec": {"list": [1], "same": {"x": 1}, "null": None}}
    after = {"metadata": {"a/b~": "2"}, "spec": {"list": [1, 2], "same": {"x": 1}, "null": {"y": 1}, "new": {}}}
    request = Request(operation="CREATE", kind="VirtualMachine", user="u", uid="uid-1", obj=before)

    response = render_mutation(request, Verdict(patched=after))["response"]

    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "remove", "path": "/metadata/gone"},
        {"op": "replace", "path": "/metadata/a~1b~0", "value": "2"},
        {"op": "replace", "path": "/spec/list", "value": [1, 2]},
        {"op": "replace", "path": "/spec/null", "value": {"y": 1}},
        {"op": "add", "path": "/spec/new", "value": {}},
    ]
