# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Pods that a run can have, and which one has the guest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import EXCLUDED_NODES

from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.world import ClaimWriter, attempts, former_pod_names, pod_name
from tests.controlplane.virt_controller.builders import POD_UID, a_pod, a_vmi, vmi_world

GRANT = {POD_UID: "node-1"}
EMULATED = {
    "configuration": KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True)),
}

NAMES = {
    "short": ("web", "virt-launcher-web-bbbbbbbb-1"),
    "with dots": ("web.example", "virt-launcher-web-example-bbbbbbbb-1"),
    "long": ("n" * 253, "virt-launcher-" + "n" * 38 + "-bbbbbbbb-1"),
    "cut at a dash": ("n" * 37 + "-" + "m" * 10, "virt-launcher-" + "n" * 37 + "-bbbbbbbb-1"),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.values(), ids=NAMES.keys())
def test_the_pod_name_is_valid_and_deterministic(name: str, expected: str) -> None:
    vmi = a_vmi()
    vmi = msgspec.structs.replace(vmi, metadata=msgspec.structs.replace(vmi.metadata, name=name))
    assert pod_name(vmi, 1) == expected
    assert len(expected) <= 63


@pytest.mark.parametrize(
    ("attempt", "possible"), [(0, [1]), (1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (9, [7, 8, 9]), (-5, [1])]
)
def test_the_current_attempt_and_the_two_before_it_may_have_a_pod(attempt: int, possible: list[int]) -> None:
    assert list(attempts(a_vmi(attempt=attempt))) == possible


@pytest.mark.parametrize(("attempt", "former"), [(0, []), (1, []), (2, [1]), (9, [7, 8])])
def test_former_attempts_have_other_pods(attempt: int, former: list[int]) -> None:
    vmi = a_vmi(attempt=attempt)
    assert former_pod_names(vmi) == {pod_name(vmi, number) for number in former}


def test_the_attempt_is_the_recorded_one_or_the_first() -> None:
    assert [vmi_world(a_vmi(attempt=number)).attempt for number in (0, 1, 3)] == [1, 1, 3]


@pytest.mark.parametrize(
    ("vmi", "is_granted"),
    [
        (a_vmi("Scheduling", attempt=1), False),
        (a_vmi("Scheduling", attempt=1, activePods=GRANT), True),
        (a_vmi("Scheduled"), True),
        (a_vmi("Running"), True),
        (a_vmi("Failed"), False),
    ],
    ids=["not yet", "a Pod is named", "handed over", "runs without a named Pod", "over"],
)
def test_whether_the_start_was_granted(vmi: VirtualMachineInstance, is_granted: bool) -> None:
    assert vmi_world(vmi).is_granted is is_granted


def test_before_the_grant_the_attempts_pod_is_the_source_and_after_it_the_granted_one() -> None:
    first, second = a_pod(attempt=1, uid="first"), a_pod(attempt=2, uid="second")
    assert vmi_world(a_vmi("Scheduling", attempt=2), first, second).source is second
    assert vmi_world(a_vmi("Scheduling", attempt=2), first, second).superseded == (first,)
    assert vmi_world(a_vmi("Running", attempt=2, activePods={"first": "node-1"}), first, second).source is first
    assert vmi_world(a_vmi("Scheduling", attempt=1), second).source is None


PENDING = a_vmi("Scheduling", attempt=1)
OTHER = Key("default", "other")
AHEAD = {"claim_writers": {"c": ClaimWriter(OTHER, gives_way=True)}}
BEHIND = {"claim_writers": {"c": ClaimWriter(OTHER)}}
BOTH = {"claim_writers": {"c": ClaimWriter(OTHER, gives_way=True), "d": ClaimWriter(OTHER)}}


@pytest.mark.parametrize(
    ("vmi", "pod", "facts", "is_recreated"),
    [
        (PENDING, {"has_kvm": True}, EMULATED, True),
        (PENDING, {"has_kvm": True}, {}, False),
        (PENDING, {}, EMULATED, False),
        (PENDING, {"has_kvm": True, "deleting": True}, EMULATED, False),
        (PENDING, {"has_kvm": True, "node": "node-1"}, EMULATED, False),
        (a_vmi("Scheduling", attempt=1, deleting=True), {"has_kvm": True}, EMULATED, False),
        (a_vmi("Scheduled", attempt=1), {"has_kvm": True}, EMULATED, False),
        (PENDING, {"excluded": "a,b"}, {"excluded_nodes": frozenset({"b"})}, True),
        (PENDING, {"excluded": "a,b"}, {"excluded_nodes": frozenset("abc")}, False),
        (PENDING, {"excluded": ""}, {}, False),
        (PENDING, {"excluded": "a", "deleting": True}, {}, False),
        (PENDING, {"excluded": "a", "node": "node-1"}, {}, False),
        (a_vmi("Scheduling", attempt=1, deleting=True), {"excluded": "a"}, {}, False),
        (a_vmi("Scheduled", attempt=1), {"excluded": "a"}, {}, False),
        (a_vmi("Scheduling", attempt=1, activePods=GRANT), {"excluded": "a"}, {}, False),
        (PENDING, {}, BEHIND, True),
        (PENDING, {"node": "node-1"}, BEHIND, True),
        (PENDING, {}, AHEAD, False),
        (PENDING, {}, BOTH, True),
        (PENDING, {"deleting": True}, BEHIND, False),
        (a_vmi("Scheduling", attempt=1, deleting=True), {}, BEHIND, False),
        (a_vmi("Scheduling", attempt=1, activePods=GRANT), {}, BEHIND, False),
        (a_vmi("Scheduled", attempt=1), {}, BEHIND, False),
        (a_vmi("Running", attempt=1, activePods=GRANT), {}, BEHIND, False),
        (a_vmi("Scheduling", attempt=2), {}, BEHIND, False),
    ],
    ids=[
        "KVM that it does not need",
        "KVM",
        "no KVM",
        "KVM, its Pod going",
        "KVM, with a node",
        "KVM, deleted",
        "KVM, granted",
        "a node is available again",
        "no node is available again",
        "no node is excluded",
        "available again, its Pod going",
        "available again, with a node",
        "available again, deleted",
        "available again, granted",
        "available again, a Pod is named",
        "another goes first",
        "another goes first, with a node",
        "another gives way",
        "one of two others goes first",
        "another goes first, its Pod going",
        "another goes first, deleted",
        "another goes first, a Pod is named",
        "another goes first, granted",
        "another goes first, its guest runs",
        "another goes first, the next attempt has no Pod",
    ],
)
def test_a_waiting_pod_that_is_outdated_or_must_give_way_is_recreated(
    vmi: VirtualMachineInstance, pod: dict[str, Any], facts: dict[str, Any], is_recreated: bool
) -> None:
    excluded = pod.get("excluded")
    built = a_pod(**{name: value for name, value in pod.items() if name != "excluded"})
    if excluded is not None:
        meta = msgspec.structs.replace(built.metadata, annotations={EXCLUDED_NODES: excluded})
        built = msgspec.structs.replace(built, metadata=meta)
    assert vmi_world(vmi, built, **facts).must_be_recreated is is_recreated
