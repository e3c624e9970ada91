# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The examples of kubevirt_migration and kubevirt_migration_info, one after the other: each does what its name says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import argspec, batch, info
from ansible_collections.virtops.kubevirt.plugins.modules import kubevirt_migration, kubevirt_migration_info
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_migrations
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import a_guest, a_node
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World, serving


def node(world: World, name: str) -> str:
    result: str = world.objects["virtualmachineinstances", "default", name]["status"]["nodeName"]
    return result


def unfinished(world: World) -> list[str]:
    results = [item for key, item in world.objects.items() if key[0] == fake_migrations.MIGRATIONS]
    return [item["spec"]["vmiName"] for item in results if "status" not in item]


DONE: dict[str, tuple[str, Callable[[World], bool], bool]] = {
    "Move a machine to any other node with each run, and wait": ("", lambda w: node(w, "web") == "node-2", True),
    "Have it on a certain node": ("", lambda w: node(w, "web") == "node-3", False),
    "Have two machines on nodes with fast disks": ("", lambda w: node(w, "database") == "node-2", False),
    "Move it away from a node, if it is there": ("node-1", lambda w: node(w, "web") == "node-2", False),
    "Move all machines of a node, two at a time, and leave those that cannot be moved": (
        "", lambda w: {node(w, "web"), node(w, "database")} == {"node-3"}, False,
    ),
    "Begin to move a machine, and do not wait": ("stay", lambda w: unfinished(w) == ["database"], False),
    "Cancel that": ("", lambda w: not unfinished(w), False),
}  # fmt: skip
"""What is set before, what holds after it, and whether each run makes a change."""


def world() -> World:
    fake_world = World()
    for name, disks in (("node-1", "slow"), ("node-2", "fast"), ("node-3", "fast")):
        fake_world.put("nodes", a_node(name, disks=disks))
    for name in ("web", "database"):
        fake_world.put("virtualmachineinstances", a_guest(name))
    return fake_world


def test_each_example_does_what_its_name_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = world()
    tasks = yaml.safe_load(kubevirt_migration.EXAMPLES)
    assert [task["name"] for task in tasks] == list(DONE)
    with serving(cluster) as url:
        api = Api.connect(Endpoint(server=url))
        for task in tasks:
            before, is_done, each_time = DONE[task["name"]]
            if before == "node-1":
                cluster.put("virtualmachineinstances", a_guest("web"))
            if task["name"].startswith("Move all"):
                monkeypatch.setitem(fake_migrations.end.__kwdefaults__, "to", "node-3")
            cluster.migrations = fake_migrations.STAY if before == "stay" else fake_migrations.SUCCEED
            options = task["virtops.kubevirt.kubevirt_migration"]
            arguments = ArgumentSpecValidator(argspec.migration_spec()).validate(options).validated_parameters
            assert batch.run(arguments, api, check_mode=False, diff=False)["changed"] is True, task["name"]
            assert is_done(cluster), task["name"]
            again = batch.run(arguments, api, check_mode=False, diff=False)
            assert again["changed"] is each_time, f"{task['name']}, again"
        api.close()


@pytest.mark.parametrize("task", yaml.safe_load(kubevirt_migration_info.EXAMPLES), ids=lambda task: task["name"])
def test_each_example_reads_existing_migrations(task: dict[str, Any]) -> None:
    cluster = world()
    metadata = {"name": "m", "namespace": "default"}
    cluster.put(fake_migrations.MIGRATIONS, {"metadata": metadata, "spec": {"vmiName": "web"}})
    options = task["virtops.kubevirt.kubevirt_migration_info"]
    if options.get("wait"):
        fake_migrations.end(cluster, "m")
    arguments = ArgumentSpecValidator(argspec.migration_info_spec()).validate(options).validated_parameters
    with serving(cluster) as url:
        api = Api.connect(Endpoint(server=url))
        result = info.run(arguments, api)
        api.close()
    assert len(result["resources"]) == (0 if options.get("wait") else 1)
