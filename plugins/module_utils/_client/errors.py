# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong between a module and a cluster, as one tree. No library exception crosses this border.

VirtError             message for the user: object, what was wrong, remedy; facts: data beside the text
+-- BadArgument       an option or a file it names; nothing was sent
+-- TimedOut          waited for something that did not come; facts say why
+-- Unavailable       no connection, or an answer that is not the API's
+-- ApiError          the API server's refusal; status: HTTP code
    +-- NotFound  Conflict  Forbidden  Invalid
"""

from __future__ import annotations

import re
from typing import Any

MESSAGE_LIMIT = 1000
"""Characters of a server's message that are shown; an admission error may hold a whole object."""
CAUSES_LIMIT = 20
NOT_TEXT = "the value is not a text; put it into quotation marks, and after a template '| string'"


class VirtError(Exception):
    """An error for the user."""

    def __init__(self, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts


class BadArgument(VirtError):
    """An option, or a file that an option names, cannot be used."""


class TimedOut(VirtError):
    """What was waited for did not come in time."""


class Unavailable(VirtError):
    """There is no connection, or who answers is not an API server."""


class ApiError(VirtError):
    """The API server refused. Without its status nobody could tell what passes from what does not."""

    def __init__(self, message: str, *, status: int, **facts: Any) -> None:
        super().__init__(message, status=status, **facts)
        self.status = status


class NotFound(ApiError):
    """The object, or its whole kind, is not there."""


class Conflict(ApiError):
    """The object is not in the state that the request was made for."""


class Forbidden(ApiError):
    """The user is unknown or has no right."""


class Invalid(ApiError):
    """The object is refused as it is."""


_NO_RIGHT = re.compile(r"\bcannot \S+ (?:resource|path) ")
"""How the API server says it; a quota and an admission policy forbid with other words."""
_CLASSES = {400: Invalid, 401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict, 422: Invalid}


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Shorten a foreign text and make its control characters visible."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= limit else plain[:limit] + "..."


def refusal(attempt: str, status: int, answer: Any) -> ApiError:
    """Translate the API server's Status object into an error that names the attempt and the fields."""
    body = answer if isinstance(answer, dict) else {}
    details = body.get("details") or {}
    causes = [
        {"field": cut(str(one.get("field") or "?"), 200), "message": cut(str(one.get("message") or ""), 300)}
        for one in (details.get("causes") or ())[:CAUSES_LIMIT]
        if isinstance(one, dict)
    ]
    causes = [one for one in causes if one["field"] != "<nil>"] or causes  # "some rules were not checked"
    if causes:
        reason = "; ".join(
            one["message"] if one["field"] == "?" else f"{one['field']}: {one['message']}" for one in causes
        )
    else:
        reason = cut(str(body.get("message") or body.get("reason") or answer or "no reason given"))
    return _CLASSES.get(status, ApiError)(
        f"cannot {attempt}: {reason}{_remedy(status, reason)}",
        status=status,
        server_reason=body.get("reason"),
        causes=causes,
    )


def _remedy(status: int, reason: str) -> str:
    if status == 500 and "failed calling webhook" in reason:
        return " (what judges such objects does not answer; look at the control plane's Pods, of virt-api for ours)"
    if status == 401:
        return " (the API server does not know the user; check the credentials)"
    if status == 403 and "is being terminated" in reason:
        return " (it takes nothing new; try again when it is gone, or name another)"
    if status == 403 and _NO_RIGHT.search(reason):
        return " (ask the cluster's administrator for this right)"
    return ""
