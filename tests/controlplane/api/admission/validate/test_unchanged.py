# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.admission.validate.unchanged import check_unchanged
from tests.controlplane.api import golden

OLD = golden.load("vmi-masquerade")


def paths(new: dict[str, Any]) -> list[str]:
    return [problem.path for problem in check_unchanged(OLD, new, "does not change")]


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        ("spec/domain/memory/guest", "2Gi", "spec.domain.memory.guest"),
        ("spec/domain/memory", ..., "spec.domain.memory"),
        ("spec/domain/cpu", {"cores": 2}, "spec.domain.cpu"),
        ("spec/domain", 7, "spec.domain"),
        ("spec/domain/devices/disks/0/disk/bus", "sata", "spec.domain.devices.disks[0].disk.bus"),
        ("spec/domain/devices/disks", [], "spec.domain.devices.disks"),
        ("spec/volumes/0/containerDisk/image", "other", "spec.volumes[0].containerDisk.image"),
        ("spec/volumes/0/name", "other", "spec.volumes"),
        ("spec/networks/0/pod/vmNetworkCIDR", "10.1.0.0/24", "spec.networks[0].pod.vmNetworkCIDR"),
        ("spec/networks", ..., "spec.networks"),
        ("spec/terminationGracePeriodSeconds", 7, "spec.terminationGracePeriodSeconds"),
        ("spec/nodeSelector", {"a": "b"}, "spec.nodeSelector"),
        ("spec/new\nline", 1, 'spec."new\\nline"'),
        ("spec", ..., "spec"),
        ("sepc", {}, "sepc"),
    ],
)
def test_a_change_is_reported_by_its_field(path: str, value: Any, reported: str) -> None:
    assert paths(golden.changed(OLD, path, value)) == [reported]


def test_all_changes_are_reported_at_once() -> None:
    new = golden.changed(golden.changed(OLD, "spec/domain/memory/guest", "2Gi"), "spec/networks", [])

    assert paths(new) == ["spec.domain.memory.guest", "spec.networks"]


def test_reordered_entries_are_a_change_of_the_list() -> None:
    old = {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}}
    new = {"spec": {"volumes": [{"name": "b"}, {"name": "a"}]}}

    assert [problem.path for problem in check_unchanged(old, new, "no")] == ["spec.volumes"]


@pytest.mark.parametrize("path", ["metadata/labels", "status"])
def test_metadata_is_no_change(path: str) -> None:
    old = golden.changed(OLD, path, {})

    assert list(check_unchanged(old, golden.changed(old, path, {"a": "b"}), "no")) == []


def test_a_path_of_invented_names_is_cut() -> None:
    deep: Any = 1
    for _unused in range(60):
        deep = {"x" * 60: deep}
    old = {"spec": golden.changed(deep, "/".join(["x" * 60] * 60), 2)}

    (problem,) = check_unchanged(old, {"spec": deep}, "does not change")

    assert len(str(problem)) < 500
