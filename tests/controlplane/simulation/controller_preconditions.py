# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preconditions of every write of virt-controller, checked when it is sent, whatever its result.

The oracles judge results, and show a bug only when other faults coincide. A write without its precondition, or without
the read before it, is always wrong. It shares no code with the reconcilers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from kubevirt_api.names import VM_FINALIZER, VM_GENERATION, VMI_FINALIZER

from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.answers import Request, was_hidden
from tests.controlplane.simulation.kubernetes import OUT_OF_SERVICE, has_taint
from tests.controlplane.simulation.ledger import asks_for_run, controlling_uid
from tests.controlplane.simulation.listing import taken_off_rightly
from tests.controlplane.simulation.machines.truth import form
from tests.controlplane.simulation.start_preconditions import (
    end_is_noted,
    is_paused_as_asked,
    is_switched_on_as_asked,
    name_is_free,
    seconds_to_wait,
    start_is_taken_off,
)
from tests.support.store import OVER, Json

LOOKED_BACK = 2
"""Earlier attempts of a run that may still have a Pod."""
HANDED_OVER = ("Scheduled", "Running", "Unknown")
LEFT_WAITING = ("InvalidDomain", "InvalidSpec", "StartFailed", "GuestLost")
"""Reasons of a run whose launcher waits for ever: it must be ended."""
TIMED_OUT = "RunTimedOut"
"""The reason of a run whose launcher did not start in time."""
Rule = Callable[[Request], str | None]


def unmet_precondition(request: Request) -> str | None:
    """Return what is wrong with a request; None when nothing is."""
    rules = RULES.get((request.call.verb, request.call.kind), ())
    return next(filter(None, (rule(request) for rule in rules)), None)


def _names_its_state(request: Request) -> str | None:
    """A patch or delete names exactly the version that was decided on."""
    missing = [item for item in ("uid", "resource_version") if not request.call.asked.get(item)]
    return f"it names no {' and no '.join(missing)}" if missing else None


def _names_its_object(request: Request) -> str | None:
    return None if request.call.asked.get("uid") else "it names no uid"


def _is_deleted_once(request: Request) -> str | None:
    """An object that this process has deleted successfully is not deleted again."""
    kind, uid = request.call.kind, request.call.asked.get("uid", "")
    if not request.ever.has_ended(kind, uid) or was_hidden(request.store, kind, uid):
        return None
    return "it has deleted this very object before"


def _run_is_asked_for(request: Request) -> str | None:
    """A VMI is created only for a VM that the API server returned in this reconcile, and that asks for a run."""
    answer, body = request.in_pass.of(VIRTUAL_MACHINE.kind, request.call.key), request.call.asked["body"]
    if answer is None or answer.value is None:
        return "the VM was not read before"
    if answer.value["metadata"]["uid"] != controlling_uid(body):
        return "the VM that was read is not the one that is to control it"
    if "deletionTimestamp" in answer.value["metadata"] or not asks_for_run(answer.value):
        return "the VM that was read asks for no run"
    remaining = seconds_to_wait(answer.value, request.now)
    if remaining > 0:
        return f"the back-off of the VM that was read lasts {remaining:.0f} s more"
    return None if VMI_FINALIZER in body["metadata"]["finalizers"] else "it has no finalizer"


def _is_what_its_vm_says(request: Request) -> str | None:
    """A VMI matches the VM that was read, and names its generation."""
    answer, body = request.in_pass.of(VIRTUAL_MACHINE.kind, request.call.key), request.call.asked["body"]
    if answer is None or answer.value is None:
        return None
    annotation, generation = body["metadata"]["annotations"].get(VM_GENERATION), answer.value["metadata"]["generation"]
    if annotation != str(generation):
        return f"it says that it is made from generation {annotation}, and it is made from {generation}"
    made, asked_for = form(body["spec"]), form(answer.value["spec"]["template"]["spec"])
    return None if made == asked_for else f"it is made as {made}, and the VM asks for {asked_for}"


def _is_made_once(request: Request) -> str | None:
    """A Pod that this process created, and that is gone, is not created again: its run has ended."""
    if request.ever.has_found(POD.kind, request.call.key, controlling_uid(request.call.asked["body"]) or ""):
        return "the API server returned this Pod before"
    return "it has made this very Pod before" if request.ever.has_made(POD.kind, request.call.key) else None


def _earlier_ones_are_gone(request: Request) -> str | None:
    """The Pod of a further attempt is created only after the API server has said, since that attempt began, that
    no other exists.
    """
    vmi = None if request.view.vmi is None else msgspec.json.decode(request.view.vmi)
    attempt = 0 if vmi is None else int(vmi.get("status", {}).get("attempt", 0))
    if vmi is None or attempt < 2:
        return None
    since = _version(request, lambda item: int(item.get("status", {}).get("attempt", 0)) >= attempt, vmi)
    return None if since is None else _looked_for_pods(request, vmi, since, of_any=True, is_past_making=False)


