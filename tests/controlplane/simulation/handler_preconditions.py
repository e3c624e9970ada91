# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preconditions of every write and every guest request of virt-handler, checked when it is sent, whatever its result.

As controller_preconditions: it shares no code with the reconciler.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from kubevirt_api.names import ROLE

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.simulation.answers import Request
from tests.controlplane.simulation.launcher import is_alive, is_provisional
from tests.support.store import OVER, Json

LauncherOf = Callable[[str], Launcher | None]
"""Returns the launcher of a Pod, by its UID."""
ENDING = ("shut down", "destroy")
"""Verbs that end a guest."""
NEVER_ON = (("shut off", "unknown"), ("shut off", "failed"))
"""States of a domain that may be started: only defined, or after a failed start."""


def unmet_precondition(request: Request, node: str, launcher_of: LauncherOf) -> str | None:
    """Return what is wrong with a request; None when nothing is."""
    match request.call.verb, request.call.kind:
        case "define" | "launch", "domain":
            return _start_is_granted(request, node, launcher_of)
        case verb, "domain" if verb in ENDING:
            return _end_has_a_cause(request)
        case "patch status of", kind if kind == VIRTUAL_MACHINE_INSTANCE.kind:
            return _names_its_state(request) or _phase_is_seen(request, launcher_of)
    return None


def _start_is_granted(request: Request, node: str, launcher_of: LauncherOf) -> str | None:
    """A guest is started only in the Pod that the API server, in this reconcile, named as granted."""
    answer, uids = request.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, request.call.key), request.call.asked
    if answer is None or answer.value is None:
        return "its VMI was not read before"
    meta, status = answer.value["metadata"], answer.value.get("status", {})
    if meta["uid"] != uids["vmi_uid"] or "deletionTimestamp" in meta:
        return "the VMI that was read is another, or goes"
    if status.get("phase") != "Scheduled" or status.get("activePods") != {uids["pod_uid"]: node}:
        return f"the VMI that was read is {status.get('phase')} and granted to {status.get('activePods')}"
    launcher = launcher_of(uids["pod_uid"])
    if request.call.verb == "define" and (launcher is None or launcher.is_gone or _is_ending(launcher.pod)):
        return "its Pod is gone, going or over"
    state = None if launcher is None else launcher.status.state
    if request.call.verb == "define" and state is not None and (state.life.value, state.reason) not in NEVER_ON:
        return f"its domain was observed as {state.life.value}, {state.reason}"
    if request.call.verb == "define" and launcher is not None and launcher.status.failure is not None:
        return f"it can never be started: {launcher.status.failure.reason}"
    return None


def _end_has_a_cause(request: Request) -> str | None:
    """A guest is ended only when its VMI is being deleted or over, or the API server no longer knows VMI or Pod."""
    uids, vmi = request.call.asked, _read(request.view.vmi)
    if vmi is not None and vmi["metadata"]["uid"] == uids["vmi_uid"] and _is_over(vmi):
        return None
    pods = [request.in_pass.of(POD.kind, key) for key in _pod_keys(request, uids["pod_uid"])]
    answers = ((request.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, request.call.key), uids["vmi_uid"]),)
    for answer, uid in (*answers, *((pod, uids["pod_uid"]) for pod in pods)):
        if answer is not None and (answer.value is None or answer.value["metadata"]["uid"] != uid):
            return None
    answer = request.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, request.call.key)
    if answer is not None and _is_no_longer_its(answer.value, uids["pod_uid"]):
        return None
    return "no object gives a cause"


def _is_no_longer_its(vmi: Json, pod_uid: str) -> bool:
    """Whether a VMI was granted to another Pod, or its run is over."""
    status = vmi.get("status", {})
    granted = status.get("activePods") or {}
    return status.get("phase") in OVER or (bool(granted) and pod_uid not in granted)


def _names_its_state(request: Request) -> str | None:
    missing = [item for item in ("uid", "resource_version") if not request.call.asked.get(item)]
    return f"it names no {' and no '.join(missing)}" if missing else None


def _phase_is_seen(request: Request, launcher_of: LauncherOf) -> str | None:
    """Running needs an observation after the response to the start; that nothing is left needs the last look."""
    new_status, vmi = request.call.asked["patch"].get("status", {}), request.decided_on
    if new_status.get("phase") in (None, vmi["status"]["phase"]):
        return None
    (pod_uid,) = vmi["status"]["activePods"]
    reason = new_status.get("reason", "")
    if new_status["phase"] == "Running":
        is_first = vmi["status"]["phase"] == "Scheduled"
        return _guest_is_seen(launcher_of(pod_uid), is_first=is_first)
    if reason not in ("LauncherGone", "GuestLost"):
        return None
    look = request.ever.of("launcher", Key("", pod_uid))
    if look is None:
        return f"{reason}, without a search for the launcher"
    if reason == "LauncherGone" and look.version < _unlisted_at(request, pod_uid):
        return "LauncherGone, and the last look was before its Pod was removed"
    launcher = launcher_of(pod_uid)
    if reason == "GuestLost" and (launcher is None or launcher.is_gone):
        return "GuestLost, and its Pod is not listed: other processes of it may remain"
    result = look.value
    remaining = (result.emulators,) if reason == "GuestLost" else (result.has_directory, result.processes)
    return f"{reason}, and the last look found {result}" if any(remaining) else None


def _guest_is_seen(launcher: Launcher | None, *, is_first: bool) -> str | None:
    if launcher is not None and launcher.operation and is_first:
        return f"Running, and the operation {launcher.operation} is in progress"
    if launcher is not None and launcher.is_gone:
        return "Running, and its Pod was removed: its guest is about to be ended"
    seen = None if launcher is None else launcher.status
    if seen is None or not seen.is_connected or seen.state is None or not is_alive(seen.state):
        return "Running, and no guest is seen"
    return "Running, and the guest is seen to be starting" if is_provisional(seen.state) else None


def _unlisted_at(request: Request, pod_uid: str) -> int:
    """Return the version of the store at which that Pod was last removed from the selection."""
    result, was_listed = 0, False
    for history in request.store.histories[POD.kind]:
        body = history.after or history.before or {}
        if body["metadata"]["uid"] != pod_uid:
            continue
        is_listed = history.after is not None and ROLE in body["metadata"].get("labels", {})
        result = history.version if was_listed and not is_listed else result
        was_listed = is_listed
    return result


def _is_over(vmi: Json) -> bool:
    return "deletionTimestamp" in vmi["metadata"] or vmi.get("status", {}).get("phase") in OVER


def _is_ending(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None or pod.status.phase in OVER


def _pod_keys(request: Request, uid: str) -> set[Key]:
    """Return the keys under which that Pod is, or was, known."""
    history = request.store.histories[POD.kind]
    return {item.key for item in history if (item.after or item.before or {})["metadata"]["uid"] == uid}


def _read(raw: bytes | None) -> Json | None:
    return None if raw is None else msgspec.json.decode(raw)
