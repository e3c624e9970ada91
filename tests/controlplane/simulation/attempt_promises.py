# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preconditions of each further attempt of a run: a Pod without a grant, and the report of its kubelet.

controller_promises calls it. It shares no code with the reconcilers.
"""

from __future__ import annotations

from kubevirt_api import names

from controlplane.api.objects.resources import POD
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.configuration import FURTHER_ATTEMPTS
from tests.controlplane.simulation.launch_duties import is_up, seconds_for
from tests.controlplane.simulation.ledger import controlling_uid
from tests.controlplane.simulation.node import LAUNCHER
from tests.support.store import OVER, Json, merged

TIMED_OUT = "RunTimedOut"


def attempt_is_due(asked: Asked) -> str | None:
    """A further attempt needs a Pod that failed because of its node, or that requests a device which is not needed."""
    before = asked.decided_on
    old = before.get("status", {})
    new = merged(before, {"status": asked.call.asked["patch"].get("status", {})})["status"]
    if old.get("attempt", 0) == new.get("attempt", 0) or not old.get("attempt"):
        return None if _failed(old) == _failed(new) else "an attempt is said to have failed, and none follows"
    if old.get("activePods"):
        return "the start was granted, and another Pod is to follow"
    if "deletionTimestamp" in before["metadata"]:
        return "it is deleted, and another Pod is to follow"
    pod = _pod_of_attempt(asked, before, old["attempt"])
    if pod is None:
        return "another Pod is to follow one that never was"
    return None if len(_failed(new)) == len(_failed(old)) else _entry_is_true(asked, old, new, pod)


def _entry_is_true(asked: Asked, old: Json, new: Json, pod: Json) -> str | None:
    named = asked.decided_on["metadata"].get("annotations", {}).get(names.FURTHER_ATTEMPTS, FURTHER_ATTEMPTS)
    if _failed(new)[:-1] != _failed(old) or len(_failed(new)) > int(named):
        return f"what has failed goes from {len(_failed(old))} attempts to {len(_failed(new))}"
    newest = _failed(new)[-1]
    if (newest["attempt"], newest["nodeName"]) != (old["attempt"], pod["spec"].get("nodeName")):
        return f"attempt {old['attempt']} was on {pod['spec'].get('nodeName')}, and it says {newest}"
    if newest["reason"] == TIMED_OUT:
        return _had_its_time(asked, asked.decided_on, pod)
    if pod["status"].get("reason") == newest["reason"] and pod["status"]["phase"] in OVER:
        return None
    states = [item["state"].get("waiting", {}) for item in pod["status"].get("containerStatuses", ())]
    if any(item.get("reason") == newest["reason"] and f'"{LAUNCHER}"' in item.get("message", "") for item in states):
        return None
    return f"its Pod is {pod['status']}, and it says {newest['reason']}"


def is_out_of_time(asked: Asked, vmi: Json) -> bool:
    """Whether a run without a grant ends because its Pod exceeded its start time on a node.

    A former leader may see a Pod whose attempt the VMI, as it sees it, does not name yet.
    """
    new_status, old = asked.call.asked["patch"].get("status", {}), vmi.get("status", {})
    pod = _pod_of_attempt(asked, vmi, old.get("attempt") or 1)
    is_late = pod is not None and _had_its_time(asked, vmi, pod) is None
    return new_status.get("reason") == TIMED_OUT and not old.get("activePods") and is_late


def _had_its_time(asked: Asked, vmi: Json, pod: Json) -> str | None:
    """A Pod is late only after its start time on a node has passed by the true clock, and not while it is
    observed as running.
    """
    if is_up(pod):
        return "a Pod is late that is up"
    history = (item for item in asked.store.histories[POD.kind] if item.after is not None)
    of_it = (
        item for item in history if item.after is not None and item.after["metadata"]["uid"] == pod["metadata"]["uid"]
    )
    placed_at = next((item.at for item in of_it if item.after is not None and "nodeName" in item.after["spec"]), None)
    if placed_at is None:
        return "a Pod is late that was never on a node"
    took = asked.store.now - placed_at
    may_take = seconds_for(vmi)
    return None if may_take and took >= may_take else f"its Pod is late after {took:.0f} s on its node"


def _failed(status: Json) -> list[Json]:
    return list(status.get("failedAttempts") or ())


def _pod_of_attempt(asked: Asked, vmi: Json, attempt: int) -> Json | None:
    """Return the Pod of an attempt as this process sees it, or its last state."""
    uid = vmi["metadata"]["uid"]
    for entry in reversed(asked.store.histories[POD.kind]):
        body = entry.after or entry.before
        if body is None or controlling_uid(body) != uid or entry.key.name.rsplit("-", 1)[-1] != str(attempt):
            continue
        seen = asked.seen(POD, entry.key)
        return seen if seen is not None and controlling_uid(seen) == uid else body
    return None
