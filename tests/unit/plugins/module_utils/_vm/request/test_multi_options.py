# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options vms and vmis, entry by entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api.names import FURTHER_ATTEMPTS, RUN_TIMEOUT
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


@pytest.mark.parametrize("of_the_task", [False, True])
def test_eviction_and_retries_of_an_entry_are_in_its_machine(world: World, task: Task, of_the_task: bool) -> None:
    options = {"eviction_strategy": "None", "further_attempts": 3, "run_timeout": 99}
    task(vms=[{"name": "vm-0", **({} if of_the_task else options)}], **MACHINE, **(options if of_the_task else {}))
    template = world.vm("vm-0")["spec"]["template"]
    assert template["spec"]["evictionStrategy"] == "None"
    assert template["metadata"]["annotations"] == {FURTHER_ATTEMPTS: "3", RUN_TIMEOUT: "99"}

    with pytest.raises(VirtError, match="further_attempts"):
        task(vms=[{"name": "vm-0", "further_attempts": -5}], **MACHINE)


def test_several_instances_are_frozen_and_thawed_by_one_task_each(world: World, of_instances: Task) -> None:
    world.has_agents = True
    both = [{"name": "a"}, {"name": "b"}]
    made = of_instances(vmis=both, wait=True, **MACHINE)
    assert [(item["name"], item["method"]) for item in made["results"]] == [("a", "create"), ("b", "create")]

    frozen = of_instances(vmis=[{"name": "a", "unfreeze_timeout": 7}, {"name": "b"}], state="frozen", wait=True)
    assert frozen["changed"]
    assert [item["result"]["status"]["fsFreezeStatus"] for item in frozen["results"]] == ["frozen", "frozen"]
    assert of_instances(vmis=both, state="frozen", wait=True)["changed"] is False

    mixed = of_instances(vmis=[{"name": "a", "state": "unfrozen"}, {"name": "b", "state": "absent"}], wait=True)
    assert [item["method"] for item in mixed["results"]] == ["unfreeze", "delete"]


def test_problems_of_instances_are_reported_by_entry(world: World, of_instances: Task) -> None:
    with pytest.raises(VirtError) as refused:
        of_instances(vmis=[{"name": "A"}, {"name": "b"}, {"name": "b"}], **MACHINE)
    assert "vmis[0]: name 'A'" in refused.value.message
    assert "vmis: VirtualMachineInstance default/b is listed twice" in refused.value.message
    assert not world.objects

    with pytest.raises(VirtError, match=r"1 of 2 VMIs failed: .*default/gone") as failed:
        of_instances(vmis=[{"name": "here", "state": "present", **MACHINE}, {"name": "gone", "state": "paused"}])
    assert [item["changed"] for item in failed.value.facts["results"]] == [True, False]
