# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


def test_entries_may_have_their_own_state(world: World, task: Task) -> None:
    task(vms=[{"name": "vm-0"}, {"name": "vm-1"}], **MACHINE)
    result = task(vms=[{"name": "vm-0", "state": "absent"}, {"name": "vm-1", "state": "stopped"}])
    assert [item["method"] for item in result["results"]] == ["delete", "stop"]
    assert list(world.objects) == [("virtualmachines", "default", "vm-1")]


def test_an_empty_list_changes_nothing(task: Task) -> None:
    assert task(vms=[]) == {"changed": False, "results": []}


def test_the_failure_of_a_single_vm_is_the_error_of_the_task(world: World, task: Task) -> None:
    with pytest.raises(VirtError, match=r"^cannot apply VirtualMachine default/web: spec\.colour"):
        task(name="web", definition={"spec": {"colour": 1, "template": {}}})
    assert world.objects == {}


def test_the_removal_of_a_missing_item_is_a_warning_and_no_change(task: Task) -> None:
    """A second run must not fail; a misspelt name must not pass unseen."""
    data = {"disks": [{"name": "data", "disk": {}}], "volumes": [{"name": "data", "emptyDisk": {"capacity": "1Gi"}}]}
    assert "warnings" not in task(**MACHINE, **data)
    removed = {"disks": [{"name": "dat", "disk": None}]}
    result = task(**removed)
    assert result["changed"] is False
    (text,) = result["warnings"]
    assert text.startswith(
        "VirtualMachine default/web: disks: there is no dat to remove (there are: containerdisk, data)"
    )
    assert len(task(vms=[{"name": "web"}, {"name": "b", **MACHINE}], **removed)["warnings"]) == 2
    assert "warnings" not in task(state="absent", **removed)


def test_a_change_of_a_volume_that_no_disk_uses_is_a_warning(task: Task) -> None:
    task(**MACHINE)
    (text,) = task(volumes=[{"name": "containerdsk", "containerDisk": {"image": "registry/guest:2"}}])["warnings"]
    assert text.startswith("VirtualMachine default/web: volumes: nothing uses containerdsk, because there is no disk")
    shared = {"spec": {"domain": {"devices": {"filesystems": [{"name": "f", "virtiofs": {}}]}}}}
    assert "warnings" not in task(name="b", volumes=[{"name": "f", "configMap": {"name": "m"}}], **shared, **MACHINE)


def test_the_removal_of_an_item_that_is_there_is_no_warning(task: Task) -> None:
    data = {"disks": [{"name": "data", "disk": {}}], "volumes": [{"name": "data", "emptyDisk": {"capacity": "1Gi"}}]}
    task(**MACHINE, **data)
    result = task(disks=[{"name": "data", "disk": None}], volumes=[{"name": "data", "emptyDisk": None}])
    assert (result["changed"], "warnings" in result) == (True, False)


@pytest.mark.parametrize("module", ["task", "of_instances", "of_sets", "of_pools"])
def test_the_internal_annotation_is_in_no_result_and_no_diff(
    world: World, module: str, request: pytest.FixtureRequest
) -> None:
    run: Task = request.getfixturevalue(module)
    labels = {"labels": {"app": "web"}}
    result = run(diff=True, **labels, **MACHINE)
    (stored,) = [obj for (plural, *_key), obj in world.objects.items() if obj["metadata"]["name"] == "web"][:1]
    assert "virtops.kubevirt/declared-items" in stored["metadata"]["annotations"]
    assert "declared-items" not in str(result)
    assert "declared-items" not in str(run(diff=True, **labels, **{**MACHINE, "image": "registry/guest:2"}, force=True))
