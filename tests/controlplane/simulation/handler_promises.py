# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Preconditions of every write and every guest request of virt-handler, checked when it is sent, whatever its result.

As controller_promises: it shares no code with the reconciler.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from kubevirt_api.names import ROLE

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.simulation.agent_promises import word_is_bounded
from tests.controlplane.simulation.answers import Asked
from tests.controlplane.simulation.end_promises import end_follows
from tests.controlplane.simulation.launcher import is_alive, is_provisional
from tests.controlplane.simulation.vmi_status_promises import vmi_status_follows
from tests.support.store import OVER, Json

LauncherOf = Callable[[str], Launcher | None]
"""Returns the launcher of a Pod, by its UID."""


GraceLeft = Callable[[Json], float | None]
"""Returns what is left of a VMI's grace period; None while its deletion was not observed."""
ENDING = ("shut down", "destroy")
"""Verbs that end a guest."""
NEVER_ON = (("shut off", "unknown"), ("shut off", "failed"))
"""States of a domain that may be started: only defined, or after a failed start."""
ORPHAN_SECONDS = 60.0


def broken_promise(
    asked: Asked, node: str, launcher_of: LauncherOf, grace_left: GraceLeft, unseen_for: float | None
) -> str | None:
    """Return what is wrong with a request; None when nothing is. unseen_for: seconds without a VMI of the key."""
    match asked.call.verb, asked.call.kind:
        case "define" | "launch", "domain":
            return _start_is_granted(asked, node, launcher_of)
        case "prepare network of", "domain":
            return _guest_may_come(asked, launcher_of)
        case verb, "domain" if verb in ENDING:
            return (
                _end_has_a_cause(asked) or _end_is_timely(asked, grace_left) or _orphan_had_its_time(asked, unseen_for)
            )
        case "patch status of", _:
            return (
                _names_its_state(asked)
                or _phase_is_seen(asked, launcher_of)
                or end_follows(asked, launcher_of)
                or vmi_status_follows(asked)
                or word_is_bounded(asked)
            )
        case "patch" | "create" | "delete", _:
            return "virt-handler writes nothing but status"
    return None


def _start_is_granted(asked: Asked, node: str, launcher_of: LauncherOf) -> str | None:
    """A guest is started only in the Pod that the API server, in this reconcile, named as granted."""
    answer, uids = asked.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, asked.call.key), asked.call.asked
    if answer is None or answer.found is None:
        return "its VMI was not read before"
    meta, status = answer.found["metadata"], answer.found.get("status", {})
    if meta["uid"] != uids["vmi_uid"] or "deletionTimestamp" in meta:
        return "the VMI that was read is another, or goes"
    if status.get("phase") != "Scheduled" or status.get("activePods") != {uids["pod_uid"]: node}:
        return f"the VMI that was read is {status.get('phase')} and granted to {status.get('activePods')}"
    launcher = launcher_of(uids["pod_uid"])
    if asked.call.verb == "define" and (launcher is None or launcher.is_gone or _is_ending(launcher.pod)):
        return "its Pod is gone, going or over"
    state = None if launcher is None else launcher.status.state
    if asked.call.verb == "define" and state is not None and (state.life.value, state.reason) not in NEVER_ON:
        return f"it is known that its domain is {state.life.value}, {state.reason}"
    if asked.call.verb == "define" and launcher is not None and launcher.status.failure is not None:
        return f"it can never be started: {launcher.status.failure.reason}"
    return None


def _guest_may_come(asked: Asked, launcher_of: LauncherOf) -> str | None:
    """A network is only for a guest that should run: one that should end needs none, and does not wait for it. An
    existing one stays until the guest has ended.
    """
    launcher = launcher_of(asked.call.asked["pod_uid"])
    if launcher is not None and launcher.status.is_network_ready:
        return None
    vmi = _read(asked.view.vmi)
    return "its VMI goes, or is over" if vmi is not None and _is_over(vmi) else None


def _end_has_a_cause(asked: Asked) -> str | None:
    """A guest is ended only when its VMI is being deleted or over, or the API server no longer knows VMI or Pod."""
    uids, vmi = asked.call.asked, _read(asked.view.vmi)
    if vmi is not None and vmi["metadata"]["uid"] == uids["vmi_uid"] and _is_over(vmi):
        return None
    pods = [asked.in_pass.of(POD.kind, key) for key in _pod_keys(asked, uids["pod_uid"])]
    answers = ((asked.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, asked.call.key), uids["vmi_uid"]),)
    for answer, uid in (*answers, *((pod, uids["pod_uid"]) for pod in pods)):
        if answer is not None and (answer.found is None or answer.found["metadata"]["uid"] != uid):
            return None
    answer = asked.in_pass.of(VIRTUAL_MACHINE_INSTANCE.kind, asked.call.key)
    if answer is not None and _is_no_longer_its(answer.found, uids["pod_uid"]):
        return None
    return "nothing that is seen, and nobody who was asked, gives a cause"


