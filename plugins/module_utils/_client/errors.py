# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All errors between a module and a cluster. Exceptions of libraries do not leave this package.

VirtError             message for the user: object, problem, remedy; facts: data for the task's result
+-- BadArgument       an option, or a file that it names, is wrong; no request was sent
+-- TimedOut          a wait reached its timeout; facts say why
+-- Unavailable       no connection, or a response that no API server sends
|   +-- Silent        connected, but no response
|   +-- TimeIsUp      no request was sent: the deadline has passed
+-- ApiError          the API server's refusal; status: HTTP code
    +-- NotFound  Conflict  Forbidden  Invalid
"""

from __future__ import annotations

from typing import Any

MESSAGE_LIMIT = 1000
"""Characters of a server's message that are shown. An admission error may contain a whole object."""
REASON_LIMIT = 400
"""Characters of a reason that a wait or an error names, such as a condition's message."""
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
    """A wait reached its timeout."""


class Unavailable(VirtError):
    """There is no connection, or the response does not come from an API server."""


class Silent(Unavailable):
    """The server sent no response or an incomplete one. A proxy or firewall may have dropped the connection."""


class TimeIsUp(Unavailable):
    """No request was sent, because the deadline has passed. The server may be healthy."""


class ApiError(VirtError):
    """The API server refused the request. The status tells whether a retry may help."""

    def __init__(self, message: str, *, status: int, **facts: Any) -> None:
        super().__init__(message, status=status, **facts)
        self.status = status


class NotFound(ApiError):
    """The object or its kind does not exist."""


class Conflict(ApiError):
    """The object has changed, or its state does not allow the request."""


class Forbidden(ApiError):
    """The server does not know the user, or the user lacks a permission."""


class Invalid(ApiError):
    """The object is invalid."""


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Shorten a text from outside and make its control characters visible."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= limit else plain[:limit] + "..."
