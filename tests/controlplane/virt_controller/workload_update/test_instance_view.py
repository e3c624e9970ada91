# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields of an instance that decide whether and how it is updated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.virt_controller.workload_update.instance_view import InstanceView, read_instance

MIGRATABLE = [{"type": "LiveMigratable", "status": "True"}]


def read(meta: dict[str, Any] | None = None, **status: Any) -> InstanceView:
    usual = {"phase": "Running", "nodeName": "node-1", "launcherContainerImageVersion": "launcher:1"}
    usual |= {"activePods": {"pod-1": "node-1"}, "conditions": MIGRATABLE}
    metadata = {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7", **(meta or {})}
    return read_instance(json.dumps({"metadata": metadata, "status": {**usual, **status}}).encode(), "launcher:2")


def test_an_instance_in_another_launcher_is_outdated() -> None:
    view = read()
    assert (view.uid, view.version, view.node, view.pod) == ("u", "7", "node-1", "pod-1")
    assert (view.is_outdated, view.is_running, view.is_migratable) == (True, True, True)
    assert (view.is_labelled, view.is_leaving) == (False, False)


@pytest.mark.parametrize(
    ("status", "field", "expected"),
    [
        ({"launcherContainerImageVersion": "launcher:2"}, "is_outdated", False),
        ({"launcherContainerImageVersion": ""}, "is_outdated", False),
        ({"phase": "Succeeded"}, "is_outdated", False),
        ({"phase": "Scheduled"}, "is_running", False),
        ({"activePods": {"pod-1": "node-1", "pod-2": "node-2"}}, "pod", ""),
        ({"activePods": {}}, "pod", ""),
        ({"conditions": []}, "is_migratable", False),
        ({"evacuationNodeName": "node-1"}, "is_leaving", True),
        ({"migrationState": {"migrationUid": "m"}}, "is_leaving", True),
        ({"migrationState": {"migrationUid": "m", "completed": True}}, "is_leaving", False),
    ],
    ids=lambda item: str(item)[:60],
)
def test_each_field_follows_the_status(status: dict[str, Any], field: str, expected: object) -> None:
    assert getattr(read(**status), field) == expected


def test_a_deleting_instance_does_not_run() -> None:
    assert not read({"deletionTimestamp": "2026-01-01T00:00:00Z"}).is_running


def test_the_label_counts_with_any_value() -> None:
    assert read({"labels": {"kubevirt.io/outdatedLauncherImage": ""}}).is_labelled
