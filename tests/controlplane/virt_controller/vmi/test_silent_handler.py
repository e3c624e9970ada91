# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A granted start on a node whose virt-handler is silent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects import conditions
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.status import derive_status
from tests.controlplane.virt_controller.builders import POD_UID, a_condition, a_running_pod, a_vmi, vmi_world

GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
HERE = NodeState("node-1")
GONE = NodeState("node-1", is_unseen=True, is_gone=True)
SILENT = NodeState("node-1", takes_none=True)
NOT_READY = a_condition("Ready", "False", "GuestNotRunning", "Guest VM is not reported as running")


def told(reason: str) -> tuple[Any, ...]:
    return (NOT_READY, a_condition("Synchronized", "False", reason))


@pytest.mark.parametrize(
    ("phase", "before", "node", "expected"),
    [
        pytest.param("Scheduled", (NOT_READY,), SILENT, "VirtHandlerSilent", id="nobody is there to start it"),
        pytest.param("Scheduled", (NOT_READY,), HERE, "", id="somebody is"),
        pytest.param("Scheduled", (NOT_READY,), None, "", id="nothing is known of its node"),
        pytest.param("Scheduled", told("VirtHandlerSilent"), SILENT, "VirtHandlerSilent", id="still nobody"),
        pytest.param("Scheduled", told("VirtHandlerSilent"), HERE, "", id="somebody is there again"),
        pytest.param("Scheduled", told("VirtHandlerSilent"), GONE, "", id="its node is not there"),
        pytest.param("Scheduled", told("StartFailed"), SILENT, "StartFailed", id="virt-handler has said why before"),
        pytest.param("Scheduled", told("StartFailed"), HERE, "StartFailed", id="virt-handler says why"),
        pytest.param("Running", (NOT_READY,), SILENT, "", id="its guest runs, whoever is there"),
        pytest.param("Unknown", told("LauncherLost"), SILENT, "LauncherLost", id="it is lost, and that is said"),
    ],
)
def test_a_granted_start_with_a_silent_virt_handler_is_reported(
    phase: str, before: tuple[Any, ...], node: NodeState | None, expected: str
) -> None:
    vmi = a_vmi(phase, conditions=list(before), **GRANTED)
    status = derive_status(vmi_world(vmi, a_running_pod(), node=node), None) or vmi.status

    reported = [
        (condition.status, condition.reason) for condition in status.conditions if condition.type == "Synchronized"
    ]
    assert reported == ([("False", expected)] if expected else [])
    again = msgspec.structs.replace(vmi, status=status)
    assert derive_status(vmi_world(again, a_running_pod(), node=node), None) is None, "it is said once"


@pytest.mark.parametrize("node", [HERE, SILENT], ids=["somebody is there", "nobody is"])
def test_a_positive_report_of_virt_handler_is_kept(node: NodeState) -> None:
    vmi = a_vmi("Scheduled", conditions=[NOT_READY, a_condition("Synchronized", "True")], **GRANTED)
    assert derive_status(vmi_world(vmi, a_running_pod(), node=node), None) is None


def test_the_report_names_the_node() -> None:
    vmi = a_vmi("Scheduled", conditions=[NOT_READY], **GRANTED)
    status = derive_status(vmi_world(vmi, a_running_pod(), node=SILENT), None)

    assert status is not None
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert condition.message.startswith("waiting for virt-handler on node-1, ")
