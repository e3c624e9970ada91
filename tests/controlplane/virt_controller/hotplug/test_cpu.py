# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual CPUs that a running guest is to get: what is said, and when it has to move for them."""

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


def wanting(sockets: int, phase: str = "Running", *, most: int = 4, **status: Any) -> VirtualMachineInstance:
    """status: what differs from an instance that has one."""
    spec = {"domain": {"memory": {"guest": "64Mi"}, "cpu": {"sockets": sockets, "maxSockets": most}}}
    return a_vmi(phase, spec=spec, **{"currentCPUTopology": HAS_ONE, **status})


def a_pod(said: str | None) -> Pod:
    return decode({"metadata": {"annotations": {} if said is None else {VCPUS: said}}}, Pod)


@pytest.mark.parametrize(
    ("vmi", "is_said"),
    [
        (wanting(2), True),
        (wanting(1), False),
        (wanting(2, "Scheduled"), False),
        (wanting(2, "Failed"), False),
        (wanting(2, most=0), False),
        (wanting(2, currentCPUTopology=None), False),
        (a_vmi("Running"), False),
    ],
    ids=["more", "as many", "not yet", "over", "no room", "not known", "nothing said"],
)
def test_a_guest_that_is_to_get_more_says_so(vmi: VirtualMachineInstance, is_said: bool) -> None:
    change = cpu_change(vmi)
    assert (change is not None) is is_said
    if change is not None:
        said = (change.type, change.status, change.message)
        text = "the guest has 1 virtual CPUs and is to have 2: it gets them by a migration"
        assert said == ("HotVCPUChange", "True", text)


@pytest.mark.parametrize(
    ("said", "is_to_move"),
    [("1", True), ("2", False), ("3", False), (None, True), ("many", True), ("²", True), ("99999", True)],
)
def test_it_moves_unless_its_pod_was_made_for_as_many(said: str | None, is_to_move: bool) -> None:
    """Else it would move again and again, until virt-handler has come to give it what it has room for."""
    assert (cpu_migration_reason(wanting(2), a_pod(said)) is not None) is is_to_move


def test_it_moves_where_its_pod_is_not_known() -> None:
    assert cpu_migration_reason(wanting(2), None) is not None


def test_one_that_has_what_it_is_to_have_does_not_move() -> None:
    assert cpu_migration_reason(wanting(1), None) is None


def test_the_condition_comes_with_the_change_and_goes_with_it() -> None:
    came = derive_status(vmi_world(wanting(2)), None)
    assert came is not None
    assert "HotVCPUChange" in {one.type for one in came.conditions}
    listed = [{"type": "HotVCPUChange", "status": "True"}]
    spec = {"domain": {"memory": {"guest": "64Mi"}, "cpu": {"sockets": 2, "maxSockets": 4}}}
    done = a_vmi("Running", spec=spec, currentCPUTopology={**HAS_ONE, "sockets": 2}, conditions=listed)
    went = derive_status(vmi_world(done), None)
    assert went is not None
    assert "HotVCPUChange" not in {one.type for one in went.conditions}
