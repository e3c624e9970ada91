# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers: JSON, Status objects for everything that went wrong. Pure values; server sends them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec

from controlplane.engine.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WebhookFailed,
)

Json = dict[str, Any]

JSON = "application/json"

# Kubernetes' own words for a code, where they are not those of HTTP.
_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    500: "InternalError",
    503: "ServiceUnavailable",
}

_BY_ERROR: tuple[tuple[type[ApiError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (AlreadyExists, 409),
    (Invalid, 422),
    # Our own account was refused, not the caller: nothing that the caller can mend.
    (Forbidden, 500),
    (Throttled, 429),
    (WebhookFailed, 500),
    (Unavailable, 503),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer."""

    code: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def document(value: Any) -> Answer:
    """Answer with a JSON document."""
    return Answer(body=msgspec.json.encode(value))


def text(value: str) -> Answer:
    """Answer with plain text."""
    return Answer(body=value.encode(), content_type="text/plain")


def accepted() -> Answer:
    """Answer 202 without a body, as KubeVirt does for what a controller carries out."""
    return Answer(code=202)


def failure(
    code: int, message: str, *, details: Json | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Answer with a Status that says what went wrong."""
    reason = _REASONS.get(code) or HTTPStatus(code).phrase.replace(" ", "")
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details:
        status["details"] = details
    return Answer(code, msgspec.json.encode(status), headers=headers or {})


def conflict(kind: str, name: str, why: str) -> Answer:
    """Answer 409 in the usual words; kind is the singular of the resource."""
    message = f'Operation cannot be fulfilled on {kind}.kubevirt.io "{name}": {why}'
    return failure(409, message, details={"name": name, "group": "kubevirt.io", "kind": kind})


def not_found(kind: str, name: str) -> Answer:
    """Answer 404 in the usual words."""
    details = {"name": name, "group": "kubevirt.io", "kind": kind}
    return failure(404, f'{kind}.kubevirt.io "{name}" not found', details=details)


def api_failure(error: ApiError) -> Answer:
    """Answer for what the API server told us."""
    code = next((code for kind, code in _BY_ERROR if isinstance(error, kind)), 500)
    return failure(code, str(error), headers={"Retry-After": "1"} if code == 503 else None)
