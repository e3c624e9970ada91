# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of a module run one after the other: each makes a change, and none when it runs again."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import argspec as migration_argspec
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import batch as migration_batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import info
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import batch, kinds
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import argspec, instance_argspec
from ansible_collections.virtops.kubevirt.plugins.modules import (
    kubevirt_migration,
    kubevirt_migration_info,
    kubevirt_pool,
    kubevirt_replicaset,
    kubevirt_vm,
    kubevirt_vmi,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_migrations
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import a_guest, a_node
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving

Run = Callable[..., dict[str, Any]]
MODULES: dict[str, tuple[ModuleType, dict[str, Any], Run]] = {
    "kubevirt_vm": (kubevirt_vm, argspec.vm_spec(), functools.partial(batch.run, kind=kinds.VM)),
    "kubevirt_vmi": (kubevirt_vmi, instance_argspec.vmi_spec(), functools.partial(batch.run, kind=kinds.VMI)),
    "kubevirt_pool": (kubevirt_pool, instance_argspec.pool_spec(), functools.partial(batch.run, kind=kinds.POOL)),
    "kubevirt_replicaset": (
        kubevirt_replicaset,
        instance_argspec.replicaset_spec(),
        functools.partial(batch.run, kind=kinds.REPLICA_SET),
    ),
    "kubevirt_migration": (kubevirt_migration, migration_argspec.migration_spec(), migration_batch.run),
}
CLAIMS = {"login-data"}
"""The claims that examples create, with kubernetes.core.k8s."""
EVERY = [task for module, *_rest in MODULES.values() for task in yaml.safe_load(module.EXAMPLES)]
EACH_TIME = {"Migrate a machine to another node with each run, and wait"}
MIGRATIONS: dict[str, Callable[[World], object]] = {
    "Migrate it away from a node, if it is there": lambda world: world.put("virtualmachineinstances", a_guest("web")),
    "Start a migration, and do not wait": lambda world: setattr(world, "migrations", fake_migrations.STAY),
}
"""What happens in the cluster before an example."""


def own_tasks(name: str) -> list[dict[str, Any]]:
    """Return the examples of a module without the tasks that prepare other objects."""
    return [task for task in yaml.safe_load(MODULES[name][0].EXAMPLES) if f"virtops.kubevirt.{name}" in task]


@pytest.fixture
def world() -> World:
    """A cluster with guests that have agents, and of these two that can migrate."""
    cluster = World()
    cluster.has_agents = True
    for name, disks in (("node-1", "slow"), ("node-2", "fast"), ("node-3", "fast")):
        cluster.put("nodes", a_node(name, disks=disks))
    return cluster


@pytest.fixture
def api(world: World) -> Iterator[Api]:
    with serving(world) as url:
        client = Api.connect(Endpoint(server=url))
        yield client
        client.close()


@pytest.mark.parametrize("name", MODULES)
def test_each_example_makes_a_change_and_none_when_it_runs_again(
    name: str, world: World, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    _module, spec, run = MODULES[name]
    if name == "kubevirt_migration":
        for guest in ("web", "database"):
            world.put("virtualmachineinstances", a_guest(guest))
    for task in own_tasks(name):
        MIGRATIONS.get(task["name"], lambda _world: None)(world)
        if task["name"].startswith("Migrate all"):
            monkeypatch.setitem(fake_migrations.end.__kwdefaults__, "to", "node-3")
        arguments = ArgumentSpecValidator(spec).validate(task[f"virtops.kubevirt.{name}"]).validated_parameters
        assert run(arguments, api, check_mode=False, diff=False)["changed"] is True, task["name"]
        again = run(arguments, api, check_mode=False, diff=False)
        assert again["changed"] is (task["name"] in EACH_TIME), f"{task['name']}, again"


@pytest.mark.parametrize("task", yaml.safe_load(kubevirt_migration_info.EXAMPLES), ids=lambda task: task["name"])
def test_each_example_reads_existing_migrations(task: dict[str, Any], world: World, api: Api) -> None:
    world.put("virtualmachineinstances", a_guest("web"))
    metadata = {"name": "m", "namespace": "default"}
    world.put(fake_migrations.MIGRATIONS, {"metadata": metadata, "spec": {"vmiName": "web"}})
    options = task["virtops.kubevirt.kubevirt_migration_info"]
    if options.get("wait"):
        fake_migrations.end(world, "m")
    arguments = ArgumentSpecValidator(migration_argspec.migration_info_spec()).validate(options).validated_parameters

    assert len(info.run(arguments, api)["resources"]) == (0 if options.get("wait") else 1)


@pytest.mark.parametrize("task", EVERY, ids=lambda task: task["name"])
def test_no_example_needs_an_object_that_no_example_creates(task: dict[str, Any]) -> None:
    assert "secret" not in str(task).lower()
    waits_for_others = "'fail_fast': False" in str(task)
    assert waits_for_others or set(re.findall(r"'claimName': '([^']+)'", str(task))) <= CLAIMS


def test_the_claims_of_examples_are_created_by_examples() -> None:
    created = [task["kubernetes.core.k8s"]["definition"] for task in EVERY if "kubernetes.core.k8s" in task]
    assert {claim["metadata"]["name"] for claim in created} == CLAIMS
