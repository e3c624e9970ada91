# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on the first run of a playbook: what a task would do with an object that an earlier task would create.

Nothing can be sent for it, so the outcome is a guess, and a warning says on what it depends.
"""

from __future__ import annotations

from ..._client.api import Api
from ..._client.errors import ApiError, NotFound
from .. import missing
from ..request.vm_request import VmRequest
from .guest_power import OPERATIONS
from .outcome import Outcome

_METHODS = {"started": "start", "stopped": "stop", "restarted": "restart", "present": "patch", **OPERATIONS}
"""The request for each state."""


def is_creatable(request: VmRequest) -> bool:
    """Tell whether the task itself creates an object that does not exist. It does not for a state of a guest."""
    return request.name is None or (request.has_machine and request.state not in OPERATIONS)


def without_object(api: Api, request: VmRequest) -> Outcome:
    """Return the outcome for a task that needs an object, and does not say how to create it."""
    return _to_come(request, missing.reason(api, request.namespace, request.kind))


def impossible(request: VmRequest, done: Outcome, reason: str) -> Outcome:
    """Return the outcome for a guest that the operation needs in another state."""
    warning = f"check mode: {request.title} cannot be {request.state} now: {reason}; an earlier task may change that"
    return done._replace(changed=True, method=_METHODS[request.state], warning=warning)


def is_to_come(error: ApiError) -> bool:
    """Tell whether a write was refused because of what an earlier task may create: the kind, or the namespace."""
    is_kind = not error.facts.get("server_reason")
    return isinstance(error, NotFound) and (is_kind or 'namespaces "' in error.message)


def without_cluster(request: VmRequest, error: ApiError) -> Outcome:
    """Return the outcome where the kind or the namespace does not exist."""
    if not request.has_machine:
        return _to_come(request, error.message)
    from .replace import for_creation

    warning = f"check mode: {error.message}; the task would fail, unless an earlier task changes that"
    return Outcome(changed=True, method="create", after=for_creation(request).body, warning=warning)


def _to_come(request: VmRequest, reason: str) -> Outcome:
    remedy = "creates and starts it" if request.state in OPERATIONS else "creates it"
    warning = f"check mode: {request.title}: {reason}, unless an earlier task {remedy}"
    return Outcome(changed=True, method=_METHODS[request.state], warning=warning)
