# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU hotplug: the condition, and the reason to migrate."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import VCPUS

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.hotplug.cpu import cpu_change, cpu_migration_reason
from controlplane.virt_controller.vmi.status import derive_status
from tests.controlplane.virt_controller.builders import a_vmi, vmi_world

HAS_ONE = {"cores": 1, "sockets": 1, "threads": 1}


def a_vmi_with(sockets: int, phase: str = "Running", *, most: int = 4, **status: Any) -> VirtualMachineInstance:
    """Build a VMI with one virtual CPU in its status and more in its spec."""
    spec = {"domain": {"memory": {"guest": "64Mi"}, "cpu": {"sockets": sockets, "maxSockets": most}}}
    return a_vmi(phase, spec=spec, **{"currentCPUTopology": HAS_ONE, **status})


def a_pod(vcpus: str | None) -> Pod:
    return decode({"metadata": {"annotations": {} if vcpus is None else {VCPUS: vcpus}}}, Pod)


@pytest.mark.parametrize(
    ("vmi", "has_condition"),
    [
        (a_vmi_with(2), True),
        (a_vmi_with(1), False),
        (a_vmi_with(2, "Scheduled"), False),
        (a_vmi_with(2, "Failed"), False),
        (a_vmi_with(2, most=0), False),
        (a_vmi_with(2, currentCPUTopology=None), False),
        (a_vmi("Running"), False),
    ],
    ids=["more", "equal", "not running yet", "final", "no maxSockets", "unknown topology", "no CPU in spec"],
)
def test_the_condition_reports_a_difference(vmi: VirtualMachineInstance, has_condition: bool) -> None:
    change = cpu_change(vmi)
    assert (change is not None) is has_condition
    if change is not None:
        text = "the guest has 1 virtual CPUs and is to have 2: it gets them by a migration"
        assert (change.type, change.status, change.message) == ("HotVCPUChange", "True", text)


@pytest.mark.parametrize(
    ("vcpus", "migrates"),
    [("1", True), ("2", False), ("3", False), (None, True), ("many", True), ("²", True), ("99999", True)],
)
def test_it_migrates_unless_its_pod_is_large_enough(vcpus: str | None, migrates: bool) -> None:
    """Otherwise it would migrate again until virt-handler has plugged the CPUs in."""
    assert (cpu_migration_reason(a_vmi_with(2), a_pod(vcpus)) is not None) is migrates


def test_it_migrates_if_its_pod_is_unknown() -> None:
    assert cpu_migration_reason(a_vmi_with(2), None) is not None


def test_without_a_difference_it_does_not_migrate() -> None:
    assert cpu_migration_reason(a_vmi_with(1), None) is None


def test_the_status_has_the_condition_while_there_is_a_difference() -> None:
    before = derive_status(vmi_world(a_vmi_with(2)), None)
    assert before is not None
    assert "HotVCPUChange" in {condition.type for condition in before.conditions}
    listed = [{"type": "HotVCPUChange", "status": "True"}]
    spec = {"domain": {"memory": {"guest": "64Mi"}, "cpu": {"sockets": 2, "maxSockets": 4}}}
    done = a_vmi("Running", spec=spec, currentCPUTopology={**HAS_ONE, "sockets": 2}, conditions=listed)
    after = derive_status(vmi_world(done), None)
    assert after is not None
    assert "HotVCPUChange" not in {condition.type for condition in after.conditions}
