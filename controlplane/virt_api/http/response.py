# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses: JSON documents, and a Status object for every failure. Pure values; server sends them."""

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

# Reasons of Kubernetes that differ from the phrase of the HTTP code.
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

_CODES: tuple[tuple[type[ApiError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (AlreadyExists, 409),
    (Invalid, 422),
    # Our own account was refused, not the caller's: the caller cannot fix it.
    (Forbidden, 500),
    (Throttled, 429),
    (WebhookFailed, 500),
    (Unavailable, 503),
)


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response."""

    code: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    charset: str | None = None
    """Of a text."""


def document(value: Any) -> Response:
    """Respond with a JSON document."""
    return Response(body=msgspec.json.encode(value))


def metrics(page: bytes) -> Response:
    """Respond with a page of metrics."""
    return Response(body=page, content_type="text/plain")


def accepted() -> Response:
    """Respond 202 without a body, as KubeVirt does for what a controller carries out."""
    return Response(code=202)


def failure(
    code: int, message: str, *, details: Json | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Respond with a Status that says what went wrong."""
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
    return Response(code, msgspec.json.encode(status), headers=headers or {})


def plain_failure(message: str) -> Response:
    """Respond 500 with plain text, as upstream does where its clients know no other failure."""
    return Response(500, f"{message}\n".encode(), "text/plain")


def conflict(kind: str, name: str, why: str) -> Response:
    """Respond 409 in Kubernetes' words; kind is the singular of the resource."""
    message = f'Operation cannot be fulfilled on {kind}.kubevirt.io "{name}": {why}'
    return failure(409, message, details={"name": name, "group": "kubevirt.io", "kind": kind})


def not_found(kind: str, name: str) -> Response:
    """Respond 404 in Kubernetes' words; kind is the singular of the resource."""
    details = {"name": name, "group": "kubevirt.io", "kind": kind}
    return failure(404, f'{kind}.kubevirt.io "{name}" not found', details=details)


def api_failure(error: ApiError) -> Response:
    """Respond to an error of the API server."""
    code = next((code for kind, code in _CODES if isinstance(error, kind)), 500)
    return failure(code, str(error), headers={"Retry-After": "1"} if code == 503 else None)
