# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Causes of irreversible writes: a model on the objects as the writer saw them.

It shares no code with the decisions of the controllers. Each function returns why a write is wrong, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.ledger import controlling_uid, strategy_of
from tests.controlplane.simulation.machines.truth import condition
from tests.support.store import OVER, Change, Json, Store


def begins_to_go(change: Change) -> bool:
    """Whether this change deletes an object or starts its deletion."""
    before, after = change.before, change.after
    if before is None or "deletionTimestamp" in before["metadata"]:
        return False
    return after is None or "deletionTimestamp" in after["metadata"]


def is_evicted(pod: Json | None) -> bool:
    """Whether a Pod is gone, being deleted, or ended by Kubernetes."""
    if pod is None or "deletionTimestamp" in pod["metadata"]:
        return True
    return condition(pod, "DisruptionTarget").get("status") == "True"


def vmi_deleted(change: Change, view: View) -> str | None:
    """Only the VM that controls a VMI stops it, for a cause in the VM or the VMI."""
    vmi = change.before or {}
    owner = controlling_uid(vmi)
    if owner is None:
        return f"VMI {change.key} has no owner and is deleted"
    vm = None if view.vm is None else msgspec.json.decode(view.vm)
    if vm is None or vm["metadata"]["uid"] != owner:
        return f"VMI {change.key} belongs to another object and is deleted"
    if _vm_wants_end(vm, None if view.vmi is None else msgspec.json.decode(view.vmi)):
        return None
    return f"VMI {change.key} is deleted under {strategy_of(vm)} without a cause"


def pod_deleted(change: Change, store: Store) -> str | None:
    """A Pod is deleted only when its run is unwanted or over. Both are permanent, so the current state can be
    checked.
    """
    vmi = vmi_of(change.before or {}, store)
    if vmi is None:
        owner = controlling_uid(change.before or {"metadata": {}})
        return None if owner is not None else f"Pod {change.key} is not ours and is deleted"
    if "deletionTimestamp" in vmi["metadata"] or phase(vmi) in OVER or _is_superseded(change, vmi):
        return None
    return f"Pod {change.key} is deleted under a live VMI"


def _is_superseded(change: Change, vmi: Json) -> bool:
    """Whether a later attempt has begun than that of a Pod without a grant."""
    status = vmi.get("status", {})
    is_granted = (change.before or {})["metadata"]["uid"] in (status.get("activePods") or {})
    return int(change.key.name.rsplit("-", 1)[-1]) < int(status.get("attempt", 0)) and not is_granted


def guest_ended(vmi_uid: str, pod_uid: str, store: Store) -> str | None:
    """virt-handler ends a guest only when its VMI is being deleted, over or gone, or when its Pod was deleted."""
    vmi = next(
        (body for _unused, body in store.list(VIRTUAL_MACHINE_INSTANCE) if body["metadata"]["uid"] == vmi_uid), None
    )
    pods = {body["metadata"]["uid"] for _unused, body in store.list(POD)}
    if vmi is None or "deletionTimestamp" in vmi["metadata"] or phase(vmi) in OVER or pod_uid not in pods:
        return None
    return f"the guest of {vmi['metadata']['name']} is ended, and no object says why"


def was_granted(vmi: Key, uid: str, store: Store, view: View) -> bool:
    """A guest is started only if its VMI granted it at some moment of the reconcile that starts it."""
    states = [store.find(VIRTUAL_MACHINE_INSTANCE, vmi)]
    for entry in reversed(store.histories[VIRTUAL_MACHINE_INSTANCE.kind]):
        if entry.version <= view.since:
            break
        if entry.key == vmi:
            states.append(entry.before)
    return any(
        state is not None
        and state["metadata"]["uid"] == uid
        and "deletionTimestamp" not in state["metadata"]
        and phase(state) == "Scheduled"
        for state in states
    )


def adopted(change: Change, store: Store, view: View) -> str | None:
    """Only a VM that existed at the start of the reconcile adopts a VMI."""
    owner = controlling_uid(change.after or {"metadata": {}})
    for entry in reversed(store.histories[VIRTUAL_MACHINE.kind]):
        if entry.version <= view.since:
            break
        if entry.before is not None and entry.before["metadata"]["uid"] == owner:
            return None
    vm = store.find(VIRTUAL_MACHINE, change.key)
    if vm is not None and vm["metadata"]["uid"] == owner and "deletionTimestamp" not in vm["metadata"]:
        return None
    return f"VMI {change.key} is adopted by a VM that is gone or going"


def overwritten(change: Change, seen: bytes | None) -> str | None:
    """A status write changes no field that has changed since its writer read it."""
    if change.before is None or change.after is None:
        return None
    before, after = change.before.get("status", {}), change.after.get("status", {})
    known: Mapping[str, object] = {} if seen is None else msgspec.json.decode(seen).get("status", {})
    for name in {*before, *after}:
        if before.get(name) != after.get(name) and before.get(name) != known.get(name):
            return f"{change.resource.kind} {change.key}: status.{name} is overwritten by a writer that had not seen it"
    return None


def phase(body: Json) -> str:
    return str(body.get("status", {}).get("phase", ""))


def vmi_of(pod: Json, store: Store) -> Json | None:
    """Return the VMI that controls a Pod, if it exists."""
    owner = controlling_uid(pod) if pod else None
    matching = (body for _unused, body in store.list(VIRTUAL_MACHINE_INSTANCE) if body["metadata"]["uid"] == owner)
    return next(matching, None)


def _vm_wants_end(vm: Json, vmi: Json | None) -> bool:
    strategy, requests = strategy_of(vm), vm.get("status", {}).get("stateChangeRequests") or []
    uid = None if vmi is None else vmi["metadata"]["uid"]
    # A Stop of an instance that is gone is complete: the next request counts.
    open_ones = (request for request in requests if request["action"] != "Stop" or request.get("uid") in (None, uid))
    first = next(open_ones, {"action": ""})
    now = "" if vmi is None else phase(vmi)
    return any(
        (
            "deletionTimestamp" in vm["metadata"],
            strategy == "Halted",
            first["action"] == "Stop" and strategy != "Once",
            strategy == "Always" and now in OVER,
            strategy == "RerunOnFailure" and now in OVER,
        )
    )


def key_of(body: Json) -> Key:
    return Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])
