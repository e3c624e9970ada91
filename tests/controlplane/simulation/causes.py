# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What allows a write that cannot be taken back: a model of causes, on the objects as the writer saw them.

It shares no code with the controllers' decisions. Each function returns why the write must not be, or None.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.answers import View
from tests.controlplane.simulation.ledger import controlling_uid, strategy_of
from tests.support.store import OVER, Change, Json, Store


def begins_to_go(change: Change) -> bool:
    """Tell whether an object is deleted by this change, or begins to be."""
    before, after = change.before, change.after
    if before is None or "deletionTimestamp" in before["metadata"]:
        return False
    return after is None or "deletionTimestamp" in after["metadata"]


def vmi_deleted(change: Change, view: View) -> str | None:
    """A VMI is stopped only by the VM that controls it, for a cause that is in that VM or in the VMI."""
    vmi = change.before or {}
    owner = controlling_uid(vmi)
    if owner is None:
        return f"VMI {change.key} belongs to nobody and is deleted"
    vm = None if view.vm is None else msgspec.json.decode(view.vm)
    if vm is None or vm["metadata"]["uid"] != owner:
        return f"VMI {change.key} belongs to another object and is deleted"
    if _vm_wants_end(vm, None if view.vmi is None else msgspec.json.decode(view.vmi)):
        return None
    return f"VMI {change.key} is deleted under {strategy_of(vm)} without a cause"


def pod_deleted(change: Change, store: Store) -> str | None:
    """A Pod is deleted only when its run is unwanted or over. Both are for good, so what is true now was seen."""
    vmi = vmi_of(change.before or {}, store)
    if vmi is None:
        owner = controlling_uid(change.before or {"metadata": {}})
        return None if owner is not None else f"Pod {change.key} is not ours and is deleted"
    if "deletionTimestamp" in vmi["metadata"] or phase(vmi) in OVER or _is_superseded(change, vmi):
        return None
    return f"Pod {change.key} is deleted under a live VMI"


def _is_superseded(change: Change, vmi: Json) -> bool:
    """Tell whether a later attempt was begun than that of a Pod, which was not given the start."""
    status = vmi.get("status", {})
    is_granted = (change.before or {})["metadata"]["uid"] in (status.get("activePods") or {})
    return int(change.key.name.rsplit("-", 1)[-1]) < int(status.get("attempt", 0)) and not is_granted


def guest_ended(vmi_uid: str, pod_uid: str, store: Store) -> str | None:
    """virt-handler ends a guest only when its VMI is going, over or gone, or when its Pod was removed."""
    vmi = next(
        (one for _unused, one in store.list(VIRTUAL_MACHINE_INSTANCE) if one["metadata"]["uid"] == vmi_uid), None
    )
    pods = {one["metadata"]["uid"] for _unused, one in store.list(POD)}
    if vmi is None or "deletionTimestamp" in vmi["metadata"] or phase(vmi) in OVER or pod_uid not in pods:
        return None
    return f"the guest of {vmi['metadata']['name']} is ended, and no object says why"


def was_granted(vmi: Key, uid: str, store: Store, view: View) -> bool:
    """A guest is started only if its VMI allowed it at some moment of the pass that starts it."""
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
    """A VMI is adopted only by a VM that lived when the pass began."""
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
    """A status write changes no member that its writer had not seen as it was."""
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
    found = (one for _unused, one in store.list(VIRTUAL_MACHINE_INSTANCE) if one["metadata"]["uid"] == owner)
    return next(found, None)


def _vm_wants_end(vm: Json, vmi: Json | None) -> bool:
    strategy, requests = strategy_of(vm), vm.get("status", {}).get("stateChangeRequests") or []
    uid = None if vmi is None else vmi["metadata"]["uid"]
    # A Stop of an instance that is no more is done: what follows it is what is asked now.
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
