# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API server's Status objects as errors for the user. Separate from errors.py, because few tasks are refused."""

from __future__ import annotations

import re
from typing import Any

from .errors import ApiError, Conflict, Forbidden, Invalid, NotFound, cut

CAUSES_LIMIT = 20
_NO_RIGHT = re.compile(r"\bcannot \S+ (?:resource|path) ")
"""The API server's words for a missing permission. Quotas and admission policies use other words."""
_NOT_AGGREGATED = "service unavailable"
"""The API server's whole message when an aggregated API server does not respond."""
_LOOK = "look at the control plane's Pods, of virt-api for ours"
_UNREADABLE = "failed to create typed patch object"
"""Start of the message for an apply with a value of the wrong type. The API server reports it as an internal error."""
_MISTYPED = re.compile(r"(?:: |\n\s*)\.(\S+): expected ([^,\n]+), got ([^\n]*)")
_TYPES = {"numeric (int or float)": "a number", "boolean": "true or false", "string": "a text", "map": "a mapping"}
_MADE_A_TEXT = " (before ansible-core 2.19, a template that ends in a filter gives a text, unless jinja2_native is set)"
_TEXT = re.compile(r"must be (?:a number|a whole number|true or false), (?:and is a text|got a string)")
_CLASSES = {400: Invalid, 401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict, 422: Invalid}


def refusal(attempt: str, status: int, response: Any) -> ApiError:
    """Translate the API server's Status object into an error that names the attempt and the fields."""
    body = response if isinstance(response, dict) else {}
    details, listed = body.get("details"), None
    if isinstance(details, dict):
        listed = details.get("causes")
    causes = [
        {"field": cut(str(cause.get("field") or "?"), 200), "message": cut(str(cause.get("message") or ""), 300)}
        for cause in (listed if isinstance(listed, list) else [])[:CAUSES_LIMIT]
        if isinstance(cause, dict)
    ]
    causes = [cause for cause in causes if cause["field"] != "<nil>"] or causes  # "<nil>": some rules were not checked
    causes = causes or _mistyped(str(body.get("message") or ""))
    if causes:
        reason = "; ".join(
            cause["message"] if cause["field"] == "?" else f"{cause['field']}: {cause['message']}" for cause in causes
        )
    else:
        reason = cut(str(body.get("message") or body.get("reason") or response or "no reason given"))
    is_unreadable = str(body.get("message") or "").startswith(_UNREADABLE)
    kind = Invalid if is_unreadable else _CLASSES.get(status, ApiError)
    return kind(
        f"cannot {attempt}: {reason}{_remedy(status, reason)}{_MADE_A_TEXT if _TEXT.search(reason) else ''}",
        status=status,
        server_reason=body.get("reason"),
        causes=causes,
    )


def _mistyped(message: str) -> list[dict[str, str]]:
    """Return the fields of an apply with a value of the wrong type; nothing for other refusals."""
    if not message.startswith(_UNREADABLE):
        return []
    causes = []
    for field, expected, actual in _MISTYPED.findall(message)[:CAUSES_LIMIT]:
        is_text = actual == "string" or (expected == "boolean" and not actual.startswith(("&{map[", "&{[")))
        problem = f"must be {_TYPES.get(expected, f'a {expected}')}" + (", and is a text" if is_text else "")
        causes.append({"field": cut(field, 200), "message": cut(problem, 300)})
    return causes


def _remedy(status: int, reason: str) -> str:
    if status == 500 and "failed calling webhook" in reason:
        return f" (the admission webhook does not respond; {_LOOK})"
    if status == 503 and reason == _NOT_AGGREGATED:
        return f" (the server of this API does not respond; {_LOOK})"
    if status == 401:
        return " (the API server does not know the user; check the credentials)"
    if status == 403 and "is being terminated" in reason:
        return " (nothing can be created in it; wait until it is deleted, or use another namespace)"
    if status == 403 and _NO_RIGHT.search(reason):
        return " (ask the cluster's administrator for this right)"
    return ""
