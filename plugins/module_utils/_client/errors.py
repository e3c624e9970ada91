# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All errors between a module and a cluster. Exceptions of libraries do not leave this package.

VirtError             message for the user: object, what was wrong, remedy; facts: data beside the text
+-- BadArgument       an option or a file it names; nothing was sent
+-- TimedOut          waited for something that did not come; facts say why
+-- Unavailable       no connection, or an answer that is not the API's
|   +-- Silent        connected, but no answer
|   +-- TimeIsUp      no request was sent: the deadline has passed
+-- ApiError          the API server's refusal; status: HTTP code
    +-- NotFound  Conflict  Forbidden  Invalid
"""

from __future__ import annotations

from typing import Any

MESSAGE_LIMIT = 1000
"""Characters of a server's message that are shown; an admission error may hold a whole object."""
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
    """There is no connection, or the answer does not come from an API server."""


class Silent(Unavailable):
    """The server did not answer, or not to the end. Something on the way may have dropped the connection."""


class TimeIsUp(Unavailable):
    """No request was sent, because the deadline has passed. Tells nothing about the server."""


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
    """The user is unknown or has no right."""


class Invalid(ApiError):
    """The object is invalid."""


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Shorten a foreign text and make its control characters visible."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= limit else plain[:limit] + "..."