def _vm_has_no_instance(request: Request) -> str | None:
    """The finalizer of a VM is removed only after the API server said, in this reconcile, that it has no VMI."""
    vm = request.decided_on
    if not _lets_go(request, vm, VM_FINALIZER):
        return None
    if "deletionTimestamp" not in vm["metadata"]:
        return "the finalizer of a VM that is not deleted is removed"
    answer = request.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, request.call.key)
    if answer is None:
        return "the finalizer of a VM is removed, and its instance was not read"
    own = answer.value is not None and controlling_uid(answer.value) == vm["metadata"]["uid"]
    return "the finalizer of a VM is removed, and its instance exists" if own else None


def _vmi_has_no_pod(request: Request) -> str | None:
    """The finalizer of a VMI is removed only when its end is recorded, and the API server said after its deletion
    that it has no Pod.
    """
    vmi = request.decided_on
    if not _lets_go(request, vmi, VMI_FINALIZER):
        return None
    since = _version(request, lambda item: "deletionTimestamp" in item["metadata"], vmi)
    if since is None:
        return "the finalizer of a VMI that is not deleted is removed"
    if vmi.get("status", {}).get("phase") not in OVER:
        return "the finalizer of a VMI is removed before its status reports the end"
    return _looked_for_pods(request, vmi, since, of_any=True)


def _vm_lives(request: Request) -> str | None:
    """A VMI is adopted only for a VM that the API server returned in this reconcile."""
    body = {"metadata": request.call.asked["patch"].get("metadata", {})}
    owner = controlling_uid(body)
    if owner is None or controlling_uid(request.decided_on) is not None:
        return None
    answer = request.in_pass.of(VIRTUAL_MACHINE.kind, request.call.key)
    if answer is None or answer.value is None:
        return "a VMI is adopted, and the VM was not read before"
    meta = answer.value["metadata"]
    return "a VMI is adopted for a VM that goes" if meta["uid"] != owner or "deletionTimestamp" in meta else None


def _log_is_kept(request: Request) -> str | None:
    """An ended Pod is deleted with its VMI and not before: its log is kept. A granted Pod ends by itself."""
    pod = request.seen(POD, request.call.key)
    vmi = None if request.view.vmi is None else msgspec.json.decode(request.view.vmi)
    if pod is None or vmi is None or "deletionTimestamp" in vmi["metadata"]:
        return None
    status = vmi.get("status", {})
    is_granted = pod["metadata"]["uid"] in (status.get("activePods") or {})
    if not is_granted and int(request.call.key.name.rsplit("-", 1)[-1]) < int(status.get("attempt", 0)):
        return None  # a further attempt has begun
    if pod.get("status", {}).get("phase") in OVER:
        return "it has ended, and its log is thrown away"
    return "its guest's launcher ends by itself" if is_granted and status.get("reason") not in LEFT_WAITING else None


def _end_is_proven(request: Request) -> str | None:
    """After the hand-over virt-controller reports only an end that the kubelet reported, or that follows from the end
    of the node.

    Before the hand-over: an end of the Pod, or that the API server knows no Pod of the run.
    """
    vmi, new_status = request.decided_on, request.call.asked["patch"].get("status", {})
    before = vmi.get("status", {})
    if new_status.get("phase") not in OVER or before.get("phase") in OVER:
        return None
    if before.get("phase", "") not in HANDED_OVER:
        return None if new_status.get("reason") == TIMED_OUT else _never_began(request, vmi)
    granted = before.get("activePods") or {}
    if any(_is_over(pod) for pod in _states_of_pods(request, set(granted))):
        return None
    if all(_is_node_out(request, name) for name in granted.values()):
        return _looked_for_pods(request, vmi, _granted_at(request, vmi), of_any=False)
    return f"a run is over ({new_status.get('reason') or before.get('reason')}), without a proof"


def _never_began(request: Request, vmi: Json) -> str | None:
    uid, history = vmi["metadata"]["uid"], request.store.histories[POD.kind]
    attempt = max(1, int(vmi.get("status", {}).get("attempt", 0)))
    of_attempt = (item for item in history if item.key.name.endswith(f"-{attempt}"))
    pods = [item.after for item in of_attempt if item.after is not None and controlling_uid(item.after) == uid]
    if any(_is_over(pod) or "deletionTimestamp" in pod["metadata"] for pod in pods):
        return None
    if not pods and request.call.asked["patch"]["status"].get("reason") == "PodDeleted":
        return "its Pod was deleted, and there never was one"
    if "deletionTimestamp" in vmi["metadata"]:
        since = _version(request, lambda item: "deletionTimestamp" in item["metadata"], vmi)
    else:
        since = _version(request, lambda item: int(item.get("status", {}).get("attempt", 0)) >= attempt, vmi)
    return _looked_for_pods(request, vmi, since or 0, of_any=True)


