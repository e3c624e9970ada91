# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can go wrong at the API, as the engine and the reconcilers see it.

ApiError
 +-- NotFound        the object does not exist (404)
 +-- AlreadyExists   a create met an object of that name (409, reason AlreadyExists)
 +-- Conflict        resourceVersion or UID precondition failed (409)
 +-- Forbidden       not allowed, or quota exceeded (401, 403)
 +-- NotLeader       this process may not write any more; nothing was sent
 +-- Invalid         the server refused the content (400, 422)
 +-- Gone            a watch or list position is too old (410)
 +-- NoProgress      a step was taken and asks for itself again: our own mistake, which must not spin
 +-- Unjudged        a webhook that must be asked about this does not answer (500); nothing happened
 +-- Throttled       turned away unread for now (429); nothing happened
 +-- Unavailable     no answer, or a passing fault (5xx, connection errors, time-outs);
                     a write may or may not have happened

Adapters (controlplane.kube, the simulated API of the tests) raise these and nothing else.
"""

from __future__ import annotations


class ApiError(Exception):
    """The API did not do what was asked. Its text names the attempt and the object.

    reason: the machine word of the server's Status ("AlreadyExists"), or "".
    details: the server's Status.details, or an empty mapping.
    """

    def __init__(self, message: str, *, reason: str = "", details: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.details = details or {}


class NotFound(ApiError):
    """The object does not exist."""


class AlreadyExists(ApiError):
    """A create met an object of the same name."""


class Conflict(ApiError):
    """A precondition (resourceVersion, UID) did not hold."""


class Forbidden(ApiError):
    """The caller may not do this, or a quota forbids it."""


class NotLeader(ApiError):
    """Another process leads: what this one wanted is nobody's problem any more."""


class Invalid(ApiError):
    """The server refused the content."""


class Gone(ApiError):
    """The position in the history is too old: list again."""


class NoProgress(ApiError):
    """What was done opened nothing: the same plan again. The API was not at fault."""


class WebhookFailed(ApiError):
    """Somebody's admission webhook is broken: nothing was stored, and nothing will be before a person mends it."""


class Throttled(ApiError):
    """The server takes nothing from us now (priority and fairness, an eviction's budget); the write had no effect."""


class Unavailable(ApiError):
    """No usable answer; the effect of a write is unknown."""


def retry_after_seconds(error: ApiError) -> float:
    """Return how long the server asked us to stay away; 0 when it did not say."""
    value = error.details.get("retryAfterSeconds")
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
