# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many VMs in one task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


def names(count: int) -> list[dict[str, Any]]:
    return [{"name": f"vm-{index}"} for index in range(count)]


def test_a_hundred_unchanged_vms_cost_one_request(world: World, task: Task) -> None:
    assert task(vms=names(100), **MACHINE)["changed"] is True
    world.requests.clear()
    result = task(vms=names(100), **MACHINE)
    assert result["changed"] is False
    assert [item["name"] for item in result["results"]] == [item["name"] for item in names(100)]
    assert world.requests == [("GET", "/apis/kubevirt.io/v1/namespaces/default/virtualmachines?limit=500")]


def test_a_failure_does_not_stop_the_others(world: World, task: Task) -> None:
    wrong = {"name": "wrong", "definition": {"spec": {"colour": 1, "template": {}}}}
    with pytest.raises(VirtError) as caught:
        task(vms=[*names(2), wrong], diff=True, **MACHINE)
    assert caught.value.message.startswith("1 of 3 VMs failed: cannot apply VirtualMachine default/wrong: spec.colour")
    assert caught.value.facts["changed"] is True
    assert [item.get("failed", False) for item in caught.value.facts["results"]] == [False, False, True]
    assert len(caught.value.facts["diff"]) == 2
    assert world.vm("vm-0")
    assert world.vm("vm-1")


def test_each_result_has_its_generated_name(world: World, task: Task) -> None:
    result = task(vms=[{"generate_name": "vm-"}, {"generate_name": "vm-"}], **MACHINE)
    assert sorted(item["name"] for item in result["results"]) == sorted(
        name for kind, _unused, name in world.objects if kind == "virtualmachines"
    )


def test_a_timeout_reports_the_generated_name(world: World, task: Task) -> None:
    world.unschedulable = "no node"
    with pytest.raises(VirtError) as caught:
        task(vms=[{"generate_name": "vm-"}], wait=True, wait_timeout=1, **MACHINE)
    (result,) = caught.value.facts["results"]
    assert world.vm(result["name"])


def test_a_machine_that_was_not_created_has_an_empty_name(task: Task) -> None:
    with pytest.raises(VirtError) as caught:
        task(vms=[{"generate_name": "vm-", "definition": {"spec": {"colour": 1, "template": {}}}}], **MACHINE)
    assert [item["name"] for item in caught.value.facts["results"]] == [""]