def _absence_is_asked(request: Request) -> str | None:
    """Only the API server can say that a granted Pod is gone."""
    vmi, new_status = request.decided_on, request.call.asked["patch"].get("status", {})
    if new_status.get("phase") != "Unknown":
        return None
    return _looked_for_pods(request, vmi, _granted_at(request, vmi), of_any=False)


RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    ("patch", VIRTUAL_MACHINE.kind): (_names_its_state, _vm_has_no_instance, is_switched_on_as_asked),
    ("patch status of", VIRTUAL_MACHINE.kind): (_names_its_state,),
    ("create", VIRTUAL_MACHINE_INSTANCE.kind): (
        name_is_free,
        _run_is_asked_for,
        _is_what_its_vm_says,
        is_paused_as_asked,
    ),
    ("create", POD.kind): (_is_made_once, _earlier_ones_are_gone),
    ("patch", VIRTUAL_MACHINE_INSTANCE.kind): (_names_its_state, _vmi_has_no_pod, _vm_lives),
    ("patch status of", VIRTUAL_MACHINE_INSTANCE.kind): (
        _names_its_state,
        _end_is_proven,
        _absence_is_asked,
    ),
    ("delete", VIRTUAL_MACHINE_INSTANCE.kind): (
        _names_its_state,
        _is_deleted_once,
        end_is_noted,
        start_is_taken_off,
    ),
    ("patch", POD.kind): (_names_its_state,),
    ("patch", NODE.kind): (taken_off_rightly,),
    ("delete", POD.kind): (_names_its_object, _is_deleted_once, _log_is_kept),
}


def _lets_go(request: Request, body: Json, finalizer: str) -> bool:
    meta, finalizers = request.call.asked["patch"].get("metadata", {}), body["metadata"].get("finalizers", ())
    return "finalizers" in meta and finalizer in finalizers and finalizer not in (meta["finalizers"] or ())


def _looked_for_pods(
    request: Request, vmi: Json, since: int, *, of_any: bool, is_past_making: bool = True
) -> str | None:
    """Return which Pod of a run was not read since then, or exists. of_any: otherwise only granted ones count.

    is_past_making: nor since this process tried to create it.
    """
    granted = vmi.get("status", {}).get("activePods") or {}
    for name in _pod_names(vmi):
        key = Key(request.call.key.namespace, name)
        answer = request.ever.of(POD.kind, key)
        if answer is None or answer.version < max(since, request.ever.tried_at(POD.kind, key) if is_past_making else 0):
            return f"Pod {name} was not read"
        result = answer.value
        is_own = result is not None and of_any and controlling_uid(result) == vmi["metadata"]["uid"]
        if result is not None and (is_own or result["metadata"]["uid"] in granted):
            return f"Pod {name} was found"
    return None


def _pod_names(vmi: Json) -> Iterator[str]:
    meta, attempt = vmi["metadata"], max(int(vmi.get("status", {}).get("attempt", 0)), 1)
    head = f"virt-launcher-{meta['name']}-{meta['uid'].replace('-', '')[:8]}".replace(".", "-")
    for number in range(max(1, attempt - LOOKED_BACK), attempt + 1):
        yield f"{head}-{number}"


def _granted_at(request: Request, vmi: Json) -> int:
    return _version(request, lambda item: bool(item.get("status", {}).get("activePods")), vmi) or 0


def _version(request: Request, is_so: Callable[[Json], bool], vmi: Json) -> int | None:
    """Return the version of the store since which a condition holds for a VMI."""
    result = None
    for entry in reversed(request.store.histories[VIRTUAL_MACHINE_INSTANCE.kind]):
        after = entry.after
        if after is None or after["metadata"]["uid"] != vmi["metadata"]["uid"]:
            continue
        if not is_so(after):
            break
        result = entry.version
    return result


def _states_of_pods(request: Request, uids: set[str]) -> Iterator[Json]:
    for entry in reversed(request.store.histories[POD.kind]):
        if entry.after is not None and entry.after["metadata"]["uid"] in uids:
            yield entry.after


def _is_over(pod: Json) -> bool:
    states = (item.get("state", {}) for item in pod["status"].get("containerStatuses", ()))
    return pod["status"]["phase"] in OVER or any("terminated" in item for item in states)


def _is_node_out(request: Request, name: str) -> bool:
    """Whether the API server said so about the Node as the process may know it.

    A Node recreated after that response, and not yet in the cache, does not matter.
    """
    key = Key("", name)
    answer = request.ever.of(NODE.kind, key)
    made = [
        history.version for history in request.store.histories[NODE.kind] if history.key == key and not history.before
    ]
    is_unseen = request.seen(NODE, key) is None and request.store.find(NODE, key) is not None
    known = made[:-1] if is_unseen else made
    return (
        answer is not None
        and answer.version >= max(known, default=0)
        and (answer.value is None or has_taint(answer.value, OUT_OF_SERVICE))
    )
