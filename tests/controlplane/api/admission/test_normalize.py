# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Normalized objects: values that ask for nothing make no difference, and all others do."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.normalize import normalize
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from tests.controlplane.api import golden

VMI = golden.machine(VirtualMachineInstance.resource)


def is_same(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return normalize(before, VirtualMachineInstance) == normalize(after, VirtualMachineInstance)


NO_DIFFERENCE: list[tuple[str, Any, Any]] = [
    ("spec/nodeSelector", ..., {}),
    ("spec/nodeSelector", ..., None),
    ("spec/hostname", ..., ""),
    ("spec/evictionStrategy", ..., ""),
    ("spec/domain/resources", ..., {}),
    ("spec/domain/resources", {}, {"requests": None, "limits": {}}),
    ("spec/domain/firmware", {}, {"uuid": ""}),
    ("spec/domain/features", {"acpi": {}}, {}),
    ("spec/domain/memory", {"guest": "1024Mi"}, {"guest": "1Gi"}),
    ("spec/domain/resources/requests", {"cpu": "1000m"}, {"cpu": 1}),
    ("spec/livenessProbe", {"guestAgentPing": {}}, {"guestAgentPing": {}, "initialDelaySeconds": 0}),
    ("spec/accessCredentials", ..., []),
    ("spec/domain/cpu", {"cores": 1}, {"cores": 1, "dedicatedCpuPlacement": False}),
    ("status", ..., {"phase": "Running"}),
]


@pytest.mark.parametrize(
    ("path", "before", "after"), NO_DIFFERENCE, ids=[f"{row[0]} {row[2]}" for row in NO_DIFFERENCE]
)
def test_a_value_that_asks_for_nothing_makes_no_difference(path: str, before: Any, after: Any) -> None:
    without = golden.changed(golden.changed(VMI, path, {}), path, before)

    assert is_same(without, golden.changed(without, path, after))


DIFFERENT: list[tuple[str, Any, Any]] = [
    ("spec/domain/devices/rng", ..., {}),
    ("spec/domain/devices/interfaces/0/masquerade", ..., {}),
    ("spec/networks/0/pod", ..., {}),
    ("spec/domain/firmware/bootloader", {}, {"bios": {}}),
    ("spec/domain/features", {}, {"acpi": {"enabled": False}}),
    ("spec/domain/devices/autoattachGraphicsDevice", ..., False),
    ("spec/terminationGracePeriodSeconds", ..., 0),
    ("spec/domain/memory", {"guest": "1Gi"}, {"guest": "1G"}),
    ("spec/domain/memory", {"guest": "1Gi"}, {"guest": "a lot"}),
    ("spec/domain/memory", {}, {"guest": ""}),
    ("spec/domain/memory", {"guest": "1Gi"}, {"guest": "1Gi", "maxGuest": ""}),
    ("spec/domain/devices/disks", [], [{"name": "a"}]),
    ("spec/accessCredentials", ..., [{}]),
    ("spec/livenessProbe", {"guestAgentPing": {}}, {"guestAgentPing": {}, "initialDelaySeconds": False}),
    ("spec/newer", ..., None),
    ("spec/domain", {}, 7),
    ("newer", ..., {}),
]


@pytest.mark.parametrize(("path", "before", "after"), DIFFERENT, ids=[f"{row[0]} {row[2]}" for row in DIFFERENT])
def test_a_value_that_asks_for_something_makes_a_difference(path: str, before: Any, after: Any) -> None:
    without = golden.changed(golden.changed(VMI, path, {}), path, before)

    assert not is_same(without, golden.changed(without, path, after))


@pytest.mark.parametrize("spec", [None, 7, [], "x"], ids=repr)
def test_a_spec_that_is_no_object_stays(spec: Any) -> None:
    assert normalize({"kind": "VirtualMachine", "spec": spec}, VirtualMachine)["spec"] == spec


def test_templates_of_data_volumes_as_go_writes_them_make_no_difference() -> None:
    vm = golden.load("vm-full")
    template = {"metadata": {"name": "disk", "creationTimestamp": None}, "spec": {"source": None}}
    before = golden.changed(vm, "spec/dataVolumeTemplates", [{"metadata": {"name": "disk"}, "spec": {"source": None}}])
    after = golden.changed(vm, "spec/dataVolumeTemplates", [{**template, "status": {}}])

    assert normalize(before, VirtualMachine) == normalize(after, VirtualMachine)
