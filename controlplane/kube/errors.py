# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Translate HTTP responses of the API server into controlplane.engine.errors."""

from __future__ import annotations

from typing import Any

import msgspec

from controlplane.engine.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WebhookFailed,
)

_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    406: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: Throttled,
}

_WEBHOOK = "failed calling webhook"  # the API server's message; its reason is InternalError as for any other fault
NOT_SERVED = "NotServed"  # our own reason of an Unavailable
ANSWER_TOO_LARGE = "AnswerTooLarge"  # our own: longer than most_bytes
NO_EVENT = "NoEvent"  # our own: a line of a watch without a readable object
IN_THE_WAY = frozenset({ANSWER_TOO_LARGE, NO_EVENT})  # a watch from the same resourceVersion ends with these again
RESOURCE_VERSION_TOO_LARGE = (
    "ResourceVersionTooLarge"  # the server's: it has not reached a resourceVersion of another server
)

MAX_MESSAGE_CHARACTERS = 2048  # a server may echo the request; that must not flood logs and conditions


class _Status(msgspec.Struct):
    """The fields of a meta/v1 Status that we read."""

    kind: str = ""
    code: int | None = None
    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


_decoder = msgspec.json.Decoder(_Status)


def translate(code: int, body: bytes, attempt: str, retry_after: str | None = None) -> ApiError:
    """Return the error for a response that is not 2xx. attempt names the request and the object.

    Unknown codes, and responses that are no Status (a proxy's HTML), are Unavailable: they say nothing about the
    object.
    """
    status = _parse(body)
    kind = _BY_CODE.get(code, Unavailable)
    if kind is Conflict and status.reason == "AlreadyExists":
        kind = AlreadyExists
    reason = status.reason
    if code == 500 and _WEBHOOK in status.message:
        kind = WebhookFailed
    if kind is NotFound and status.kind != "Status":
        # A 404 without a Status says nothing about the object: its group is not served (yet), or a proxy responded.
        # It must not count as "the object is gone".
        kind, reason = Unavailable, NOT_SERVED
    details = dict(status.details or {})
    if retry_after and retry_after.isdigit():
        details.setdefault("retryAfterSeconds", int(retry_after))
    message = status.message[:MAX_MESSAGE_CHARACTERS] or f"the server answered {code} without a reason"
    return kind(f"cannot {attempt}: {message}", reason=reason, details=details)


def translate_event(status_object: bytes, attempt: str) -> ApiError:
    """Return the error for the Status object of an ERROR event in a watch."""
    return translate(_parse(status_object).code or 500, status_object, attempt)


def causes_field(error: ApiError, field: str) -> bool:
    """Tell whether a cause of the refusal names this field."""
    causes = error.details.get("causes")
    return isinstance(causes, list) and any(isinstance(cause, dict) and cause.get("field") == field for cause in causes)


def causes_reason(error: ApiError, reason: str) -> bool:
    """Tell whether a cause of the refusal has this reason."""
    causes = error.details.get("causes")
    return isinstance(causes, list) and any(
        isinstance(cause, dict) and cause.get("reason") == reason for cause in causes
    )


def _parse(body: bytes) -> _Status:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Status()
