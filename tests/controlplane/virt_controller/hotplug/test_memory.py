# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory hotplug: the condition, and the reason to migrate."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import GUEST_MEMORY

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.hotplug.memory import memory_change, memory_migration_reason
from controlplane.virt_controller.vmi.status import derive_status
from tests.controlplane.virt_controller.builders import a_vmi, vmi_world


def a_vmi_with(
    guest: str, phase: str = "Running", *, most: str | None = "4Gi", **status: Any
) -> VirtualMachineInstance:
    declared = {"guest": guest, **({"maxGuest": most} if most else {})}
    current = {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}
    return a_vmi(phase, spec={"domain": {"memory": declared}}, **{"memory": current, **status})


def a_pod(memory: str | None) -> Pod:
    return decode({"metadata": {"annotations": {} if memory is None else {GUEST_MEMORY: memory}}}, Pod)


@pytest.mark.parametrize(
    ("vmi", "has_condition"),
    [
        (a_vmi_with("2Gi"), True),
        (a_vmi_with("1024Mi"), False),
        (a_vmi_with("2Gi", "Scheduled"), False),
        (a_vmi_with("2Gi", "Failed"), False),
        (a_vmi_with("2Gi", most=None), False),
        (a_vmi_with("2Gi", memory=None), False),
        (a_vmi("Running"), False),
    ],
    ids=["more", "equal", "not running yet", "final", "no maxGuest", "unknown memory", "no memory in status"],
)
def test_the_condition_reports_a_difference(vmi: VirtualMachineInstance, has_condition: bool) -> None:
    change = memory_change(vmi)
    assert (change is not None) is has_condition
    if change is not None:
        text = "the guest is to have 2Gi of memory and not 1Gi: it is changed by a migration"
        assert (change.type, change.status, change.message) == ("HotMemoryChange", "True", text)


@pytest.mark.parametrize(
    ("memory", "migrates"),
    [(str(1 << 30), True), (str(2 << 30), False), (str(3 << 30), True), (None, True), ("much", True), ("9" * 17, True)],
)
def test_it_migrates_unless_its_pod_has_the_wanted_size(memory: str | None, migrates: bool) -> None:
    """Otherwise it would migrate again until virt-handler has requested the change."""
    assert (memory_migration_reason(a_vmi_with("2Gi"), a_pod(memory)) is not None) is migrates


def test_without_a_difference_it_does_not_migrate() -> None:
    assert memory_migration_reason(a_vmi_with("1Gi"), None) is None
    assert memory_migration_reason(a_vmi_with("2Gi"), None) is not None


def test_the_status_has_the_condition_while_there_is_a_difference() -> None:
    before = derive_status(vmi_world(a_vmi_with("2Gi")), None)
    assert before is not None
    assert "HotMemoryChange" in {condition.type for condition in before.conditions}
    done = a_vmi_with("1Gi", conditions=[{"type": "HotMemoryChange", "status": "True"}])
    after = derive_status(vmi_world(done), None)
    assert after is not None
    assert "HotMemoryChange" not in {condition.type for condition in after.conditions}