def _is_no_longer_its(vmi: Json, pod_uid: str) -> bool:
    """Whether a VMI was granted to another Pod, or its run is over."""
    status = vmi.get("status", {})
    granted = status.get("activePods") or {}
    return status.get("phase") in OVER or (bool(granted) and pod_uid not in granted)


def _end_is_timely(asked: Asked, grace_left: GraceLeft) -> str | None:
    """The guest of a deleted VMI is asked to shut down until its grace period is over, and then ended; not sooner,
    not later.
    """
    vmi = _read(asked.view.vmi)
    if vmi is None or vmi["metadata"]["uid"] != asked.call.asked["vmi_uid"]:
        return None
    remaining, is_polite = grace_left(vmi), asked.call.verb == "shut down"
    if vmi.get("status", {}).get("phase") in OVER or "deletionTimestamp" not in vmi["metadata"]:
        return "it is asked to end, and nobody waits for it" if is_polite else None
    if remaining is not None and is_polite and remaining <= 0:
        return f"it is asked to end, and its grace period is over since {-remaining:.0f} s"
    keys = (*_pod_keys(asked, asked.call.asked["pod_uid"]),)
    was_asked = any(asked.in_pass.of(POD.kind, key) is not None for key in keys)
    if not is_polite and not was_asked and remaining is not None and remaining > 0:
        return f"it is ended, and its grace period lasts {remaining:.0f} s more"
    return None


def _orphan_had_its_time(asked: Asked, unseen_for: float | None) -> str | None:
    """A guest without a visible VMI runs on for a minute: mostly the VMI is only late."""
    keys = (*_pod_keys(asked, asked.call.asked["pod_uid"]),)
    is_for_its_pod = any(asked.in_pass.of(POD.kind, key) is not None for key in keys)
    if unseen_for is None or is_for_its_pod or unseen_for >= ORPHAN_SECONDS:
        return None
    return f"its VMI is not seen since {unseen_for:.1f} s"


def _names_its_state(asked: Asked) -> str | None:
    missing = [item for item in ("uid", "resource_version") if not asked.call.asked.get(item)]
    return f"it names no {' and no '.join(missing)}" if missing else None


def _phase_is_seen(asked: Asked, launcher_of: LauncherOf) -> str | None:
    """Running needs an observation after the response to the start; that nothing is left needs the last look."""
    new_status, vmi = asked.call.asked["patch"].get("status", {}), asked.decided_on
    if new_status.get("phase") in (None, vmi["status"]["phase"]):
        return None
    (pod_uid,) = vmi["status"]["activePods"]
    reason = new_status.get("reason", "")
    if new_status["phase"] == "Running":
        is_first = vmi["status"]["phase"] == "Scheduled"
        return _guest_is_seen(launcher_of(pod_uid), is_first=is_first)
    if reason not in ("LauncherGone", "GuestLost"):
        return None
    look = asked.ever.of("launcher", Key("", pod_uid))
    if look is None:
        return f"{reason}, and nobody has looked"
    if reason == "LauncherGone" and look.version < _unlisted_at(asked, pod_uid):
        return "LauncherGone, and the last look was before its Pod was removed"
    launcher = launcher_of(pod_uid)
    if reason == "GuestLost" and (launcher is None or launcher.is_gone):
        return "GuestLost, and its Pod is not listed: its QEMU is not all that may be left of it"
    result = look.found
    remaining = (result.emulators,) if reason == "GuestLost" else (result.has_directory, result.processes)
    return f"{reason}, and the last look found {result}" if any(remaining) else None


def _guest_is_seen(launcher: Launcher | None, *, is_first: bool) -> str | None:
    if launcher is not None and launcher.operation and is_first:
        return f"Running, and somebody is yet to {launcher.operation}"
    if launcher is not None and launcher.is_gone:
        return "Running, and its Pod was removed: its guest is about to be ended"
    seen = None if launcher is None else launcher.status
    if seen is None or not seen.is_connected or seen.state is None or not is_alive(seen.state):
        return "Running, and no guest is seen"
    return "Running, and the guest is seen to be starting" if is_provisional(seen.state) else None


def _unlisted_at(asked: Asked, pod_uid: str) -> int:
    """Return the version of the store at which that Pod was last removed from the selection."""
    result, was_listed = 0, False
    for history in asked.store.histories[POD.kind]:
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


def _pod_keys(asked: Asked, uid: str) -> set[Key]:
    """Return the keys under which that Pod is, or was, known."""
    history = asked.store.histories[POD.kind]
    return {item.key for item in history if (item.after or item.before or {})["metadata"]["uid"] == uid}


def _read(raw: bytes | None) -> Json | None:
    return None if raw is None else msgspec.json.decode(raw)
