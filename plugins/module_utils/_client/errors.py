# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong between a module and a cluster, as one tree. No library exception crosses this border.

VirtError             message for the user: object, what was wrong, remedy; facts: data beside the text
+-- BadArgument       an option or a file it names; nothing was sent
+-- TimedOut          waited for something that did not come; facts say why
+-- Unavailable       no connection, or an answer that is not the API's
|   +-- Silent        it was reached, and said nothing
|   +-- TimeIsUp      nothing was asked any more
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
    """What was waited for did not come in time."""


class Unavailable(VirtError):
    """There is no connection, or who answers is not an API server."""


class Silent(Unavailable):
    """Who was reached did not answer, or not to the end: what is on the way may have dropped the flow."""


class TimeIsUp(Unavailable):
    """Nothing was asked, because time is up. Says nothing of the server, so what is known of it stays."""


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


def cut(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Shorten a foreign text and make its control characters visible."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= limit else plain[:limit] + "..."
