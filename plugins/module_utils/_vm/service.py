# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring one VM into its state: read, decide (present), write (writing). Power states go on in operate; waiting is not
done here.

A conflict drops the decision and begins anew with what is there by then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._client.api import Api
from .._client.errors import Conflict, NotFound, VirtError
from ..kubevirt_api.asked import is_deleting
from . import present
from .cluster import POOL, VMI
from .request import Terms, VmRequest

if TYPE_CHECKING:
    from .rollout import Change

ATTEMPTS = 8
"""Rounds against others who write the same object meanwhile."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 2.0
"""Seconds between rounds; all together about 7."""

Object = dict[str, Any]


class Outcome(NamedTuple):
    """What was done for one VM."""

    changed: bool
    method: str | None = None
    """create, apply, patch, replace, delete, or the name of an operation; the last one that changed something."""
    before: Object | None = None
    after: Object | None = None
    """The object as the server returned it last; None when it is gone."""
    old_instance_uid: str | None = None
    """Of the instance that a restart is to replace."""
    change: Change | None = None
    """What the machines of a pool are to have because of it."""


class Interrupted(Exception):
    """A step that changed something and then failed."""

    def __init__(self, done: Outcome, error: VirtError) -> None:
        super().__init__(error.message)
        self.done = done
        self.error = error


def ensure(
    api: Api, request: VmRequest, terms: Terms, known: Object | None = None, pause: Callable[[float], None] = time.sleep
) -> Outcome:
    """Bring the VM into its state. `known` is a fresh copy of the object, if somebody read it already."""
    begun: Outcome | None = None
    for attempt in range(1, ATTEMPTS + 1):
        try:
            live = known if known is not None else read(api, request, terms)
            return _joined(begun, _step(request)(api, request, terms, live))
        except Interrupted as half:
            begun = _joined(begun, half.done)
            if attempt == ATTEMPTS or not isinstance(half.error, Conflict):
                raise _told(half.error, begun) from None
        except Conflict as error:
            if attempt == ATTEMPTS or (request.state == "absent" and request.delete_options.get("preconditions")):
                _told(error, begun)
                raise
        except VirtError as error:
            if request.state == "absent" and isinstance(error, NotFound) and not api.serves(request.kind.group):
                return Outcome(changed=False)  # a kind that is not there has no objects
            _told(error, begun)
            raise
        known = None
        pause(backoff(attempt))
    raise VirtError(f"{request.title} changes all the time")  # for type checkers: the last try raised


def backoff(attempt: int, jitter: Callable[[], float] | None = None) -> float:
    """Return the seconds to wait after a round; with jitter, so that rivals do not meet again."""
    import random  # only who meets a rival needs it

    return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)) * (0.5 + (jitter or random.random)() / 2)


def _joined(begun: Outcome | None, outcome: Outcome) -> Outcome:
    """Return what all rounds did together."""
    if begun is None or not begun.changed:
        return outcome
    return outcome._replace(changed=True, method=outcome.method or begun.method, before=begun.before)


def _told(error: VirtError, begun: Outcome | None) -> VirtError:
    """Return the error, which says whether something was changed before it."""
    if begun is not None and begun.changed:
        error.facts["changed"] = True
    return error


def read(api: Api, request: VmRequest, terms: Terms) -> Object | None:
    """Return the VM as it is, None if it is not there or its name is still to be made."""
    if request.name is None:
        return None
    return api.get(request.kind.resource(request.namespace, terms.api_version), request.name)


def _step(request: VmRequest) -> Callable[[Api, VmRequest, Terms, Object | None], Outcome]:
    if request.state == "absent":
        from .writing import deleted

        return deleted
    if request.kind is VMI:
        from .instance import ensure_instance

        return ensure_instance
    if request.state == "present":
        return ensure_present
    from .operate import powered  # the tables of the power states are for those who ask for one

    return powered


def ensure_present(api: Api, request: VmRequest, terms: Terms, live: Object | None) -> Outcome:
    """Make the VM be as declared; `live` is how it is."""
    if live is not None and not is_deleting(live):
        write = present.for_existing(request, live)
        if write is None:
            return Outcome(changed=False, before=live, after=live)
        from . import writing  # most runs find nothing to write

        if request.kind is POOL and terms.wait and not terms.check_mode:
            from . import rollout

            old = rollout.noted(api, live, request.namespace)
            done = writing.changed(api, request, terms, live, write)
            return done._replace(change=rollout.change_of(old, done.before, done.after or {}))
        return writing.changed(api, request, terms, live, write)
    from . import writing

    return writing.created(api, request, terms, live)
