# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode an AdmissionReview (admission.k8s.io/v1) into a Request, and encode a Verdict. Pure.

The API server sends the body, but any user writes the object in it. Size, depth and list lengths are limited before
other code reads it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from controlplane.api.admission.problem import MAX_PROBLEMS, Problem
from controlplane.api.admission.rules import Json
from controlplane.api.admission.verdict import Request, Verdict
from controlplane.api.schema.bounds import MAX_ITEMS

MAX_BYTES = 512 * 1024
"""Limit of one object."""
MAX_DEPTH = 64
MAX_CAUSES = 20
"""Problems that a response lists. The others are counted."""
_SHOWN_PATH = 80
"""Characters of a path that a response shows."""
_UID = re.compile(rb'"uid"\s*:\s*"([0-9A-Za-z-]{1,64})"')
_SEARCHED_BYTES = 4096
"""The UID is searched here. An API server writes a request's fields before its objects."""


class UnreadableReviewError(ValueError):
    """The body contains no request that can be reviewed. `answer`: the response, with status 200, or None."""

    def __init__(self, message: str, *, uid: str = "", code: int = 400, at: str = "") -> None:
        """message: what cannot be read. at: path of the field, if it is about one."""
        where = at[:_SHOWN_PATH]
        super().__init__(f"{where}: {message}" if where else message)
        refusal = _refusal(uid, code, "BadRequest", str(self))
        if where:
            refusal["status"]["details"] = {"causes": [_cause(Problem(where, message))]}
        self.answer = _envelope(refusal) if uid else None


class _Kind(msgspec.Struct):
    kind: str = ""


class _User(msgspec.Struct):
    username: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    kind: _Kind
    operation: str
    user_info: _User = msgspec.field(default_factory=_User)
    sub_resource: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct):
    request: _Request


_decoder = msgspec.json.Decoder(_Review)


def parse_review(body: bytes) -> Request:
    """Decode a request. UnreadableReviewError has the response when the object is too large or too deep."""
    match = _UID.search(body[:_SEARCHED_BYTES])
    uid = match.group(1).decode() if match else ""
    try:
        request = _decoder.decode(body).request
        obj = _object(request.object, request.uid)
        old = _old(request.old_object)
    except RecursionError as error:
        raise UnreadableReviewError(f"nesting deeper than {MAX_DEPTH}; flatten the object", uid=uid) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableReviewError(f"not an AdmissionReview: {error}", uid=uid) from error
    return Request(
        operation=request.operation,
        kind=request.kind.kind,
        user=request.user_info.username,
        uid=request.uid,
        obj=obj,
        old=old,
        subresource=request.sub_resource,
    )


def _object(raw: msgspec.Raw, uid: str) -> Json | None:
    data = bytes(raw)
    if len(data) > MAX_BYTES:
        raise UnreadableReviewError(f"object has {len(data)} bytes, at most {MAX_BYTES} are allowed", uid=uid, code=413)
    value = msgspec.json.decode(data)
    if value is not None and not isinstance(value, dict):
        raise UnreadableReviewError("object must be a JSON object", uid=uid)
    check_growth(value, uid)
    return value


def _old(raw: msgspec.Raw) -> Json | None:
    """Decode the stored object, without limits: a user must be able to repair or delete it, whatever its shape."""
    value = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else None


def check_growth(value: Any, uid: str = "") -> None:
    """Raise UnreadableReviewError for a value that is nested too deep or has a list that is too long."""
    todo: list[tuple[Any, int, str]] = [(value, 1, "")]
    while todo:
        member, depth, path = todo.pop()
        if not isinstance(member, dict | list):
            continue
        if depth > MAX_DEPTH:
            raise UnreadableReviewError(f"nesting deeper than {MAX_DEPTH}; flatten the object", uid=uid, at=path)
        if isinstance(member, list):
            if len(member) > MAX_ITEMS:
                message = f"has {len(member)} items, at most {MAX_ITEMS} are allowed; remove some"
                raise UnreadableReviewError(message, uid=uid, at=path)
            todo.extend((child, depth + 1, path) for child in member)
        else:
            todo.extend(
                (child, depth + 1, f"{path}.{name[:64]}" if path else name[:64]) for name, child in member.items()
            )


def render_mutation(request: Request, verdict: Verdict) -> Json:
    """Encode the response of a mutating webhook: the refusal, or the defaults as a JSON patch."""
    answer = _answer(request, verdict)
    if verdict.allowed and verdict.patched is not None and request.obj is not None:
        patch = list(_patch(request.obj, verdict.patched, ""))
        answer["patchType"] = "JSONPatch"
        answer["patch"] = base64.b64encode(msgspec.json.encode(patch)).decode()
    return _envelope(answer)


def render_validation(request: Request, verdict: Verdict) -> Json:
    """Encode the response of a validating webhook."""
    return _envelope(_answer(request, verdict))


def _answer(request: Request, verdict: Verdict) -> Json:
    warnings = {"warnings": list(verdict.warnings)} if verdict.warnings else {}
    if verdict.allowed:
        return {"uid": request.uid, "allowed": True, **warnings}
    shown = verdict.problems[:MAX_CAUSES]
    more = len(verdict.problems) - len(shown)
    at_least = "at least " if len(verdict.problems) >= MAX_PROBLEMS else ""
    message = "; ".join([*map(str, shown), *([f"and {at_least}{more} more problems"] if more else [])])
    reason = {403: "Forbidden", 503: "ServiceUnavailable"}.get(verdict.code, "Invalid")
    refusal = _refusal(request.uid, verdict.code, reason, message)
    refusal["status"]["details"] = {
        "name": _name(request),
        "kind": request.kind,
        "causes": [_cause(problem) for problem in shown],
    }
    return {**refusal, **warnings}


def _cause(problem: Problem) -> Json:
    return {"field": problem.path, "message": problem.message, "reason": problem.reason}


def _name(request: Request) -> str:
    """Return the object's name for kubectl's error. It may be the invalid field itself, so any type can occur."""
    metadata = (request.obj or {}).get("metadata")
    name = (metadata.get("name") or metadata.get("generateName")) if isinstance(metadata, dict) else ""
    return name[:253] if isinstance(name, str) else ""


def _refusal(uid: str, code: int, reason: str, message: str) -> Json:
    status: Json = {"status": "Failure", "code": code, "reason": reason, "message": message}
    return {"uid": uid, "allowed": False, "status": status}


def _envelope(response: Json) -> Json:
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _patch(before: Any, after: Any, path: str) -> Iterator[Json]:
    """Yield the JSON patch from before to after: objects by member, other values as a whole."""
    if before == after:
        return
    if not isinstance(before, dict) or not isinstance(after, dict):
        yield {"op": "replace", "path": path, "value": after}
        return
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
    for name, value in after.items():
        here = f"{path}/{_escaped(name)}"
        if name not in before:
            yield {"op": "add", "path": here, "value": value}
        else:
            yield from _patch(before[name], value, here)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
