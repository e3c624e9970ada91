# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether a guest is alive, dead or unknown, by proof. Pure.

A guest is dead only with proof: libvirt reports how its domain ended, the kubelet reports that its launcher ended, or
the node has neither directory nor process of its Pod. An unreachable peer and an unlisted object prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.launch_plan import CRASHES, NOT_IN_TIME
from controlplane.api.objects.pod import GUEST_CRASHED, REASONS, Pod, find_end_failure
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.observed import Identity
from controlplane.domain.state import Life, Outcome, State, derive_outcome
from controlplane.virt_handler.vmi.migration_source import was_lost_in_migration
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus, Look, World

STARTABLE = frozenset({"unknown", "failed"})
"""Reasons of a domain that is off because it never ran: it is only defined, or its start failed."""
LOST = frozenset({"unknown", "failed", "daemon"})
"""Reasons of a domain that has run: QEMU is gone, and libvirt does not know how it ended."""


@dataclass(frozen=True, slots=True)
class Alive:
    state: State


@dataclass(frozen=True, slots=True)
class Dead:
    outcome: Outcome
    reason: str = ""
    """Reason of the condition; "" if the end needs no explanation."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    why: str


Liveness = Alive | Dead | Unknown


def judge_run(world: World) -> Liveness:
    """Judge the run of the world's VMI by its launcher, else by the last search of the node."""
    vmi, launcher = world.vmi, world.launcher
    if vmi is None:
        return Unknown("this node has no VMI of that name")
    liveness: Liveness = Unknown("this node has no launcher Pod of it")
    if launcher is not None:
        liveness = _with_cause(judge(launcher, vmi.metadata.uid), vmi, launcher)
    if isinstance(liveness, Unknown) and launcher is not None and was_lost_in_migration(vmi, launcher.status):
        liveness = Dead("Failed", "GuestLost", "the guest moved to a target that has ended")
    if not isinstance(liveness, Unknown):
        return liveness
    if world.lost_pod:
        return _by_traces(world.lost_pod, world.look)
    return _by_emulators(world.look) if missing_pod(world) else liveness


def missing_pod(world: World) -> str:
    """Return the UID of the Pod whose guest can only be judged by a search of the node; "" if there is none.

    The API server does not list the Pod, or libvirt in it has lost a domain that has run there.
    """
    vmi, launcher = world.vmi, world.launcher
    if world.lost_pod or vmi is None or launcher is None:
        return world.lost_pod
    status = launcher.status
    if not (vmi.has_run or status.has_run or _was_up(status.state)):
        return ""
    is_lost = status.is_connected and _is_lost(status.state)
    return launcher.pod.uid if is_lost and not _foreign(status, vmi.metadata.uid, launcher.pod.uid) else ""


def judge(launcher: Launcher, vmi_uid: str) -> Liveness:
    """Judge a guest by its launcher. A domain with another identity proves nothing about this VMI."""
    status, pod = launcher.status, launcher.pod
    state = status.state if status.is_connected else None
    foreign = _foreign(status, vmi_uid, pod.uid)
    if state is not None and not foreign:
        if state.life.is_up:
            return Unknown("QEMU is being started") if state.is_starting else Alive(state)
        outcome = derive_outcome(state, is_acpi_expected=_is_acpi_expected(status))
        if outcome is not None:
            return _ended(state, outcome)
    if pod.is_over or pod.compute.terminated is not None:
        return _by_pod(pod)
    if status.failure is not None:
        return Dead("Failed", status.failure.reason, status.failure.message)
    return Unknown(foreign or ("the domain is not started" if status.is_connected else "the launcher is not connected"))


def is_own(launcher: Launcher, vmi_uid: str) -> bool:
    """Tell whether a launcher is this VMI's: the VMI controls the Pod, and a domain in it has the VMI's identity."""
    owner = launcher.pod.owner
    return owner is not None and owner.uid == vmi_uid and not _foreign(launcher.status, vmi_uid, launcher.pod.uid)


