# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Violations after chaos: two guests of a machine, a guest that ended for no reason, a machine that does not match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.chaos.journal import Journal
from tests.chaos.observer import Guest, Observer
from tests.chaos.roster import Roster
from tests.e2e.cluster import Cluster, KubectlFailed

SLACK_SECONDS = 2.0
"""Between the start of an action and its observation."""
GRACE_SECONDS = 90.0
"""How long a request to a guest may take: its grace period, pauses and faults."""
BY_PHASE = {"Running": ("Running", "Paused"), "Succeeded": ("Stopped",), "Failed": ("Stopped", "CrashLoopBackOff")}

Object = dict[str, Any]


def ended_for_no_reason(observer: Observer, roster: Roster, journal: Journal) -> Iterator[str]:
    """Return each guest that ended without an action since the previous guest that may have ended it."""
    before: dict[str, float] = {}
    for guest, life in sorted(observer.lives.items(), key=lambda live: live[1].first):
        since = before.get(guest.machine, journal.began) - GRACE_SECONDS
        before[guest.machine] = life.last
        if life.is_over and not journal.why(_names(guest, roster), since, life.last + SLACK_SECONDS):
            yield f"{guest} ended at {life.last - journal.began:.1f} s, and nobody did anything to it"


def _names(guest: Guest, roster: Roster) -> frozenset[str]:
    return roster.known(guest.instance) | {f"node/{guest.node}", f"uid/{guest.instance}"}


def not_as_declared(cluster: Cluster, observer: Observer) -> list[str]:
    """Return what does not match the objects after the last action."""
    try:
        vms, vmis, pods = (cluster.list(kind, "-n", "default") for kind in ("vm", "vmi", "pods"))
        sets = cluster.list("vmirs", "-n", "default")
    except KubectlFailed as error:
        return [str(error)]
    by_name = {vmi["metadata"]["name"]: vmi for vmi in vmis}
    wrong = [text for vm in vms if (text := _of_vm(vm, by_name.get(vm["metadata"]["name"])))]
    wrong += [text for set_ in sets if (text := _of_set(set_, vmis))]
    return wrong + _of_guests(observer.look(), vmis) + _of_pods(pods, vmis)


def _of_vm(vm: Object, vmi: Object | None) -> str:
    name, strategy, status = vm["metadata"]["name"], vm["spec"]["runStrategy"], vm.get("status", {})
    word, phase = status.get("printableStatus", ""), "" if vmi is None else vmi["status"].get("phase", "")
    if "deletionTimestamp" in vm["metadata"]:
        return f"vm/{name} is still going"
    if strategy == "Always" and (phase != "Running" or not status.get("ready")):
        return f"vm/{name} is to run always, and is {word} ({phase}, ready {status.get('ready')})"
    if strategy == "Halted" and (vmi is not None or word != "Stopped"):
        return f"vm/{name} is halted, and is {word} ({phase})"
    if word not in BY_PHASE.get(phase, ("Stopped", "CrashLoopBackOff")):
        return f"vm/{name} says {word} of an instance that is {phase or 'not there'}"
    if vmi is not None and _owner(vmi) != vm["metadata"]["uid"]:
        return f"vm/{name} has an instance that is not its own"
    requests = status.get("stateChangeRequests")
    return f"vm/{name} has still to do {requests}" if requests else ""


def _of_set(replica_set: Object, vmis: list[Object]) -> str:
    name, replicas = replica_set["metadata"]["name"], replica_set["spec"].get("replicas", 1)
    count = sum(
        _owner(vmi) == replica_set["metadata"]["uid"] and vmi["status"].get("phase") == "Running" for vmi in vmis
    )
    if replica_set["spec"].get("paused") or count == replicas == replica_set["status"].get("readyReplicas", 0):
        return ""
    return f"vmirs/{name} wants {replicas}, {count} run, it says {replica_set['status'].get('readyReplicas', 0)}"


def _of_guests(guests: list[Guest], vmis: list[Object]) -> list[str]:
    running = sorted(vmi["metadata"]["uid"] for vmi in vmis if vmi["status"].get("phase") == "Running")
    observed = sorted(guest.instance for guest in guests)
    return [] if running == observed else [f"{running} run, and the guests are {observed}"]


def _of_pods(pods: list[Object], vmis: list[Object]) -> list[str]:
    uids = {vmi["metadata"]["uid"] for vmi in vmis}
    going = [pod["metadata"]["name"] for pod in pods if pod["status"].get("phase") in ("Pending", "Running")]
    alive = [_owner(pod) for pod in pods if pod["metadata"]["name"] in going]
    twice = {owner for owner in alive if alive.count(owner) > 1}
    remaining = {owner for owner in alive if owner not in uids}
    return (
        [f"launchers without an instance, or two of one: {twice | remaining} of {going}"] if twice | remaining else []
    )


def _owner(obj: Object) -> str:
    return next((str(ref["uid"]) for ref in obj["metadata"].get("ownerReferences", ()) if ref.get("controller")), "")
