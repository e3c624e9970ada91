# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one object into its state: read, decide, write. A conflict starts again with a fresh read. Does not wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..._client.api import Api
from ..._client.errors import ApiError, Conflict, Forbidden, NotFound, VirtError
from ...kubevirt_api.desired import is_deleting
from ..kinds import POOL, VM, VMI
from ..request.vm_request import Terms, VmRequest
from . import update
from .outcome import Interrupted, Outcome, is_observed

ATTEMPTS = 8
"""Rounds while other clients write the same object."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between rounds; about 7 in all."""

Object = dict[str, Any]


def ensure(
    api: Api,
    request: VmRequest,
    terms: Terms,
    listed: Object | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Bring the object into its state. known: a copy of it that the caller has just read."""
    before: Outcome | None = None
    for attempt in range(1, ATTEMPTS + 1):
        try:
            live = listed if listed is not None else read(api, request, terms)
            return _joined(before, _attempt(api, request, terms, live))
        except Interrupted as half:
            before = _joined(before, half.done)
            if attempt == ATTEMPTS or not isinstance(half.error, Conflict):
                raise _with_changed(half.error, before) from None
        except Conflict as error:
            if attempt == ATTEMPTS or (request.state == "absent" and request.delete_options.get("preconditions")):
                _with_changed(error, before)
                raise
        except VirtError as error:
            if request.state == "absent" and isinstance(error, NotFound) and not api.serves(request.kind.group):
                return Outcome(changed=False)  # the cluster does not know the kind, so there is no object
            if terms.check_mode and isinstance(error, ApiError) and request.state != "absent":
                from . import foresee

                if foresee.is_to_come(error):
                    return foresee.without_cluster(request, error)
            _with_changed(error, before)
            raise
        listed = None
        pause(backoff(attempt))
    raise VirtError(f"{request.title} changes all the time")  # for type checkers: the last attempt raised


def backoff(attempt: int, jitter: Callable[[], float] | None = None) -> float:
    """Return the seconds to wait after a round; random, so that two clients do not collide again."""
    import random  # only needed after a conflict

    return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)) * (0.5 + (jitter or random.random)() / 2)


def _joined(before: Outcome | None, outcome: Outcome) -> Outcome:
    """Return the combined outcome of all rounds."""
    if before is None or not before.changed:
        return outcome
    return outcome._replace(changed=True, method=outcome.method or before.method, before=before.before)


def _with_changed(error: VirtError, before: Outcome | None) -> VirtError:
    """Return the error with the fact that an earlier step changed something."""
    if before is not None and before.changed:
        error.facts["changed"] = True
    return error


def read(api: Api, request: VmRequest, terms: Terms) -> Object | None:
    """Return the live object, None if it does not exist or the server is still to choose its name."""
    if request.name is None:
        return None
    return api.get(request.kind.resource(request.namespace, terms.api_version), request.name)


def _attempt(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    # Imported only when needed: Ansible compiles a task's imports on each run.
    if request.state == "absent":
        from . import send

        return send.delete(api, request, terms, live)
    if terms.check_mode and live is None:
        from . import foresee

        if not foresee.is_creatable(request):
            return foresee.without_object(api, request)
    if request.kind is VMI:
        from . import instance

        return instance.ensure(api, request, terms, live)
    if request.state == "present":
        return _settled(api, request, terms, _ensure_present(api, request, terms, live))
    from . import power_state

    power_state.check(api, request, live)
    done = _ensure_present(api, request, terms, live)
    is_new = live is None or is_deleting(live)
    return _settled(api, request, terms, power_state.ensure(api, request, terms, done, is_new=is_new))


def _settled(api: Api, request: VmRequest, terms: Terms, done: Outcome) -> Outcome:
    """Return the outcome with a current status, and after the restart that a change needs, if the task wants it."""
    if request.kind is not VM or done.after is None or (is_observed(done.after) and not request.restarts):
        return done
    from . import restart

    return restart.settle(api, request, terms, done)


def _ensure_present(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Create or change the object as declared."""
    if live is None or is_deleting(live):
        from . import send

        return send.create(api, request, terms, live)
    write = decide(request, live)
    if write is None:
        return Outcome(changed=False, before=live, after=live)
    from . import send

    if request.kind is POOL and terms.wait and not terms.check_mode:
        from . import pool_change

        try:
            revisions = pool_change.revisions(api, live, request.namespace)
        except Forbidden as error:
            warning = f"the machines of {request.title} are not waited for one by one: {error.message}"
            return send.change(api, request, terms, live, write)._replace(warning=warning)
        done = send.change(api, request, terms, live, write)
        return done._replace(change=pool_change.change_of(revisions, done.before, done.after or {}))
    return send.change(api, request, terms, live, write)


def decide(request: VmRequest, live: Object) -> update.Write | None:
    """Return the write that makes the object match its declaration, None if it matches. Pure."""
    is_replaced = request.force and request.has_machine
    if not is_replaced and not request.is_complete:
        return update.for_options(request, live)
    from . import replace

    declared = update.with_strategy(request, request.declaration.obj, live)
    if is_replaced:
        return replace.for_replacement(declared, live, is_complete=request.is_complete)
    return replace.for_definition(request, declared, live)