def is_startable(status: LauncherStatus) -> bool:
    """Tell whether the launcher is connected and no domain has run in it."""
    if not status.is_connected or status.failure is not None:
        return False
    state = status.state
    return state is None or (state.life is Life.SHUT_OFF and state.reason in STARTABLE)


def _with_cause(liveness: Liveness, vmi: VirtualMachineInstance, launcher: Launcher) -> Liveness:
    """Replace the cause of an intended end, which is not a crash."""
    state = launcher.status.state
    was_ended = state is not None and state.life is Life.SHUT_OFF and state.reason in ("destroyed", "crashed")
    if not isinstance(liveness, Dead) or not was_ended or state is None:
        return liveness
    if launcher.is_gone:
        return Dead("Failed", "PodRemoved", "its launcher Pod was removed by force, and the guest was ended with it")
    is_hurried = state.reason == "crashed" or vmi.spec.grace_period_seconds == 0
    if liveness.outcome == "Failed" and vmi.metadata.deletion_timestamp is not None and is_hurried:
        return Dead("Failed", "Deleted", "the guest was ended because its VMI is deleted")
    return liveness


def _by_traces(pod_uid: str, look: Look | None) -> Liveness:
    if look is None:
        return Unknown(f"the API server does not list Pod {pod_uid} on this node")
    if look.traces.is_clean:
        message = f"Pod {pod_uid} was removed, and this node has neither its directory nor a process of it"
        return Dead("Failed", "LauncherGone", message)
    traces = ["its directory"] if look.traces.has_directory else []
    traces += [f"{look.traces.processes} processes of it"] if look.traces.processes else []
    return Unknown(f"the API server does not list Pod {pod_uid}, but this node has {' and '.join(traces)}")


def _by_emulators(look: Look | None) -> Liveness:
    """Judge a guest that libvirt lost. Only the absence of its QEMU process proves its end."""
    message = "libvirt in the launcher has lost the domain that ran there"
    if look is None:
        return Unknown(message)
    if look.traces.emulators:
        return Unknown(f"{message}, but its QEMU runs: only deleting the VMI ends it")
    return Dead("Failed", "GuestLost", "QEMU is gone, and libvirt in the launcher does not know how it ended")


def _was_up(state: State | None) -> bool:
    """Tell whether a restarted libvirt found QEMU running and ended it: this process has not observed the start."""
    return state is not None and state.life is Life.SHUT_OFF and state.reason == "daemon"


def _is_lost(state: State | None) -> bool:
    return state is None or (state.life is Life.SHUT_OFF and state.reason in LOST)


def _foreign(status: LauncherStatus, vmi_uid: str, pod_uid: str) -> str:
    if status.state is None or status.observed is None:
        return ""
    identity: Identity | None = status.observed.identity
    if identity is None or (identity.uid, identity.pod_uid) != (vmi_uid, pod_uid):
        return "the launcher's domain has another identity"
    return ""


def _is_acpi_expected(status: LauncherStatus) -> bool:
    observed = status.observed
    if observed is None or observed.identity is None:
        return True
    return observed.has_acpi and observed.identity.grace_period_seconds > 0


def _ended(state: State, outcome: Outcome) -> Dead:
    if outcome == "Succeeded":
        return Dead("Succeeded")
    if state.life is Life.CRASHED or state.reason == "crashed":
        message = CRASHES.get(state.reason, "QEMU crashed or was killed")
        return Dead("Failed", REASONS.get(message, GUEST_CRASHED), message)
    if state.reason == "destroyed":
        return Dead("Failed", REASONS[NOT_IN_TIME], NOT_IN_TIME)
    return Dead("Failed", "GuestFailed", f"the domain is {state.life.value}: {state.reason}")


def _by_pod(pod: Pod) -> Dead:
    ended = pod.compute.terminated
    has_succeeded = ended is not None and ended.exit_code == 0
    # The launcher of an evicted Pod can exit with 0 as well.
    if pod.status.phase == "Succeeded" or (has_succeeded and pod.status.phase != "Failed"):
        return Dead("Succeeded")
    return Dead("Failed", *find_end_failure(pod))
