# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Events at the end of a run."""

from __future__ import annotations

import pytest

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.vmi.end_events import EndEvent, end_events
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus as Status

SAYS_WHY = (Condition(type="Synchronized", status="False", reason="LauncherFailed", message="no disk"),)
CRASHED = EndEvent("The VirtualMachineInstance crashed.", is_warning=True)


@pytest.mark.parametrize(
    ("status", "end"),
    [
        pytest.param(Status(phase="Running"), (), id="it runs"),
        pytest.param(Status(phase="Running", reason="GuestPanicked"), (), id="it runs, whatever its reason"),
        pytest.param(Status(phase="Unknown"), (), id="nobody knows"),
        pytest.param(
            Status(phase="Succeeded"),
            (EndEvent("The VirtualMachineInstance was shut down.", is_warning=False),),
            id="succeeded",
        ),
        pytest.param(
            Status(phase="Failed", conditions=SAYS_WHY),
            (EndEvent("The VirtualMachineInstance failed: no disk", is_warning=True),),
            id="failed",
        ),
        pytest.param(
            Status(phase="Failed", reason="GuestCrashed", conditions=SAYS_WHY),
            (CRASHED,),
            id="crashed",
        ),
        pytest.param(
            Status(phase="Failed", reason="GuestPanicked", conditions=SAYS_WHY),
            (
                EndEvent(
                    "GuestPanicked: the kernel of the guest has panicked.", is_warning=True, reason="GuestPanicked"
                ),
                CRASHED,
            ),
            id="panicked",
        ),
        pytest.param(Status(phase="Failed"), (CRASHED,), id="nobody says why"),
    ],
)
def test_only_an_end_creates_an_event(status: Status, end: tuple[EndEvent, ...]) -> None:
    assert end_events(status) == end
