# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every field of a VM's status follows from what its writer saw, in every write, whatever its result.

At rest most wrong values are overwritten, and a lasting one may be about something that is gone. So each write is
checked when it is sent. controller_promises calls it. It shares no code with the reconcilers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.ledger import UNKNOWN, asks_paused, controlling_uid, is_paused, strategy_of
from tests.controlplane.simulation.truth import OWN, condition, made_from, misdated, untrue_of_vm
from tests.support.store import OVER, Json, merged

COUNTED = ("Always", "RerunOnFailure", "Once")
"""Strategies under which failed starts are counted."""
REFUSALS = ("FailedCreate", "FailedDelete", "FailedUpdateError")
"""Reasons of the condition Failure for a refused write."""


@dataclass(frozen=True, slots=True)
class Told:
    """A status about to be written, and its objects."""

    asked: Asked
    vm: Json
    """As at the decision."""
    after: Json
    """With the write applied."""
    vmi: Json | None
    """The VMI with the VM's name, with any owner, as the writer saw it."""

    @property
    def own(self) -> Json | None:
        is_own = self.vmi is not None and controlling_uid(self.vmi) == self.vm["metadata"]["uid"]
        return self.vmi if is_own else None

    @property
    def is_going(self) -> bool:
        """Whether the instance is being deleted, as far as the writer knows."""
        if self.own is None:
            return False
        meta = self.own["metadata"]
        return "deletionTimestamp" in meta or self.asked.ever.has_ended(VIRTUAL_MACHINE_INSTANCE.kind, meta["uid"])

    @property
    def strategy(self) -> str:
        return strategy_of(self.vm)


def vm_status_follows(asked: Asked) -> str | None:
    """Return what the written status says wrongly."""
    patch, vm = asked.call.asked["patch"].get("status", {}), asked.decided_on
    after = merged(vm, {"status": patch})
    update = Told(asked, vm, after, None if asked.view.vmi is None else msgspec.json.decode(asked.view.vmi))
    wrong = next(_of_queue(update), None) if update.strategy != UNKNOWN else None
    if wrong is not None or set(patch) <= {"stateChangeRequests"}:  # a dropped request is removed in a write of its own
        return wrong
    if "deletionTimestamp" in vm["metadata"]:
        said = after["status"].get("printableStatus")
        return None if said == "Terminating" else f"a VM that is deleted is said to be {said}"
    return _of_unknown(update) if update.strategy == UNKNOWN else next(_of_instance(update), None)


def _of_unknown(told: Told) -> str | None:
    """Unknown parts of a strategy do not count as done: the status names them."""
    before, after = (item.get("status", {}) for item in (told.vm, told.after))
    kept = ("runStrategy", "stateChangeRequests", "startFailure")
    if changed := [item for item in kept if before.get(item) != after.get(item)]:
        return f"under an unknown strategy {changed} changes"
    reason = condition(told.after, "Failure").get("reason", "")
    is_said = reason == "UnknownRunStrategy" or told.asked.in_pass.was_refused
    return None if is_said else f"its strategy is unknown, and it says {reason or 'nothing'}"


def _of_instance(told: Told) -> Iterator[str]:
    yield from untrue_of_vm(told.after, told.vmi, is_going=told.is_going)
    status = told.after["status"]
    reported, expected = status.get("printableStatus"), _printable(told)
    if reported != expected:
        yield f"it is said to be {reported}, and what is seen is {expected}"
    recorded, strategy = status.get("runStrategy"), told.strategy
    is_acted_on = (told.own is not None and not told.is_going) or strategy not in COUNTED
    if recorded != (strategy if is_acted_on else told.vm.get("status", {}).get("runStrategy")):
        yield f"strategy {recorded} is recorded under {strategy}, {'with' if told.own else 'without'} an instance"
    before, after = (item.get("status", {}).get("observedGeneration", 0) for item in (told.vm, told.after))
    if told.own is None and before != after:
        yield f"without an instance the generation that is observed goes from {before} to {after}"
    if after not in (before, made_from(told.own, told.vm)):
        yield f"observes generation {after}, after {before}, and its instance is {made_from(told.own, told.vm)}"
    yield from _of_failed_starts(told)
    yield from _of_failure(told)
    if wrong := misdated(told.vm, told.after, OWN):
        yield wrong


