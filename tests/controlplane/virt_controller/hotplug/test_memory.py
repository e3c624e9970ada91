# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory that a running guest is to get or give back: what is said, and when it has to move for it."""

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


def wanting(guest: str, phase: str = "Running", *, most: str | None = "4Gi", **status: Any) -> VirtualMachineInstance:
    memory = {"guest": guest, **({"maxGuest": most} if most else {})}
    told = {"guestAtBoot": "1Gi", "guestCurrent": "1Gi", "guestRequested": "1Gi"}
    return a_vmi(phase, spec={"domain": {"memory": memory}}, **{"memory": told, **status})


def a_pod(said: str | None) -> Pod:
    return decode({"metadata": {"annotations": {} if said is None else {GUEST_MEMORY: said}}}, Pod)


@pytest.mark.parametrize(
    ("vmi", "is_said"),
    [
        (wanting("2Gi"), True),
        (wanting("1024Mi"), False),
        (wanting("2Gi", "Scheduled"), False),
        (wanting("2Gi", "Failed"), False),
        (wanting("2Gi", most=None), False),
        (wanting("2Gi", memory=None), False),
        (a_vmi("Running"), False),
    ],
    ids=["more", "as much", "not yet", "over", "no room", "not known", "nothing said"],
)
def test_a_guest_that_is_to_have_other_memory_says_so(vmi: VirtualMachineInstance, is_said: bool) -> None:
    change = memory_change(vmi)
    assert (change is not None) is is_said
    if change is not None:
        text = "the guest is to have 2Gi of memory and not 1Gi: it is changed by a migration"
        assert (change.type, change.status, change.message) == ("HotMemoryChange", "True", text)


@pytest.mark.parametrize(
    ("said", "is_to_move"),
    [(str(1 << 30), True), (str(2 << 30), False), (str(3 << 30), True), (None, True), ("much", True), ("9" * 17, True)],
)
def test_it_moves_unless_its_pod_was_made_for_as_much(said: str | None, is_to_move: bool) -> None:
    """Else it would move again and again, until virt-handler has come to ask it to take it."""
    assert (memory_migration_reason(wanting("2Gi"), a_pod(said)) is not None) is is_to_move


def test_one_that_was_asked_to_have_it_does_not_move() -> None:
    assert memory_migration_reason(wanting("1Gi"), None) is None
    assert memory_migration_reason(wanting("2Gi"), None) is not None


def test_the_condition_comes_with_the_change_and_goes_with_it() -> None:
    came = derive_status(vmi_world(wanting("2Gi")), None)
    assert came is not None
    assert "HotMemoryChange" in {one.type for one in came.conditions}
    done = wanting("1Gi", conditions=[{"type": "HotMemoryChange", "status": "True"}])
    went = derive_status(vmi_world(done), None)
    assert went is not None
    assert "HotMemoryChange" not in {one.type for one in went.conditions}
