# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the API, as the engine and the reconcilers see them.

ApiError
 +-- NotFound        the object does not exist (404)
 +-- AlreadyExists   a create met an object of that name (409, reason AlreadyExists)
 +-- Conflict        resourceVersion or UID precondition failed (409)
 +-- Forbidden       not allowed, or quota exceeded (401, 403)
 +-- NotLeader       this process has lost the leadership; nothing was sent
 +-- Invalid         the server refused the content (400, 422)
 +-- Gone            the resourceVersion of a watch or list is too old (410)
 +-- NoProgress      a reconcile repeats its plan: a bug of ours, which must not spin
 +-- WebhookFailed   an admission webhook of this request does not answer (500); nothing happened
 +-- Throttled       refused for now (429); nothing happened
 +-- Unavailable     no answer, or a passing fault (5xx, connection errors, time-outs);
                     a write may or may not have happened

Adapters (controlplane.kube, the simulated API of the tests) raise these and nothing else.
"""

from __future__ import annotations


class ApiError(Exception):
    """A request failed. The message names the request and the object.

    reason: the reason of the server's Status, e.g. AlreadyExists, or "".
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
    """Another process leads, and will decide itself."""


class Invalid(ApiError):
    """The server refused the content."""


class Gone(ApiError):
    """The resourceVersion is too old: list again."""


class NoProgress(ApiError):
    """The same plan again, although its actions succeeded. Not an error of the API."""


class WebhookFailed(ApiError):
    """An admission webhook is broken: nothing is stored until an administrator repairs it."""


class Throttled(ApiError):
    """The server refuses requests for now (priority and fairness, a disruption budget); the write had no effect."""


class Unavailable(ApiError):
    """No usable answer; the effect of a write is unknown."""


def retry_after_seconds(error: ApiError) -> float:
    """Return the server's Retry-After in seconds; 0 without one."""
    value = error.details.get("retryAfterSeconds")
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0
