# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preconditions of starts: the next start waits for its back-off, and a paused start is paused in each of its attempts.

controller_preconditions calls it. It shares no code with the reconcilers.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE
from tests.controlplane.simulation.answers import Request
from tests.controlplane.simulation.ledger import asks_paused, controlling_uid, is_paused, strategy_of
from tests.support.store import OVER, Json

BACKED_OFF = ("Always", "RerunOnFailure")


def seconds_to_wait(vm: Json, now: float) -> float:
    """Return how long the next start of a VM has to wait, by its own status."""
    until = _failure(vm).get("retryAfterTimestamp")
    if until is None or strategy_of(vm) not in BACKED_OFF:
        return 0.0
    return datetime.fromisoformat(until).timestamp() - now


def name_is_free(request: Request) -> str | None:
    """No VMI is created under a name that the process has seen as taken the whole time."""
    first, now = (
        None if item.vmi is None else msgspec.json.decode(item.vmi) for item in (request.at_first, request.view)
    )
    if first is None or now is None or first["metadata"]["uid"] != now["metadata"]["uid"]:
        return None
    return "an instance of its name is seen to be there"


def end_is_noted(request: Request) -> str | None:
    """Before a failed instance is replaced, its VM records what would otherwise be lost."""
    vmi, vm = request.decided_on, None if request.view.vm is None else msgspec.json.decode(request.view.vm)
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
    is_evicted = any(condition["type"] == "DisruptionTarget" for condition in status.get("conditions", ()))
    is_rerun = strategy_of(vm) == "RerunOnFailure" and (status["phase"] == "Failed" or is_evicted)
    is_due = is_rerun or (status["phase"] == "Failed" and is_owed_paused)
    if is_due and not vm.get("status", {}).get("stateChangeRequests"):
        return "its instance failed, and is deleted before the next run is requested"
    return None


def is_paused_as_asked(request: Request) -> str | None:
    """A run starts paused exactly when the start request says so."""
    answer, body = request.in_pass.of(VIRTUAL_MACHINE.kind, request.call.key), request.call.asked["body"]
    if answer is None or answer.value is None:
        return None
    queue = answer.value.get("status", {}).get("stateChangeRequests") or ()
    starts = [item for item in queue if item["action"] == "Start"]
    is_asked = bool(starts) and asks_paused(starts[0])
    return None if is_paused(body) == is_asked else f"its guest is {'' if is_asked else 'not '}to wait for an unpause"


def is_switched_on_as_asked(request: Request) -> str | None:
    """A halted VM is switched on only for a newer paused start, and no other field changes."""
    vm, patch = request.decided_on, request.call.asked["patch"]
    if "spec" not in patch:
        return None
    if strategy_of(vm) != "Halted" or patch["spec"] not in ({"runStrategy": "Always"}, {"running": True}):
        return f"a spec is changed by {patch}"
    reported = str(vm["metadata"]["generation"])
    for change in vm.get("status", {}).get("stateChangeRequests") or ():
        if asks_paused(change) and change["data"].get("generation") == reported:
            return None
    return "a machine is switched on without a start request, or after it was halted"


def start_is_taken_off(request: Request) -> str | None:
    """An instance fulfils the start request before it: the request leaves the queue before the instance is
    deleted, or another run follows.
    """
    vmi, vm = request.decided_on, None if request.view.vm is None else msgspec.json.decode(request.view.vm)
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
