# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A granted start on a node whose virt-handler is silent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.status import derive_status
from tests.controlplane.virt_controller.builders import POD_UID, a_condition, a_running_pod, a_vmi, vmi_world

GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
HERE, SILENT = NodeState("node-1"), NodeState("node-1", takes_none=True)
GONE = NodeState("node-1", is_unseen=True, is_gone=True)
NOT_READY = a_condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")
POSITIVE = (a_condition("Synchronized", "True"),)


def reported(reason: str) -> tuple[Any, ...]:
    return (a_condition("Synchronized", "False", reason),)


CASES: dict[str, tuple[str, tuple[Any, ...], NodeState | None, str | None]] = {
    # phase, condition before, node, reason of the condition after (None: no condition)
    "silent": ("Scheduled", (), SILENT, "VirtHandlerSilent"),
    "not silent": ("Scheduled", (), HERE, None),
    "node unknown": ("Scheduled", (), None, None),
    "still silent": ("Scheduled", reported("VirtHandlerSilent"), SILENT, "VirtHandlerSilent"),
    "no longer silent": ("Scheduled", reported("VirtHandlerSilent"), HERE, None),
    "silent before, node gone": ("Scheduled", reported("VirtHandlerSilent"), GONE, None),
    "virt-handler had reported": ("Scheduled", reported("StartFailed"), SILENT, "StartFailed"),
    "virt-handler reports": ("Scheduled", reported("StartFailed"), HERE, "StartFailed"),
    "virt-handler had reported success": ("Scheduled", POSITIVE, SILENT, ""),
    "the guest runs": ("Running", (), SILENT, None),
    "the launcher is lost": ("Unknown", reported("LauncherLost"), SILENT, "LauncherLost"),
}


@pytest.mark.parametrize(("phase", "before", "node", "expected"), CASES.values(), ids=CASES)
def test_a_granted_start_with_a_silent_virt_handler_is_reported_once(
    phase: str, before: tuple[Any, ...], node: NodeState | None, expected: str | None
) -> None:
    vmi = a_vmi(phase, conditions=[NOT_READY, *before], **GRANTED)
    status = derive_status(vmi_world(vmi, a_running_pod(), node=node), None) or vmi.status
    after = [condition for condition in status.conditions if condition.type == "Synchronized"]
    assert [condition.reason for condition in after] == ([] if expected is None else [expected])
    if expected == "VirtHandlerSilent" and not before:
        assert after[0].status == "False"
        assert after[0].message.startswith("waiting for virt-handler on node-1, ")
    again = msgspec.structs.replace(vmi, status=status)
    assert derive_status(vmi_world(again, a_running_pod(), node=node), None) is None
