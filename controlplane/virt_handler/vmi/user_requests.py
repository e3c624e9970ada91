# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests of a user a guest's state allows, and whether a user has paused it. Pure.

libvirt keeps only the first reason of a pause: a guest that an I/O error paused keeps that reason when a user pauses it
too. LauncherStatus keeps the user's pause; after a restart of virt-handler only the VMI's condition shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.links.handler import Verb
from controlplane.virt_handler.vmi.liveness import is_own
from controlplane.virt_handler.vmi.migration_source import (
    has_arrived_paused,
    is_migrating_or_stopped,
    is_stopped_to_send,
)
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus


@dataclass(frozen=True, slots=True)
class RequestCheck:
    """Whether a request is carried out. By default it is."""

    refusal: str = ""
    """Why the guest's state does not allow it."""
    is_done: bool = False
    """There is nothing left to do."""


def check_user_request(
    verb: Verb, vmi: VirtualMachineInstance | None, launcher: Launcher, vmi_uid: str
) -> RequestCheck:
    """Judge a request by the guest's state, which was just observed. vmi: from the cache."""
    status = launcher.status
    state, observed = status.state, status.observed
    if is_migrating_or_stopped(vmi, status):
        return RequestCheck("VMI is migrating; try again after the migration")
    is_up = state is not None and state.life.is_up and not state.is_starting
    if state is None or observed is None or not is_up or not is_own(launcher, vmi_uid):
        return RequestCheck("VMI is not running")
    is_paused = is_paused_by_user(vmi, status)
    if verb == "pause" and is_paused and vmi is not None and not vmi.is_user_pause_reported:
        # An earlier request has paused the guest. Both requests wait for the condition.
        return RequestCheck(is_done=True)
    refusal = refuse(
        verb, state, is_paused_by_user=is_paused, has_acpi=observed.has_acpi, has_agent=observed.is_agent_connected
    )
    return RequestCheck(refusal or "")


def unpause_resumes_domain(status: LauncherStatus) -> bool:
    """Tell whether an unpause resumes the domain at once. After an I/O error the reconciler resumes it."""
    return status.state is not None and status.state.reason != "ioerror"


def has_acpi(status: LauncherStatus) -> bool:
    """Tell whether the guest has a power button."""
    return status.observed is not None and status.observed.has_acpi


def is_paused_by_user(vmi: VirtualMachineInstance | None, status: LauncherStatus) -> bool:
    """Tell whether a user has paused the guest and not unpaused it since. Another cause may have paused it as well."""
    state = status.state
    if state is None or state.life is not Life.PAUSED:
        return False
    if has_arrived_paused(vmi, status) or is_stopped_to_send(vmi, status):
        return False
    if state.reason == "user" or status.is_paused_by_user is not None:
        return state.reason == "user" or status.is_paused_by_user is True
    return vmi is not None and vmi.is_user_pause_reported


def user_pause_after(was_paused: bool | None, state: State | None) -> bool | None:
    """Return the stored user pause after a look at the domain. It ends when the guest runs again."""
    if state is None or (state.life is Life.PAUSED and state.reason != "user"):
        return was_paused
    return False


def refuse(verb: Verb, state: State, *, is_paused_by_user: bool, has_acpi: bool, has_agent: bool) -> str | None:
    """Return why the state of a running guest does not allow a verb; None if it does."""
    is_paused = state.life is Life.PAUSED
    match verb:
        case "pause" if is_paused_by_user:
            return "VMI is already paused"
        case "unpause" if not is_paused:
            return "VMI is not paused"
        case "unpause" if not is_paused_by_user:
            return f"VMI is not paused by a user but by libvirt ({state.reason}); it continues when the cause is over"
        case "softreboot" | "freeze" | "unfreeze" if is_paused:
            return "VMI is paused"
        case "softreboot" if not (has_acpi or has_agent):
            return "VMI neither have the agent connected nor the ACPI feature enabled"
    return None
