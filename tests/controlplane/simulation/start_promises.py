# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of starts: failures are counted once each, and the next start waits; a paused start is paused in each of its
attempts.

controller_promises calls it. It shares no code with the reconcilers.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.duties import Owed
from tests.controlplane.simulation.ledger import asks_for_run, asks_paused, controlling_uid, is_paused, strategy_of
from tests.support.store import OVER, Json

BACKED_OFF = ("Always", "RerunOnFailure")
WAITS = {1: (10.0, 15.0), 2: (40.0, 60.0), 3: (90.0, 135.0), 4: (160.0, 240.0)}
"""Seconds after so many consecutive failures, minimum and maximum; after more LONGEST."""
LONGEST = (250.0, 300.0)
STAMP_SECONDS = 1.5
"""A time stamp has whole seconds."""


def seconds_to_wait(vm: Json, now: float) -> float:
    """Return how long the next start of a VM has to wait, by its own status."""
    until = _failure(vm).get("retryAfterTimestamp")
    if until is None or strategy_of(vm) not in BACKED_OFF:
        return 0.0
    return datetime.fromisoformat(until).timestamp() - now


def counts_up(asked: Asked) -> str | None:
    """Each failed start increases the count by one."""
    new_status, before = asked.call.asked["patch"].get("status", {}).get("startFailure"), _failure(asked.decided_on)
    if not new_status or "lastFailedVMIUID" not in new_status:
        return None
    was = before.get("consecutiveFailCount", 0)
    count = new_status.get("consecutiveFailCount", was)
    return None if count == was + 1 else f"a start has failed, and the count goes from {was} to {count}"


def waits_as_long_as_it_should(asked: Asked) -> str | None:
    """The next start waits 10 s, longer after each failure, at most 300 s."""
    new_status = asked.call.asked["patch"].get("status", {}).get("startFailure") or {}
    if not new_status.get("retryAfterTimestamp"):
        return None
    count = new_status.get("consecutiveFailCount", _failure(asked.decided_on).get("consecutiveFailCount", 1))
    shortest, longest = WAITS.get(count, LONGEST)
    waits = datetime.fromisoformat(new_status["retryAfterTimestamp"]).timestamp() - asked.clock
    if shortest - STAMP_SECONDS <= waits <= longest + STAMP_SECONDS:
        return None
    return f"start {count} has failed, and the next one waits {waits:.0f} s, not {shortest:.0f} to {longest:.0f}"


def name_is_free(asked: Asked) -> str | None:
    """No VMI is created under a name that the process has seen as taken the whole time."""
    first, now = (None if item.vmi is None else msgspec.json.decode(item.vmi) for item in (asked.at_first, asked.view))
    if first is None or now is None or first["metadata"]["uid"] != now["metadata"]["uid"]:
        return None
    return "an instance of its name is seen to be there"


def owed_start(vm: Json | None, vmi: Json | None, now: float) -> Owed | None:
    """Return when a VM that waits only for its next start must be reconciled."""
    if vm is None or vmi is not None or "deletionTimestamp" in vm["metadata"]:
        return None
    remaining = min(seconds_to_wait(vm, now), LONGEST[1] + STAMP_SECONDS)  # a time further ahead is not believed
    return Owed("its next start is waited for", remaining) if remaining > 0 and asks_for_run(vm) else None


def end_is_noted(asked: Asked) -> str | None:
    """Before a failed instance is replaced, its VM records what would otherwise be lost."""
    vmi, vm = asked.decided_on, None if asked.view.vm is None else msgspec.json.decode(asked.view.vm)
    status, meta = vmi.get("status", {}), vmi["metadata"]
    if vm is None or "deletionTimestamp" in vm["metadata"] or controlling_uid(vmi) != vm["metadata"]["uid"]:
        return None
    if status.get("phase") not in OVER or "deletionTimestamp" in meta or strategy_of(vm) not in BACKED_OFF:
        return None
    entered = [timestamp["phase"] for timestamp in status.get("phaseTransitionTimestamps", ())]
    is_last = (status["phase"], strategy_of(vm)) == ("Succeeded", "RerunOnFailure")
    if "Running" not in entered and not is_last and _failure(vm).get("lastFailedVMIUID") != meta["uid"]:
        return "its instance ended before it ran, and is deleted before that is counted"
    is_owed_paused = is_paused(vmi) and "Running" not in entered
    is_due = status["phase"] == "Failed" and (strategy_of(vm) == "RerunOnFailure" or is_owed_paused)
    if is_due and not vm.get("status", {}).get("stateChangeRequests"):
        return "its instance failed, and is deleted before the next run is asked for"
    return None


def is_paused_as_asked(asked: Asked) -> str | None:
    """A run starts paused exactly when the start request says so."""
    answer, body = asked.in_pass.of(VIRTUAL_MACHINE.kind, asked.call.key), asked.call.asked["body"]
    if answer is None or answer.found is None:
        return None
    queue = answer.found.get("status", {}).get("stateChangeRequests") or ()
    starts = [item for item in queue if item["action"] == "Start"]
    is_asked = bool(starts) and asks_paused(starts[0])
    return None if is_paused(body) == is_asked else f"its guest is {'' if is_asked else 'not '}to wait for an unpause"


def is_switched_on_as_asked(asked: Asked) -> str | None:
    """A halted VM is switched on only for a newer paused start, and no other field changes."""
    vm, patch = asked.decided_on, asked.call.asked["patch"]
    if "spec" not in patch:
        return None
    if strategy_of(vm) != "Halted" or patch["spec"] not in ({"runStrategy": "Always"}, {"running": True}):
        return f"a spec is changed by {patch}"
    reported = str(vm["metadata"]["generation"])
    for request in vm.get("status", {}).get("stateChangeRequests") or ():
        if asks_paused(request) and request["data"].get("generation") == reported:
            return None
    return "a machine is switched on that was halted after the start, or that nobody has started"


def start_is_taken_off(asked: Asked) -> str | None:
    """An instance fulfils the start request before it: the request leaves the queue before the instance is
    deleted, or another run follows.
    """
    vmi, vm = asked.decided_on, None if asked.view.vm is None else msgspec.json.decode(asked.view.vm)
    if vm is None or "deletionTimestamp" in vm["metadata"] or controlling_uid(vmi) != vm["metadata"]["uid"]:
        return None
    queue, uid = vm.get("status", {}).get("stateChangeRequests") or (), vmi["metadata"]["uid"]
    for item in queue:
        if item["action"] != "Stop":
            return "its instance is deleted before the start that it has answered is off the queue"
        if item.get("uid") in (None, uid):
            return None
    return None


def _failure(vm: Json) -> Json:
    return vm.get("status", {}).get("startFailure") or {}
