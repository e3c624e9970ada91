# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI's status follows from what its writer saw, for both of its writers.

As vm_status_promises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controlplane.api.objects.resources import POD, Key
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.ledger import controlling_uid
from tests.controlplane.simulation.truth import condition, misdated
from tests.support.store import OVER, Json, merged

BEFORE = ("", "Pending", "Scheduling")
TRIED_AGAIN = "FurtherAttempt"
"""The reason after a failed attempt while nothing else is known."""
LOST = "LauncherLost"
"""The only reason after which a run may continue."""


def vmi_status_follows(asked: Asked) -> str | None:
    """Return what the written status says wrongly."""
    before = asked.decided_on
    after = merged(before, {"status": asked.call.asked["patch"].get("status", {})})
    return next(_wrong(before, after), None)


def ready_follows(asked: Asked, names: Iterable[str]) -> str | None:
    """A VMI is ready when its guest runs and its granted Pod, as it is seen, stays and is ready. names: its Pods'."""
    after = merged(asked.decided_on, {"status": asked.call.asked["patch"].get("status", {})})
    status, namespace = after["status"], asked.call.key.namespace
    reported, granted = condition(after, "Ready").get("status", "False"), status.get("activePods") or {}
    shown = (asked.seen(POD, Key(namespace, name)) for name in names)
    pod = next((item for item in shown if item is not None and item["metadata"]["uid"] in granted), None)
    stands_still = condition(after, "Paused").get("status") == "True"
    if stands_still or status.get("phase") != "Running" or pod is None or "deletionTimestamp" in pod["metadata"]:
        expected = "False"
    else:
        expected = condition(pod, "Ready").get("status", "False")
    if reported == expected or "deletionTimestamp" in after["metadata"]:
        return None
    return f"it is said to be ready: {reported}, and what is seen is {expected}"


def waiting_follows(asked: Asked, name: str) -> str | None:
    """Until the hand-over a VMI reports why its Pod, as it is seen, does not start. name: the Pod's."""
    before = asked.decided_on
    after = merged(before, {"status": asked.call.asked["patch"].get("status", {})})
    if after["status"].get("phase") != "Scheduling" or "deletionTimestamp" in after["metadata"]:
        return None
    pod = asked.seen(POD, Key(asked.call.key.namespace, name))
    if pod is not None and controlling_uid(pod) != after["metadata"]["uid"]:
        pod = None
    theirs = {} if pod is None else condition(pod, "PodScheduled")
    expected = theirs.get("reason", "") if theirs.get("status") == "False" else ""
    reported = condition(after, "PodScheduled").get("reason", "")
    if reported != expected:
        return f"its Pod is {expected or 'placed'}, and it says {reported or 'nothing'}"
    is_given_up = after["status"].get("attempt") != before.get("status", {}).get("attempt")
    answer = asked.in_pass.of(POD.kind, Key(asked.call.key.namespace, name))
    result = None if answer is None else answer.found
    is_taken = result is not None and controlling_uid(result) != after["metadata"]["uid"]
    if is_given_up or is_taken or asked.in_pass.was_refused:
        return None
    told = condition(after, "Synchronized")
    waits = _waits_for(pod) or (TRIED_AGAIN if after["status"].get("failedAttempts") else "")
    if told.get("reason", "") != waits:
        return f"it waits for {waits or 'nothing'}, and it says {told or 'nothing'}"
    return None


def _waits_for(pod: Json | None) -> str:
    states = () if pod is None else pod["status"].get("containerStatuses", ())
    return next((str(state["state"]["waiting"]["reason"]) for state in states if "waiting" in state["state"]), "")


def _wrong(before: Json, after: Json) -> Iterator[str]:
    old, new = before.get("status", {}), after["status"]
    was, phase = old.get("phase", ""), new.get("phase", "")
    yield from _of_entries(old, new)
    yield from _of_reason(after)
    if undated := misdated(before, after, [item["type"] for item in old.get("conditions", ())]):
        yield undated
    if (old.get("epoch", 0), old.get("activePods")) != (new.get("epoch", 0), new.get("activePods")):
        yield from _of_grant(old, new)
    if was in BEFORE and phase == "Scheduled":
        told = [item for item in ("PodScheduled", "Synchronized") if condition(after, item)]
        if told:
            yield f"the start is granted, and {told[0]} is still said to be {condition(after, told[0])}"
    if was != "Running" and phase == "Running" and condition(after, "Synchronized"):
        yield f"it is said to run, and {condition(after, 'Synchronized')}"
    if was != "Unknown" and phase == "Unknown" and new.get("reason") != LOST:
        yield f"it is not known how it is, for {new.get('reason') or 'no reason'}"
    yield from _of_machine(before, after)
    if phase in OVER and phase != was and condition(after, "Ready").get("status") == "True":
        yield f"it is {phase} and ready"


def _of_machine(before: Json, after: Json) -> Iterator[str]:
    """The machine type is reported from the first attempt on, the running one once it runs."""
    new, memory = after["status"], after["status"].get("memory") or {}
    guest = after["spec"]["domain"]["memory"]["guest"]
    if new.get("attempt") and memory.get("guestAtBoot") != guest:
        yield f"its guest has {guest}, and it says {memory or 'nothing'}"
    if new.get("phase") != "Running" or before.get("status", {}).get("phase") == "Running":
        return
    if memory.get("guestCurrent") != guest or not (new.get("machine") or {}).get("type"):
        yield f"it is said to run with {memory} on {new.get('machine') or 'no machine'}"


def _of_entries(old: Json, new: Json) -> Iterator[str]:
    """Each phase is entered with its timestamp, once."""
    before, after = ([item["phase"] for item in status.get("phaseTransitionTimestamps", ())] for status in (old, new))
    phase = new.get("phase", "")
    due = [item for item in ((*(() if old.get("phase") else ("Pending",)), phase)) if item and item not in before]
    if old.get("phase", "") == phase:
        due = []
    if after != before + list(dict.fromkeys(due)):
        yield f"it goes from {old.get('phase') or 'none'} to {phase}, and what it has entered from {before} to {after}"


def _of_reason(after: Json) -> Iterator[str]:
    """A failed run has a reason and a message; a running one has none."""
    status, reported = after["status"], condition(after, "Synchronized")
    reason, phase = status.get("reason", ""), status.get("phase", "")
    if phase == "Failed" and (reported.get("status"), reported.get("reason")) != ("False", reason):
        yield f"it has failed for {reason or 'no reason'}, and says {reported or 'nothing'}"
    if phase not in OVER and reason not in ("", LOST):
        yield f"it is {phase or 'without phase'}, and has the reason {reason}"


def _of_grant(old: Json, new: Json) -> Iterator[str]:
    """Owner and epoch change together, with the phase, once."""
    given = new.get("activePods") or {}
    moved = old.get("phase", ""), new.get("phase", "")
    if moved != ("Scheduling", "Scheduled") or len(given) != 1 or list(given.values()) != [new.get("nodeName")]:
        yield f"from {moved[0]} to {moved[1]} it is given to {given} on {new.get('nodeName')}"
    if new.get("epoch", 0) != old.get("epoch", 0) + 1 or new.get("attempt") != old.get("attempt"):
        yield f"it is granted, and its epoch goes from {old.get('epoch', 0)} to {new.get('epoch', 0)}"
