# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

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
from controlplane.virt_api.http.response import api_failure


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (NotFound("gone"), 404, "NotFound"),
        (Conflict("another version"), 409, "Conflict"),
        (AlreadyExists("there"), 409, "Conflict"),
        (Invalid("no such field"), 422, "Invalid"),
        pytest.param(
            Forbidden("virt-api may not"), 500, "InternalError", id="our own rights are nothing of the caller's"
        ),
        (Throttled("slower"), 429, "TooManyRequests"),
        (WebhookFailed("a webhook is away"), 500, "InternalError"),
        (Unavailable("no answer"), 503, "ServiceUnavailable"),
        (ApiError("a teapot"), 500, "InternalError"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, ApiError) else "",
)
def test_an_error_of_the_api_server_becomes_the_matching_response(error: ApiError, code: int, reason: str) -> None:
    """Clients retry automatically only if nothing was attempted."""
    response = api_failure(error)
    status = json.loads(response.body)

    assert (response.code, status["code"], status["reason"], status["message"]) == (code, code, reason, str(error))
    assert dict(response.headers) == ({"Retry-After": "1"} if code == 503 else {})
