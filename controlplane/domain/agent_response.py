# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode the response of a guest's agent. agent.py and guest_details.py know the requests and what the parts mean.

A response that cannot be read is an UnreadableResponse, never another exception. A part of the wrong type counts as
missing.
"""

from __future__ import annotations

from typing import Any

import msgspec

_READ_LIMIT = 1024
"""Characters of a text that are read at all: filtering takes time, too."""


class UnreadableResponse(ValueError):
    """The agent's response does not fit the request."""


def returned(response: str) -> Any:
    """Return the value in a response. UnreadableResponse."""
    try:
        message = msgspec.json.decode(response.encode())
    except (ValueError, RecursionError) as error:  # not JSON, a lone surrogate, too deeply nested
        raise UnreadableResponse(f"the agent's response is not JSON: {error}"[:_READ_LIMIT]) from None
    if not isinstance(message, dict) or "return" not in message:
        raise UnreadableResponse("the agent's response has no 'return'")
    return message["return"]


def record(response: str) -> dict[str, Any]:
    """Return the object in a response. UnreadableResponse."""
    value = returned(response)
    if not isinstance(value, dict):
        raise UnreadableResponse("the agent's response is not an object")
    return value


def entries(value: Any) -> list[Any]:
    """Return a list; an empty one when the value is not a list."""
    return value if isinstance(value, list) else []


def records(value: Any, limit: int) -> list[dict[str, Any]]:
    """Return the objects among the first entries of a list."""
    return [entry for entry in entries(value)[:limit] if isinstance(entry, dict)]


def text(value: Any, limit: int) -> str:
    """Return a text as one printable line of at most `limit` characters; "" when the value is not a text."""
    if not isinstance(value, str):
        return ""
    return "".join(character for character in value[:_READ_LIMIT] if character.isprintable()).strip()[:limit]
