# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Events about an instance that its virt-handler records. Pure; reasons are upstream's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.api.objects.vmi.end_events import end_events
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.links.handler import Verb
from controlplane.virt_handler.vmi.world import Action, Destroy, DestroyRemoved, ShutDown

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VmiEvent:
    """An Event for users."""

    reason: str
    message: str
    is_warning: bool = False
    once: str = ""
    """Two Events with the same text are recorded as one, unless they differ in this."""


RecordEvent = Callable[[Json, VmiEvent], Awaitable[None]]
"""Create an Event about an object (apiVersion, kind, metadata); ApiError."""

PAUSED_IO_ERROR = "PausedIOError"
"""Reason of the condition Paused of a guest that libvirt has paused, because a disk did not take or give its data."""
_STARTED = VmiEvent("Started", "VirtualMachineInstance started.")
_BY_VERB: dict[Verb, tuple[str, str]] = {
    "pause": ("Paused", "VirtualMachineInstance paused."),
    "unpause": ("Unpaused", "VirtualMachineInstance unpaused."),
    "reset": ("Reset", "VirtualMachineInstance reset."),
    "softreboot": ("SoftRebooted", "VirtualMachineInstance soft rebooted."),
    "freeze": ("Frozen", "The file systems of VirtualMachineInstance were frozen."),
    "unfreeze": ("Unfrozen", "The file systems of VirtualMachineInstance were thawed."),
}


def status_events(before: VirtualMachineInstanceStatus, after: VirtualMachineInstanceStatus) -> tuple[VmiEvent, ...]:
    """Return the Events of a written status: of a new phase, and of a guest that an I/O error has paused."""
    of_phase = () if after.phase == before.phase else phase_events(after)
    paused = _io_error_pause(after)
    if paused is None or _io_error_pause(before) is not None:
        return of_phase
    stamp = paused.last_transition_time or ""
    return (*of_phase, VmiEvent("IOerror", f"{paused.message}.", is_warning=True, once=stamp))


def _io_error_pause(status: VirtualMachineInstanceStatus) -> Condition | None:
    paused = conditions.find(status.conditions, condition_types.PAUSED)
    return None if paused is None or paused.reason != PAUSED_IO_ERROR else paused


def phase_events(status: VirtualMachineInstanceStatus) -> tuple[VmiEvent, ...]:
    """Return the Events of a phase; none for a phase that another component reports."""
    if status.phase == RUNNING:
        return (_STARTED,)
    return tuple(VmiEvent(end.reason, end.message, is_warning=end.is_warning) for end in end_events(status))


def action_event(action: Action) -> VmiEvent | None:
    """Return the Event of an action that ends a guest; None for other actions."""
    match action:
        case ShutDown():
            return VmiEvent("ShuttingDown", f"Signaled Graceful Shutdown: {action.because}")
        case Destroy() | DestroyRemoved():
            return VmiEvent("Deleted", f"Signaled Deletion: {action.because}")
    return None


def user_request_event(verb: Verb, when: float) -> VmiEvent:
    """Return the Event of a user request. when: makes a repeated request a new Event."""
    return VmiEvent(*_BY_VERB[verb], once=f"{when:.3f}")


def reference(vmi: VirtualMachineInstance) -> Json:
    """Return the reference to the instance that an Event is about."""
    meta, kind = vmi.metadata, VIRTUAL_MACHINE_INSTANCE
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
