# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of the modules, one after the other as a reader would try them: each does what its name says."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import batch, kinds
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.field_path import value_at
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.kinds import Kind
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import (
    argspec,
    instance_argspec,
    shape,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write.guest_power import is_frozen, is_paused
from ansible_collections.virtops.kubevirt.plugins.modules import (
    kubevirt_pool,
    kubevirt_replicaset,
    kubevirt_vm,
    kubevirt_vmi,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_pools
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving


def volumes(world: World) -> list[str]:
    return [item["name"] for item in value_at(world.vm("web"), shape.VOLUMES)]


def running(world: World) -> set[str]:
    """Return the running machines; an equal set of VMs must exist."""
    vms = {name for kind, _namespace, name in world.objects if kind == "virtualmachines"}
    return {name for name in vms if world.vm(name)["status"]["ready"]}


def vms(world: World) -> set[str]:
    return {name for kind, _namespace, name in world.objects if kind == "virtualmachines"}


def guest(world: World, name: str) -> dict[str, Any]:
    return world.objects["virtualmachineinstances", "default", name]


SETS = "virtualmachineinstancereplicasets"
THREE = {"node-1", "node-2", "node-3"}
DONE: dict[str, Callable[[World], bool]] = {
    "Create a virtual machine and wait until it is ready": lambda world: running(world) == {"web"},
    "Declare it as the API has it": lambda world: volumes(world) == ["root"],
    "Give it a second disk; what it has already stays": lambda world: volumes(world) == ["root", "data"],
    "Take that disk away again": lambda world: volumes(world) == ["root"],
    "Stop it, and wait until the guest has shut down": lambda world: not running(world),
    "Start it paused": lambda world: is_paused(guest(world, "web")),
    "Let it go on": lambda world: running(world) == {"web"} and not is_paused(guest(world, "web")),
    "Declare three virtual machines at once, one of them larger": lambda world: running(world) == {"web", *THREE},
    "Delete one of them, and see to it that the others run": lambda world: (
        running(world) == {"web", "node-1", "node-2"}
    ),
    "Delete a virtual machine with everything that belongs to it": lambda world: "web" not in vms(world),
    "Have CDI fill a disk that belongs to the machine, and start it when that is full": lambda world: (
        "fedora" in running(world)
    ),
}

DATABASES = ("database-1", "database-2")
OF_INSTANCES: dict[str, Callable[[World], bool]] = {
    "Run a guest once and wait until it is ready": lambda world: guest(world, "probe")["status"]["phase"] == "Running",
    "Pause it": lambda world: is_paused(guest(world, "probe")),
    "Let it go on": lambda world: not is_paused(guest(world, "probe")),
    "Freeze its file systems for a backup of its disks, for at most a minute": lambda world: is_frozen(
        guest(world, "probe")
    ),
    "Thaw them": lambda world: not is_frozen(guest(world, "probe")),
    "Run two more guests and wait until both are ready": lambda world: instances(world) == {"probe", *DATABASES},
    "Freeze the file systems of both at the same time": lambda world: all(
        is_frozen(guest(world, x)) for x in DATABASES
    ),
    "Thaw one, end the other": lambda world: (
        instances(world) == {"probe", "database-1"} and not is_frozen(guest(world, "database-1"))
    ),
    "Give it more memory, which takes another instance": lambda world: memory(guest(world, "probe")) == "512Mi",
    "Declare one as the API has it, whose guest begins paused": lambda world: is_paused(guest(world, "second")),
    "End the guest and wait until nothing of it is left": lambda world: instances(world) == {"second", "database-1"},
}
OF_SETS: dict[str, Callable[[World], bool]] = {
    "Keep two guests running and wait until they are ready": lambda world: ready_replicas(world) == 2,
    "Scale them to three": lambda world: ready_replicas(world) == 3,
    "Stop creating and deleting instances for a while": lambda world: replica_set(world)["spec"]["paused"],
    "Go on": lambda world: not replica_set(world)["spec"]["paused"],
    "Declare one as the API has it": lambda world: ready_replicas(world, "others") == 1,
    "Delete the set with its instances": lambda world: (SETS, "default", "workers") not in world.objects,
}
OF_POOLS: dict[str, Callable[[World], bool]] = {
    "Keep two machines running and wait until they are ready": lambda world: running(world) == {"web-0", "web-1"},
    "Scale them to three": lambda world: running(world) == {"web-0", "web-1", "web-2"},
    "Have changes restart one machine at a time, the oldest first": lambda world: (
        (pool(world)["maxUnavailable"], pool(world)["updateStrategy"])
        == (1, {"proactive": {"selectionPolicy": {"sortPolicy": "Oldest"}}})
    ),
    "Give all of them more memory, and wait until they run with it": lambda world: all(
        memory(world.vm(f"web-{number}")["spec"]["template"]) == "512Mi" for number in range(3)
    ),
    "Have machines that are too many go by their numbers, the highest first": lambda world: (
        pool(world)["scaleInStrategy"] == {"proactive": {"selectionPolicy": {"sortPolicy": "DescendingOrder"}}}
    ),
    "Stop creating, changing and deleting machines for a while": lambda world: pool(world)["paused"],
    "Go on, and leave running machines as they are when the template changes": lambda world: (
        (pool(world)["paused"], pool(world)["updateStrategy"]) == (False, {"opportunistic": {}})
    ),
    "Declare one as the API has it": lambda world: "others-0" in running(world),
    "Delete the pool with its machines": lambda world: (fake_pools.POOLS, "default", "web") not in world.objects,
}
MODULES: dict[str, tuple[ModuleType, dict[str, Any], Kind, dict[str, Callable[[World], bool]]]] = {
    "kubevirt_vm": (kubevirt_vm, argspec.vm_spec(), kinds.VM, DONE),
    "kubevirt_vmi": (kubevirt_vmi, instance_argspec.vmi_spec(), kinds.VMI, OF_INSTANCES),
    "kubevirt_pool": (kubevirt_pool, instance_argspec.pool_spec(), kinds.POOL, OF_POOLS),
    "kubevirt_replicaset": (kubevirt_replicaset, instance_argspec.replicaset_spec(), kinds.REPLICA_SET, OF_SETS),
}


def pool(world: World) -> dict[str, Any]:
    result: dict[str, Any] = world.objects[fake_pools.POOLS, "default", "web"]["spec"]
    return result


def replica_set(world: World, name: str = "workers") -> dict[str, Any]:
    return world.objects[SETS, "default", name]


def ready_replicas(world: World, name: str = "workers") -> int:
    result: int = replica_set(world, name)["status"]["readyReplicas"]
    return result


def memory(vmi: dict[str, Any]) -> str:
    result: str = vmi["spec"]["domain"]["memory"]["guest"]
    return result


def instances(world: World) -> set[str]:
    return {name for kind, _namespace, name in world.objects if kind == "virtualmachineinstances"}


@pytest.mark.parametrize("name", MODULES)
def test_each_example_does_what_its_name_says(name: str) -> None:
    module, spec, kind, done = MODULES[name]
    world = World()
    world.has_agents = True
    tasks = yaml.safe_load(module.EXAMPLES)
    assert [task["name"] for task in tasks] == list(done)
    with serving(world) as url:
        api = Api.connect(Endpoint(server=url))
        for task in tasks:
            arguments = ArgumentSpecValidator(spec).validate(task[f"virtops.kubevirt.{name}"]).validated_parameters
            result = batch.run(arguments, api, check_mode=False, diff=False, kind=kind)
            assert result["changed"] is True, task["name"]
            assert done[task["name"]](world), task["name"]
            again = batch.run(arguments, api, check_mode=False, diff=False, kind=kind)
            assert again["changed"] is False, f"{task['name']}, again"
        api.close()


EVERY = [task for module, *_rest in MODULES.values() for task in yaml.safe_load(module.EXAMPLES)]


@pytest.mark.parametrize("task", EVERY, ids=lambda task: task["name"])
def test_no_example_needs_an_object_that_no_example_creates(task: dict[str, Any]) -> None:
    assert "secret" not in str(task).lower()
