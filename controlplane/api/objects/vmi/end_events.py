# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Events at the end of a run. Pure: virt-handler and virt-controller create the same ones."""

from __future__ import annotations

from typing import NamedTuple

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.phase import FAILED, SUCCEEDED
from controlplane.api.objects.pod import GUEST_CRASHED, GUEST_PANICKED
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus

STOPPED = "Stopped"
"""The reason of the Event that tells every end."""


class EndEvent(NamedTuple):
    """One Event."""

    message: str
    is_warning: bool
    reason: str = STOPPED


_SUCCEEDED = EndEvent("The VirtualMachineInstance was shut down.", is_warning=False)
_CRASHED = EndEvent("The VirtualMachineInstance crashed.", is_warning=True)
_PANICKED = EndEvent("GuestPanicked: the kernel of the guest has panicked.", is_warning=True, reason=GUEST_PANICKED)


def end_events(status: VirtualMachineInstanceStatus) -> tuple[EndEvent, ...]:
    """Return the Events about the run's end, in order; () while it has not ended."""
    if status.reason == GUEST_PANICKED and status.phase == FAILED:
        return _PANICKED, _CRASHED
    end = _explain(status)
    return () if end is None else (end,)


def _explain(status: VirtualMachineInstanceStatus) -> EndEvent | None:
    if status.phase != FAILED:
        return _SUCCEEDED if status.phase == SUCCEEDED else None
    trouble = conditions.find(status.conditions, condition_types.SYNCHRONIZED)
    if status.reason == GUEST_CRASHED or trouble is None:
        return _CRASHED
    return EndEvent(f"The VirtualMachineInstance failed: {trouble.message}", is_warning=True)