def _printable(told: Told) -> str:
    own = told.own
    if own is None or _phase(own) in OVER:
        is_looping = "startFailure" in told.after["status"] and told.strategy in COUNTED
        return "CrashLoopBackOff" if is_looping else "Stopped"
    if told.is_going:
        return "Stopping"
    if _phase(own) == "Running" and condition(own, "Ready").get("reason") != "GuestNotRunning":
        return "Paused" if condition(own, "Paused").get("status") == "True" else "Running"
    placed, synchronized = condition(own, "PodScheduled"), condition(own, "Synchronized")
    if (placed.get("status"), placed.get("reason")) == ("False", "Unschedulable"):
        return "ErrorUnschedulable"
    if synchronized.get("reason") in ("ErrImagePull", "ImagePullBackOff"):
        return str(synchronized["reason"])
    return "Unknown" if _phase(own) == "Unknown" else "Starting"


def _of_failed_starts(told: Told) -> Iterator[str]:
    """Consecutive failed starts are counted; a run that ran resets the count."""
    before, after = (item.get("status", {}).get("startFailure") or {} for item in (told.vm, told.after))
    has_run = told.own is not None and _has_run(told.own)
    if told.strategy not in COUNTED or has_run:
        if after:
            yield f"failed starts are remembered under {told.strategy}, {'after' if has_run else 'without'} a run"
    elif _is_failed_start(told):
        if told.own is not None and after.get("lastFailedVMIUID") != told.own["metadata"]["uid"]:
            yield "its instance ended before it ran, and that is not counted"
    elif _is_stopped(told) or _is_enough(told):
        if after:
            yield "failed starts are remembered, and no other start is to follow"
    elif _counted(before) != _counted(after):
        yield f"no start has failed, and what is counted goes from {_counted(before)} to {_counted(after)}"


def _is_stopped(told: Told) -> bool:
    """Whether a machine that would be retried after a failure should not start any more."""
    before, after = (item.get("status", {}) for item in (told.vm, told.after))
    is_acted_on = before.get("runStrategy") == told.strategy == "RerunOnFailure"
    return is_acted_on and told.own is None and not after.get("stateChangeRequests")


def _of_failure(told: Told) -> Iterator[str]:
    """Condition Failure: a refused write, a taken name, a failed start."""
    reason = condition(told.after, "Failure").get("reason", "")
    is_foreign = told.vmi is not None and controlling_uid(told.vmi) not in (None, told.vm["metadata"]["uid"])
    was_refused = told.asked.in_pass.was_refused
    if was_refused != (reason in REFUSALS) and not (is_foreign and reason == "FailedCreate"):
        yield f"a write was {'' if was_refused else 'not '}refused, and it says {reason or 'nothing'}"
    if reason == "FailedStart" and (
        "startFailure" not in told.after["status"] or (told.own is not None and _phase(told.own) not in OVER)
    ):
        yield "it says that the last start failed, and none has"
    if _is_failed_start(told) and not reason:
        yield "its instance ended before it ran, and it does not say why"
    waits = "startFailure" in told.after["status"] and (told.own is None or _phase(told.own) in OVER)
    if waits and condition(told.vm, "Failure").get("reason") == "FailedStart" and not reason:
        yield "the next start waits for the one that failed, and it does not say why any more"


