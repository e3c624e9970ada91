# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Learn whether a change of a VM takes effect only at its next start, and restart it if the task says so.

virt-controller decides that, a moment after the change. Its status says which generation it has seen.
"""

from __future__ import annotations

import time
from typing import Any

from ..._client.api import Api
from ..._client.errors import TimedOut, VirtError
from ..._client.waiter import Verdict, Waiter
from ..request.vm_request import Terms, VmRequest
from . import outcome, power_state
from .outcome import Interrupted, Outcome

SECONDS = 10.0
"""How long to wait for virt-controller, which takes less than a second, if the task does not depend on it."""

Object = dict[str, Any]


def settle(api: Api, request: VmRequest, terms: Terms, done: Outcome) -> Outcome:
    """Return the outcome with a status that belongs to the change, after the restart if one is needed and declared."""
    if terms.check_mode:
        return _foreseen(api, request, terms, done)
    try:
        done = _observed(api, request, terms, done)
    except VirtError as error:
        raise Interrupted(done, error) from error
    if not request.restarts or not outcome.restart_required(done):
        return done
    return _restart(api, request, terms, done)


def _foreseen(api: Api, request: VmRequest, terms: Terms, done: Outcome) -> Outcome:
    """Return the outcome in check mode: whether a change needs a restart shows only when it is made."""
    if done.changed or not request.restarts or not outcome.restart_required(done):
        return done
    return _restart(api, request, terms, done)


def _restart(api: Api, request: VmRequest, terms: Terms, done: Outcome) -> Outcome:
    return power_state.ensure(api, request._replace(state="restarted"), terms, done, is_new=False)


def _observed(api: Api, request: VmRequest, terms: Terms, done: Outcome) -> Outcome:
    """Wait until virt-controller has seen the newest spec."""
    vm = done.after or {}
    if outcome.is_observed(vm):
        return done
    seconds = terms.wait_timeout_seconds if request.restarts else min(SECONDS, terms.wait_timeout_seconds)

    def judge(_name: str, obj: Object | None) -> Verdict:
        return Verdict(done=obj is None or outcome.is_observed(obj))

    name = vm["metadata"]["name"]
    resource = request.kind.resource(request.namespace, terms.api_version)
    reached = Waiter(api, resource, judge, deadline=time.monotonic() + seconds).until([name])[name]
    if reached.verdict.done:
        return done._replace(after=reached.obj or vm)
    text = (
        f"{request.title} was changed, and virt-controller has not looked at it for {seconds:g} s, so whether it has to"
        " be restarted is not known; is virt-controller running?"
    )
    if request.restarts:
        raise TimedOut(text, reason="virt-controller has not seen the change")
    return done._replace(warning=text)
