# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person may ask of a guest in a state, and whose pause it is in. Pure.

libvirt keeps only the first reason of a pause: a guest that an I/O error paused keeps that reason when a user pauses it
too. LauncherStatus keeps the user's pause; after a restart of virt-handler the VMI's condition tells of it.
"""

from __future__ import annotations

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.links.handler import Verb
from controlplane.virt_handler.vmi.migration_source import (
    has_arrived_paused,
    is_stopped_to_send,
    is_user_pause_reported,
)
from controlplane.virt_handler.vmi.world import LauncherStatus


def is_paused_by_user(vmi: VirtualMachineInstance | None, status: LauncherStatus) -> bool:
    """Tell whether a person has paused the guest and nobody has unpaused it since, whatever else has paused it."""
    state = status.state
    if state is None or state.life is not Life.PAUSED:
        return False
    if has_arrived_paused(vmi, status) or is_stopped_to_send(vmi, status):
        return False
    if state.reason == "user" or status.is_paused_by_user is not None:
        return state.reason == "user" or status.is_paused_by_user is True
    return vmi is not None and is_user_pause_reported(vmi)


def user_pause_after(held: bool | None, state: State | None) -> bool | None:
    """Return what is remembered of a person's pause when the guest is seen so: it ends with the pause it came to."""
    if state is None or (state.life is Life.PAUSED and state.reason != "user"):
        return held
    return False


def refuse(verb: Verb, state: State, *, held: bool, has_acpi: bool, has_agent: bool) -> str | None:
    """Say why the state of a guest that is up does not allow a verb; None when it does."""
    is_paused = state.life is Life.PAUSED
    match verb:
        case "pause" if held:
            return "VMI is already paused"
        case "unpause" if not is_paused:
            return "VMI is not paused"
        case "unpause" if not held:
            return f"VMI is not paused by a user but by libvirt ({state.reason}); it goes on when the cause is over"
        case "softreboot" | "freeze" | "unfreeze" if is_paused:
            return "VMI is paused"
        case "softreboot" if not (has_acpi or has_agent):
            return "VMI neither have the agent connected nor the ACPI feature enabled"
    return None
