# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of kubevirt_vm, one after the other as a reader would try them: each does what its name says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import argspec, batch, manifest, shape
from ansible_collections.virtops.kubevirt.plugins.modules import kubevirt_vm
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving


def volumes(world: World) -> list[str]:
    return [one["name"] for one in manifest.at(world.vm("web"), shape.VOLUMES)]


def running(world: World) -> set[str]:
    """Return what is there and runs; with the same set of VMs, nothing else is there."""
    vms = {name for kind, _namespace, name in world.objects if kind == "virtualmachines"}
    return {name for name in vms if world.vm(name)["status"]["ready"]}


def vms(world: World) -> set[str]:
    return {name for kind, _namespace, name in world.objects if kind == "virtualmachines"}


THREE = {"node-1", "node-2", "node-3"}
DONE: dict[str, Callable[[World], bool]] = {
    "Create a virtual machine and wait until it is ready": lambda world: running(world) == {"web"},
    "Declare it as the API has it": lambda world: volumes(world) == ["root"],
    "Give it a second disk; what it has already stays": lambda world: volumes(world) == ["root", "data"],
    "Take that disk away again": lambda world: volumes(world) == ["root"],
    "Stop it, and wait until the guest has shut down": lambda world: not running(world),
    "Declare three virtual machines at once, one of them larger": lambda world: running(world) == THREE,
    "Delete one of them, and see to it that the others run": lambda world: running(world) == {"node-1", "node-2"},
    "Delete a virtual machine with everything that belongs to it": lambda world: "web" not in vms(world),
}


def test_each_example_does_what_its_name_says() -> None:
    world = World()
    tasks = yaml.safe_load(kubevirt_vm.EXAMPLES)
    assert [task["name"] for task in tasks] == list(DONE)
    with serving(world) as url:
        api = Api.connect(Endpoint(server=url))
        for task in tasks:
            result = run(task["virtops.kubevirt.kubevirt_vm"], api)
            assert result["changed"] is True, task["name"]
            assert DONE[task["name"]](world), task["name"]
            assert run(task["virtops.kubevirt.kubevirt_vm"], api)["changed"] is False, f"{task['name']}, again"
        api.close()


def run(arguments: dict[str, Any], api: Api) -> dict[str, Any]:
    checked = ArgumentSpecValidator(argspec.vm_spec()).validate(arguments)
    return batch.run(checked.validated_parameters, api, check_mode=False, diff=False)


@pytest.mark.parametrize("task", yaml.safe_load(kubevirt_vm.EXAMPLES), ids=lambda task: task["name"])
def test_no_example_needs_what_it_does_not_make(task: dict[str, Any]) -> None:
    assert "secret" not in str(task).lower()
