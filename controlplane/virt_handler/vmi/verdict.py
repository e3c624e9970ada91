# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Alive, dead, or not known: what the evidence about a guest allows to say. Pure.

Only proof makes a guest dead: libvirt says how its domain ended, or the kubelet says that its launcher ended. That
something cannot be reached is no evidence at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.pod import Pod, find_end_trouble
from controlplane.domain.observed import Identity
from controlplane.domain.state import Life, Outcome, State, derive_outcome
from controlplane.virt_handler.vmi.world import Launcher, Sighting

STARTABLE = frozenset({"unknown", "failed"})
"""Reasons of a domain that is off because it was never on: only defined, or its start failed."""


@dataclass(frozen=True, slots=True)
class Alive:
    state: State


@dataclass(frozen=True, slots=True)
class Dead:
    outcome: Outcome
    reason: str = ""
    """A word; "" for an end that needs no explanation."""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    why: str


Verdict = Alive | Dead | Unknown


def judge(launcher: Launcher, vmi_uid: str) -> Verdict:
    """Weigh what was seen. A domain that carries another identity says nothing about this VMI."""
    sighting, pod = launcher.sighting, launcher.pod
    state = sighting.state if sighting.is_connected else None
    foreign = _foreign(sighting, vmi_uid, pod.uid)
    if state is not None and not foreign:
        if state.life.is_up:
            return Alive(state)
        outcome = derive_outcome(state, is_acpi_expected=_is_acpi_expected(sighting))
        if outcome is not None:
            return _ended(state, outcome)
    if pod.is_over or pod.compute.terminated is not None:
        return _by_pod(pod)
    if sighting.failure is not None:
        return Dead("Failed", sighting.failure.reason, sighting.failure.message)
    return Unknown(foreign or ("the domain is not started" if sighting.is_connected else "the launcher is not reached"))


def is_startable(sighting: Sighting) -> bool:
    """Tell whether there is contact, and no domain that ever ran."""
    if not sighting.is_connected or sighting.failure is not None:
        return False
    state = sighting.state
    return state is None or (state.life is Life.SHUT_OFF and state.reason in STARTABLE)


def _foreign(sighting: Sighting, vmi_uid: str, pod_uid: str) -> str:
    if sighting.state is None or sighting.observed is None:
        return ""
    identity: Identity | None = sighting.observed.identity
    if identity is None or (identity.uid, identity.pod_uid) != (vmi_uid, pod_uid):
        return "the launcher's domain carries another identity"
    return ""


def _is_acpi_expected(sighting: Sighting) -> bool:
    observed = sighting.observed
    if observed is None or observed.identity is None:
        return True
    return observed.has_acpi and observed.identity.grace_period_seconds > 0


def _ended(state: State, outcome: Outcome) -> Dead:
    if outcome == "Succeeded":
        return Dead("Succeeded")
    if state.life is Life.CRASHED or state.reason == "crashed":
        why = "the guest's kernel panicked" if state.reason == "panicked" else "QEMU crashed or was killed"
        return Dead("Failed", "GuestCrashed", why)
    if state.reason == "destroyed":
        return Dead("Failed", "ShutdownTimedOut", "the guest did not shut down within its grace period and was ended")
    return Dead("Failed", "GuestFailed", f"the domain is {state.life.value}: {state.reason}")


def _by_pod(pod: Pod) -> Dead:
    ended = pod.compute.terminated
    exited_well = ended is not None and ended.exit_code == 0
    if pod.status.phase == "Succeeded" or (exited_well and pod.status.phase != "Failed"):
        return Dead("Succeeded")
    return Dead("Failed", *find_end_trouble(pod))
