# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the answer of a guest's agent is taken apart. What is asked, and what the parts mean: agent.py, guest_details.py.

Whatever cannot be read is an UnreadableResponse, never another exception; a part of another type than it should
have counts as missing.
"""

from __future__ import annotations

from typing import Any

import msgspec

_READ_LIMIT = 1024
"""Characters of a text that are looked at: what is not printable costs time, too."""


class UnreadableResponse(ValueError):
    """The agent's answer is not one to the question that it was asked."""


def returned(answer: str) -> Any:
    """Take the value out of an answer. UnreadableResponse."""
    try:
        said = msgspec.json.decode(answer.encode())
    except (ValueError, RecursionError) as error:  # no JSON, half a character, too many brackets
        raise UnreadableResponse(f"the agent's answer is not JSON: {error}"[:_READ_LIMIT]) from None
    if not isinstance(said, dict) or "return" not in said:
        raise UnreadableResponse("the agent's answer has no 'return'")
    return said["return"]


def record(answer: str) -> dict[str, Any]:
    """Take an object out of an answer. UnreadableResponse."""
    said = returned(answer)
    if not isinstance(said, dict):
        raise UnreadableResponse("the agent's answer is not an object")
    return said


def entries(value: Any) -> list[Any]:
    """Return a list; an empty one when it is none."""
    return value if isinstance(value, list) else []


def records(value: Any, limit: int) -> list[dict[str, Any]]:
    """Return the objects among the first entries of a list."""
    return [one for one in entries(value)[:limit] if isinstance(one, dict)]


def text(value: Any, limit: int) -> str:
    """Take a text as it may be shown: one line that can be printed, of so many characters at most."""
    if not isinstance(value, str):
        return ""
    return "".join(one for one in value[:_READ_LIMIT] if one.isprintable()).strip()[:limit]