def _of_queue(told: Told) -> Iterator[str]:
    """Completed and impossible requests are removed, in order; only a run that failed by itself asks for another."""
    before, after = (item.get("status", {}).get("stateChangeRequests") or [] for item in (told.vm, told.after))
    kept = len(before) - len(after)
    if kept >= 0 and before[kept:] == after:
        remaining = [item for item in before[:kept] if not (_is_done(told, item) or _is_hopeless(told, item))]
        if remaining:
            yield f"{remaining[0]} is taken off the queue, and is neither done nor hopeless"
        never = [item for item in before[:kept] if not (_was_done(told, item) or _is_hopeless(told, item))]
        if never:
            yield f"{never[0]} is taken off the queue, and nothing has come of it since it was asked for"
        return
    own, uid = told.own, None if told.own is None else told.own["metadata"]["uid"]
    has_failed = own is not None and _phase(own) == "Failed" and not told.is_going
    is_owed_paused = own is not None and is_paused(own) and not _has_run(own)
    is_due = has_failed and (told.strategy == "RerunOnFailure" or (told.strategy == "Always" and is_owed_paused))
    if not is_due or not all(_is_done(told, item) for item in before):
        yield "another run is asked for, and none has failed by itself"
    elif [(item["action"], item.get("uid")) for item in after] != [("Stop", uid), ("Start", None)]:
        yield f"another run is asked for by {after}"
    elif asks_paused(after[1]) != is_owed_paused:
        yield f"another run is asked for by {after}, and the one before it was {'' if is_owed_paused else 'not '}paused"


def _is_done(told: Told, request: Json) -> bool:
    if request["action"] == "Start":
        return told.own is not None
    is_foreign = told.vmi is not None and told.own is None and controlling_uid(told.vmi) is not None
    there = None if told.vmi is None or is_foreign else told.vmi["metadata"]["uid"]
    return request["action"] == "Stop" and (there is None or request.get("uid") not in (None, there))


def _was_done(told: Told, request: Json) -> bool:
    """Judge by the true state, not by the view: a view from before a request does not show its result."""
    since, uid = _asked_for_at(told, request), told.vm["metadata"]["uid"]
    vmis = told.asked.store.histories[VIRTUAL_MACHINE_INSTANCE.kind]
    there = {vmi.after["metadata"]["uid"]: vmi for vmi in vmis if vmi.after is not None}
    gone = {vmi.before["metadata"]["uid"]: vmi.version for vmi in vmis if vmi.after is None and vmi.before is not None}
    if request["action"] == "Stop":
        named = request.get("uid")
        return named is None or named in gone or named not in there
    own = (
        vmi
        for vmi in vmis
        if vmi.after is not None
        and controlling_uid(vmi.after) == uid
        and gone.get(vmi.after["metadata"]["uid"], since) >= since
    )
    return next(own, None) is not None


def _asked_for_at(told: Told, request: Json) -> int:
    """Return the version of the store at which a request entered the queue that was decided on."""
    uid, read = told.vm["metadata"]["uid"], int(told.asked.call.asked["resource_version"])
    since = read
    for history in reversed(told.asked.store.histories[VIRTUAL_MACHINE.kind]):
        if history.version > read or history.after is None or history.after["metadata"]["uid"] != uid:
            continue
        if request not in (history.after.get("status", {}).get("stateChangeRequests") or []):
            break
        since = history.version
    return since


def _is_hopeless(told: Told, request: Json) -> bool:
    data = request.get("data") or {}
    if request["action"] == "Start" and told.strategy == "Halted":
        return not (asks_paused(request) and data.get("generation") == str(told.vm["metadata"]["generation"]))
    return bool(data.keys() - {"paused", "generation"}) or (request["action"], told.strategy) == ("Stop", "Once")


def _is_failed_start(told: Told) -> bool:
    """Whether the instance ended by itself before it ran."""
    own = told.own
    is_over = own is not None and _phase(own) in OVER and not _has_run(own)
    return is_over and not told.is_going and told.strategy in COUNTED and not _is_enough(told)


def _is_enough(told: Told) -> bool:
    """Whether a run succeeded that no other follows by itself."""
    return told.own is not None and _phase(told.own) == "Succeeded" and told.strategy in ("RerunOnFailure", "Once")


def _counted(failure: Json) -> tuple[int, str]:
    return int(failure.get("consecutiveFailCount", 0)), str(failure.get("lastFailedVMIUID", ""))


def _has_run(vmi: Json) -> bool:
    entered = [timestamp["phase"] for timestamp in vmi.get("status", {}).get("phaseTransitionTimestamps", ())]
    return "Running" in (*entered, _phase(vmi))


def _phase(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))
